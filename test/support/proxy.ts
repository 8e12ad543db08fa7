/** A TCP proxy with faults that a test starts and heals. It knows no protocol, only request and answer. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../services/ports.ts'
import type { Scope } from './scope.ts'

export type Fault =
  /** Every chunk, in both directions, arrives later. */
  | { readonly kind: 'latency'; readonly milliseconds: number }
  /** Everything arrives in chunks of this many bytes. */
  | { readonly kind: 'slices'; readonly bytes: number }
  /** A slow line: each connection passes this many bytes a second, in each direction. */
  | { readonly kind: 'slow-line'; readonly bytesPerSecond: number }
  /** Nothing passes until it is healed. Then everything does, also from clients that have given up. */
  | { readonly kind: 'black-hole' }
  /** Requests wait until it is healed. Their client may have given up and retried meanwhile. */
  | { readonly kind: 'late' }
  /** The request does not arrive: the connection is reset. */
  | { readonly kind: 'reset' }
  /** The request has its effect. Then the connection is reset instead of an answer. */
  | { readonly kind: 'lost-answer' }
  /** The connection ends after this many bytes of the answer. */
  | { readonly kind: 'cut-answer'; readonly bytes: number }
  /** The request, in one chunk, does not arrive: the proxy sends this answer. */
  | { readonly kind: 'other-answer'; readonly answer: string }
  /** Nothing listens, and open connections are reset. */
  | { readonly kind: 'away' }

/** Whether a fault concerns a request, by its first line. */
export type Concerns = (asked: string) => boolean

export type FaultProxy = {
  readonly port: number
  /** As `host:port`. */
  readonly address: string
  /** Starts a fault, which replaces the previous one, for this many exchanges. */
  readonly inject: (fault: Fault, concerns?: Concerns, times?: number) => Promise<void>
  readonly heal: () => Promise<void>
  /** Number of exchanges that the current or last fault has struck. */
  readonly hits: () => number
  /** Resolves when the next matching request begins to pass. */
  readonly passes: (concerns: Concerns) => Promise<void>
  /** All requests: first line, bytes, and bytes of the answer so far. */
  readonly asked: () => readonly Asked[]
}
export type Asked = { readonly line: string; bytes: number; answered: number }

type Sick = { readonly fault: Fault; readonly concerns: Concerns; times: number; struck: number }
type Exchange = { readonly asked: Asked; readonly sick: Sick | undefined }

/** Of a slow line. */
const SLICES_PER_SECOND = 20
/** A slice that passes late on a busy machine delays no later one. A line that was idle for longer saves no time. */
const LATE_MS = 200

