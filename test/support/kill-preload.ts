/**
 * Loaded with `--import`: writes each step of a command that changes something to the file STEPS_FILE, and kills the
 * process (SIGKILL) at the step number KILL_AT_STEP, or at the one after the first step that matches KILL_AFTER. A step
 * is a change of a file, or a request to Kafka that changes a topic: once before it is sent, and once after.
 */
import { appendFileSync } from 'node:fs'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'
import { basename } from 'node:path'

const { STEPS_FILE: file, KILL_AT_STEP: killAt, KILL_AFTER: killAfter } = process.env
if (file === undefined) throw new Error('STEPS_FILE: expected the path of a file, got nothing')

let steps = 0
let isLast = false
const step = (name: string): void => {
  if (killAt === String(steps++) || isLast) process.kill(process.pid, 'SIGKILL')
  appendFileSync(file, `${name}\n`)
  isLast = killAfter !== undefined && new RegExp(killAfter).test(name)
}

const { open, rename, link, rm } = files
/** Without the random part of the name of a temporary file. */
const nameOf = (path: string): string => basename(path).replace(/\.[0-9a-f-]{36}\.new$/, '.new')
const handle = await open(import.meta.filename)
const handles = Object.getPrototypeOf(handle)
await handle.close()
const { writeFile, sync } = handles
Object.assign(handles, {
  writeFile(this: unknown, ...args: unknown[]) {
    step('write')
    return writeFile.apply(this, args)
  },
  sync(this: unknown) {
    step('sync')
    return sync.apply(this)
  },
})
Object.assign(files, {
  open: (path: string, flags: string) => {
    if (flags === 'wx') step(`open ${nameOf(path)}`)
    return open(path, flags)
  },
  rename: (from: string, to: string) => {
    step(`rename ${nameOf(to)}`)
    return rename(from, to)
  },
  link: (from: string, to: string) => {
    step(`link ${nameOf(to)}`)
    return link(from, to)
  },
  rm: (path: string, options: object) => {
    step(`rm ${nameOf(path)}`)
    return rm(path, options)
  },
})
syncBuiltinESMExports()

/** Requests of Kafka that change something, by their number in the protocol. */
const changing = new Map([
  [0, 'Produce'],
  [22, 'InitProducerId'],
  [24, 'AddPartitionsToTxn'],
  [26, 'EndTxn'],
  [33, 'AlterConfigs'],
])
const { write } = Socket.prototype
Object.assign(Socket.prototype, {
  write(this: Socket, ...args: Parameters<typeof write>) {
    const [bytes] = args
    // The length of the request comes first: 4 bytes.
    const name = Buffer.isBuffer(bytes) && bytes.length > 6 ? changing.get(bytes.readInt16BE(4)) : undefined
    if (name !== undefined) step(`${name} not sent`)
    const written = write.apply(this, args)
    if (name !== undefined) step(`${name} sent`)
    return written
  },
})
