/**
 * The file system of simulated processes: real files, at moments of the virtual clock. Each call has its effect in one
 * step, at a random moment. A write of a file's content has two: a kill between them leaves half of it. A process can
 * be killed before each call that changes something. Not simulated: a power failure, and full disks.
 *
 * It replaces functions of `node:fs/promises`, and the timer of `node:timers/promises`, for the code that runs within
 * `withFiles`. Other code is not affected.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import fs, { type PathLike } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'
import zlib, { type InputType, type ZstdOptions } from 'node:zlib'
import type { SimulatedProcess } from '../clock.ts'

type Disk = { readonly host: SimulatedProcess; readonly delay: () => number }
const disks = new AsyncLocalStorage<Disk>()

/** Runs the code of a process. Its calls for files take `delay` milliseconds each. */
export const withFiles = <Result>(disk: Disk, run: () => Result): Result => {
  replaceFunctions()
  return disks.run(disk, run)
}

/** A call: its effects, one after the other. The value of the last one is the answer. */
const call = <Result>({ host, delay }: Disk, isChange: boolean, ...effects: (() => Result)[]): Promise<Result> => {
  if (isChange) host.onStep()
  return new Promise((resolve, reject) => {
    // The host was killed before the call: the promise never settles.
    if (host.isDead) return
    const answer = (end: () => void): void => void host.clock.after(delay(), () => host.deliver(end))
    const take = (place: number): void => {
      host.clock.after(delay(), () => {
        if (place > 0 && host.isDead) return
        try {
          const result = effects[place]?.() as Result
          if (place === effects.length - 1) answer(() => resolve(result))
          else take(place + 1)
        } catch (error) {
          answer(() => reject(error))
        }
      })
    }
    take(0)
  })
}

const openFile = (disk: Disk, path: PathLike, flags?: string | number, mode?: number) =>
  call(disk, /w|a|\+/.test(String(flags)) || typeof flags === 'number', () => {
    const file = fs.openSync(path, flags ?? 'r', mode)
    const close = async (): Promise<void> => fs.closeSync(file)
    return {
      writeFile: (content: string | Buffer) => writeHalves(disk, content, bytes => fs.writeSync(file, bytes)),
      appendFile: (content: Buffer) => writeHalves(disk, content, bytes => fs.writeSync(file, bytes)),
      truncate: (length: number) => call(disk, true, () => fs.ftruncateSync(file, length)),
      write: (bytes: Buffer) => call(disk, true, () => fs.writeSync(file, bytes, 0, bytes.length, 0)),
      chmod: (bits: number) => call(disk, true, () => fs.fchmodSync(file, bits)),
      sync: () => call(disk, false, () => undefined),
      stat: () => call(disk, false, () => fs.fstatSync(file)),
      close,
      [Symbol.asyncDispose]: close,
    }
  })

const writeHalves = (disk: Disk, content: string | Buffer, write: (half: Buffer) => unknown): Promise<void> => {
  const bytes = Buffer.from(content)
  const middle = bytes.length >> 1
  return call<void>(
    disk,
    true,
    () => void write(bytes.subarray(0, middle)),
    () => void write(bytes.subarray(middle)),
  )
}

/** The replacements. Each has the arguments of the function that it replaces. */
const replacements = {
  access: (disk: Disk, path: PathLike, mode?: number) => call(disk, false, () => fs.accessSync(path, mode)),
  link: (disk: Disk, from: PathLike, to: PathLike) => call(disk, true, () => fs.linkSync(from, to)),
  lstat: (disk: Disk, path: PathLike) => call(disk, false, () => fs.lstatSync(path)),
  mkdir: (disk: Disk, path: PathLike) => call(disk, true, () => fs.mkdirSync(path)),
  open: openFile,
  readdir: (disk: Disk, path: PathLike) => call(disk, false, () => fs.readdirSync(path)),
  readFile: (disk: Disk, path: PathLike, encoding: BufferEncoding | null = null) =>
    call<string | Buffer>(disk, false, () => fs.readFileSync(path, { encoding })),
  rename: (disk: Disk, from: PathLike, to: PathLike) => call(disk, true, () => fs.renameSync(from, to)),
  rm: (disk: Disk, path: PathLike, options?: fs.RmOptions) => call(disk, true, () => fs.rmSync(path, options)),
  stat: (disk: Disk, path: PathLike) => call(disk, false, () => fs.statSync(path)),
  utimes: (disk: Disk, path: PathLike, access: Date, change: Date) =>
    call(disk, false, () => fs.utimesSync(path, access, change)),
  writeFile: (disk: Disk, path: PathLike, content: string | Buffer, options?: { flag?: string }) => {
    let flag = options?.flag ?? 'w'
    return writeHalves(disk, content, half => {
      fs.writeFileSync(path, half, { flag })
      flag = 'a'
    })
  },
}

let isReplaced = false
const replaceFunctions = (): void => {
  if (isReplaced) return
  isReplaced = true
  const promises = fs.promises as unknown as Record<string, (...args: unknown[]) => unknown>
  for (const [name, replacement] of Object.entries(replacements)) {
    const original = promises[name]
    const simulated = replacement as (disk: Disk, ...args: unknown[]) => unknown
    promises[name] = (...args) => {
      const disk = disks.getStore()
      return disk === undefined ? original?.apply(promises, args) : simulated(disk, ...args)
    }
  }
  const { setTimeout } = timers
  timers.setTimeout = (<Value>(milliseconds?: number, value?: Value, options?: object) => {
    const disk = disks.getStore()
    if (disk === undefined) return setTimeout(milliseconds, value, options)
    return disk.host.sleep(milliseconds ?? 0, new AbortController().signal).then(() => value)
  }) as typeof setTimeout
  // Threads would end their work at a moment that no seed repeats.
  const { zstdCompress, zstdDecompress } = zlib
  zlib.zstdCompress = inOneStep(zstdCompress, zlib.zstdCompressSync) as typeof zstdCompress
  zlib.zstdDecompress = inOneStep(zstdDecompress, zlib.zstdDecompressSync) as typeof zstdDecompress
  syncBuiltinESMExports()
}

type Done = (error: unknown, result?: Buffer) => void
const inOneStep =
  (original: unknown, sync: (input: InputType, options?: ZstdOptions) => Buffer) =>
  (input: InputType, options: ZstdOptions, done: Done): void => {
    if (disks.getStore() === undefined) {
      const onThread = original as (...args: unknown[]) => void
      onThread(input, options, done)
      return
    }
    let result: Buffer | undefined
    let error: unknown = null
    try {
      result = sync(input, options)
    } catch (found) {
      error = found
    }
    done(error, result)
  }