/** @param target as `host:port` */
export const startProxy = async (
  scope: Scope,
  target: string,
  options: { port?: number } = {},
): Promise<FaultProxy> => {
  const [host = '', targetPort] = target.split(':')
  const port = options.port ?? (await freePort())
  const open = new Set<Socket>()
  const asked: Asked[] = []
  const waiting = new Set<{ readonly concerns: Concerns; readonly resolve: () => void }>()
  let sick: Sick | undefined
  let last: Sick | undefined
  let healing = Promise.withResolvers<void>()
  /** When the last slice to a socket was due. */
  const due = new WeakMap<Socket, number>()

  /** Passes a chunk on, under the faults that act on chunks. */
  const heldUp = async (to: Socket, piece: Buffer, exchange: Exchange | undefined): Promise<void> => {
    while (sick?.fault.kind === 'black-hole' && sick.concerns(exchange?.asked.line ?? '')) await healing.promise
    const fault = sick?.concerns(exchange?.asked.line ?? '') ? sick.fault : undefined
    if (fault?.kind === 'latency') await sleep(fault.milliseconds)
    if (fault?.kind === 'slow-line') {
      const bytes = fault.bytesPerSecond / SLICES_PER_SECOND
      for (let from = 0; from < piece.length; from += bytes) {
        const slice = piece.subarray(from, from + bytes)
        const last = Math.max(due.get(to) ?? 0, performance.now() - LATE_MS)
        const next = last + (slice.length / fault.bytesPerSecond) * 1_000
        due.set(to, next)
        await sleep(Math.max(0, next - performance.now()))
        await write(to, slice)
      }
      return
    }
    if (fault?.kind !== 'slices') return write(to, piece)
    for (let from = 0; from < piece.length; from += fault.bytes) {
      await write(to, piece.subarray(from, from + fault.bytes))
      await new Promise(setImmediate)
    }
  }

  const begin = (piece: Buffer): Exchange => {
    const [line = ''] = piece.toString('latin1', 0, 256).split('\r\n')
    const exchange = { asked: { line, bytes: 0, answered: 0 }, sick: undefined }
    asked.push(exchange.asked)
    if (sick === undefined || sick.times === 0 || !sick.concerns(line)) return exchange
    sick.times--
    sick.struck++
    return { ...exchange, sick }
  }

  const serve = (incoming: Socket): void => {
    const outgoing = connect(Number(targetPort), host)
    for (const socket of [incoming, outgoing]) {
      open.add(socket)
      socket.setNoDelay(true)
      // Either side may end the connection in any way; the reader sees the result.
      socket.on('error', () => undefined).on('close', () => open.delete(socket))
    }
    const resetBoth = (): void => {
      incoming.resetAndDestroy()
      outgoing.destroy()
    }
    let exchange: Exchange | undefined

    const held: Buffer[] = []
    let late: Promise<void> | undefined
    const answering = Promise.withResolvers<void>()
    outgoing.on('close', () => answering.resolve())
    const passQuestions = async (): Promise<void> => {
      for await (const piece of incoming as AsyncIterable<Buffer>) {
        if (exchange === undefined || exchange.asked.answered > 0) exchange = begin(piece)
        exchange.asked.bytes += piece.length
        const fault = exchange.sick?.fault
        if (fault?.kind === 'reset') return resetBoth()
        if (fault?.kind === 'other-answer') {
          exchange.asked.answered = fault.answer.length
          await write(incoming, Buffer.from(fault.answer))
          continue
        }
        if (fault?.kind === 'late' && exchange.sick === sick) {
          held.push(piece)
          late ??= healing.promise.then(async () => {
            await write(outgoing, Buffer.concat(held))
            // Keep the connection open until the answer: a service may close a half-closed connection without one.
            await answering.promise
          })
          continue
        }
        await late
        await heldUp(outgoing, piece, exchange)
        for (const one of waiting) {
          if (!one.concerns(exchange.asked.line)) continue
          waiting.delete(one)
          one.resolve()
        }
      }
      await late
      outgoing.end()
    }
    const passAnswers = async (): Promise<void> => {
      for await (const piece of outgoing as AsyncIterable<Buffer>) {
        const fault = exchange?.sick?.fault
        if (fault?.kind === 'lost-answer') return resetBoth()
        const room = fault?.kind === 'cut-answer' ? fault.bytes - (exchange?.asked.answered ?? 0) : piece.length
        if (exchange) exchange.asked.answered += piece.length
        if (held.length > 0) answering.resolve()
        await heldUp(incoming, piece.subarray(0, Math.max(0, room)), exchange)
        if (room < piece.length) break
      }
      incoming.end()
      outgoing.destroy()
    }
    // Pass on what was received before the connection broke.
    passQuestions().catch(async () => {
      await late
      outgoing.end()
    })
    passAnswers().catch(() => incoming.resetAndDestroy())
  }

  const server = createServer(serve)
  const listen = async (): Promise<void> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const leave = async (): Promise<void> => {
    if (!server.listening) return
    server.close()
    for (const socket of open) socket.resetAndDestroy()
    await once(server, 'close')
  }
  const heal = async (): Promise<void> => {
    const away = sick?.fault.kind === 'away'
    sick = undefined
    healing.resolve()
    healing = Promise.withResolvers()
    if (away) await listen()
  }
  await listen()
  scope.onTestFinished(async () => {
    sick = undefined
    healing.resolve()
    await leave()
  })
  return {
    port,
    address: `127.0.0.1:${port}`,
    inject: async (fault, concerns = () => true, times = Number.POSITIVE_INFINITY) => {
      await heal()
      sick = last = { fault, concerns, times, struck: 0 }
      if (fault.kind === 'away') await leave()
    },
    heal,
    hits: () => last?.struck ?? 0,
    passes: concerns => new Promise(resolve => waiting.add({ concerns, resolve })),
    asked: () => asked,
  }
}

/** Writes a chunk and waits until the socket accepts more. */
const write = async (to: Socket, piece: Buffer): Promise<void> => {
  if (piece.length === 0 || to.write(piece)) return
  const waited = new AbortController()
  const { signal } = waited
  await Promise.race([once(to, 'drain', { signal }), once(to, 'close', { signal })]).finally(() => waited.abort())
}
