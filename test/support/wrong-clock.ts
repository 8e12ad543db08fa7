/** Preloaded by a process of ours: its clock is wrong by the milliseconds that a file says, as of when it says so. */
import { readFileSync } from 'node:fs'

const right = Date.now
const file = process.env.WRONG_CLOCK_FILE ?? ''
Date.now = () => right() + Number(readFileSync(file, 'utf8'))
