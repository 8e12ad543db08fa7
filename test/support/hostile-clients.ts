/** Clients that read slowly, and the memory of the process that serves them. */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Scope } from './scope.ts'

export const requestOf = (path: string, key: string, method = 'GET'): string =>
  `${method} /api/v1${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`

/** Reads ten times a second, a tenth of `bytesPerSecond` each time. */
type SlowReader = { readonly port: number; readonly request: string; readonly bytesPerSecond: number }

export type OpenConnection = {
  readonly socket: Socket
  readonly isClosed: () => boolean
  /** Status line of the first answer; empty until it arrives. */
  readonly firstLine: () => string
}

/** Sends a request and reads its answer slowly. The connection ends with the test. */
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

/** Returns the resident memory of a process in MiB. */
export const residentMiB = (pid: number): number => {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1_024)
}

/** Watches the memory of a process. Returns a function that returns the maximum in MiB. */
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
