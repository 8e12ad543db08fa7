/** Preloaded into a process: shifts its clock by the milliseconds in a file, which a test may change at any time. */
import { readFileSync } from 'node:fs'

const right = Date.now
const file = process.env.WRONG_CLOCK_FILE ?? ''
Date.now = () => right() + Number(readFileSync(file, 'utf8'))
