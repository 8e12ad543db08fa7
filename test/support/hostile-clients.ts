/** Clients that take memory from an API, and the memory that it has. */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Scope } from './scope.ts'

/** A request as its bytes. */
export const requestOf = (path: string, key: string, method = 'GET'): string =>
  `${method} /api/v1${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`

/** Bytes that a slow reader takes at once; ten times a second. */
type SlowReader = { readonly port: number; readonly request: string; readonly bytesPerSecond: number }

export type OpenConnection = {
  readonly socket: Socket
  readonly isClosed: () => boolean
  /** The status line of the first answer; empty until it has come. */
  readonly firstLine: () => string
}

/** Sends a request and reads its answer slowly, or not at all. The connection ends with the test. */
export const readSlowly = (scope: Scope, { port, request, bytesPerSecond }: SlowReader): OpenConnection => {
  const socket = connect({ port, host: '127.0.0.1', readableHighWaterMark: 1_024 } as never, () =>
    socket.write(request),
  )
  let closed = false
  let head = ''
  socket.pause()
  socket
    .on('error', () => undefined)
    .on('close', () => {
      closed = true
    })
  const timer = setInterval(() => {
    const bytes: Buffer | null = socket.read(Math.max(1, Math.floor(bytesPerSecond / 10))) ?? socket.read()
    if (bytes && head.length < 200) head += bytes.toString('latin1', 0, 200)
  }, 100)
  scope.onTestFinished(async () => {
    clearInterval(timer)
    socket.destroy()
  })
  return { socket, isClosed: () => closed, firstLine: () => head.split('\r\n')[0] ?? '' }
}

/** MiB that a process has resident now. */
export const residentMiB = (pid: number): number => {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1_024)
}

/** Watches the memory of a process until it is asked for the most that it had. */
export const watchMemory = (scope: Scope, pid: number): (() => number) => {
  let most = residentMiB(pid)
  const timer = setInterval(() => {
    try {
      most = Math.max(most, residentMiB(pid))
    } catch {
      clearInterval(timer)
    }
  }, 50)
  scope.onTestFinished(async () => clearInterval(timer))
  return () => most
}
