/**
 * A TCP proxy of our own: a port that passes every connection on to a service, and that a test can make sick and heal
 * while it runs. It knows of no protocol, only of exchanges: something is asked, then something is answered.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../services/ports.ts'
import type { Scope } from './scope.ts'

export type Fault =
  /** Every piece, either way, comes so much later. */
  | { readonly kind: 'latency'; readonly milliseconds: number }
  /** Everything comes in pieces of so many bytes. */
  | { readonly kind: 'slices'; readonly bytes: number }
  /**
   * Nothing comes through, either way, until it is healed. Then all of it does, also from who has given up meanwhile.
   */
  | { readonly kind: 'black-hole' }
  /**
   * What is asked waits until it is healed, and then arrives, though who asked may have given up and asked again
   * meanwhile.
   */
  | { readonly kind: 'late' }
  /** What is asked does not arrive: the connection is reset. */
  | { readonly kind: 'reset' }
  /** What is asked arrives and has its effect. In place of the answer the connection is reset. */
  | { readonly kind: 'lost-answer' }
  /** So many bytes of the answer come, then the connection ends. */
  | { readonly kind: 'cut-answer'; readonly bytes: number }
  /** What is asked, in one piece, does not arrive: this is the answer. */
  | { readonly kind: 'other-answer'; readonly answer: string }
  /** Nothing listens, and the connections that were there are reset. */
  | { readonly kind: 'away' }

/** Whether a fault concerns what is asked, by its first bytes. */
export type Concerns = (asked: string) => boolean

export type FaultProxy = {
  readonly port: number
  /** As `host:port`. */
  readonly address: string
  /** From now on, in place of the fault before, and so many times. */
  readonly suffer: (fault: Fault, concerns?: Concerns, times?: number) => Promise<void>
  readonly heal: () => Promise<void>
  /** How many exchanges the present or last fault has struck. */
  readonly struck: () => number
  /** Settles when something that is concerned has been asked and begun to be passed on, after now. */
  readonly passes: (concerns: Concerns) => Promise<void>
  /** Of each thing asked: its first line, as text, all its bytes, and those of the answer so far. */
  readonly asked: () => readonly Asked[]
}
export type Asked = { readonly line: string; bytes: number; answered: number }

type Sick = { readonly fault: Fault; readonly concerns: Concerns; times: number; struck: number }
type Exchange = { readonly asked: Asked; readonly sick: Sick | undefined }

/** Listens from now until the scope ends. @param target as `host:port` */
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

  /** The fault that this piece meets now, if it is one of pieces rather than of exchanges. */
  const heldUp = async (to: Socket, piece: Buffer, exchange: Exchange | undefined): Promise<void> => {
    while (sick?.fault.kind === 'black-hole' && sick.concerns(exchange?.asked.line ?? '')) await healing.promise
    const fault = sick?.concerns(exchange?.asked.line ?? '') ? sick.fault : undefined
    if (fault?.kind === 'latency') await sleep(fault.milliseconds)
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
      // Either side may end the connection in any way; what comes of it is seen where it is read.
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
            // Whoever sees that nothing more is asked may end the connection and not answer.
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
    // Of a connection that broke, what was taken from it is still passed on.
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
    suffer: async (fault, concerns = () => true, times = Number.POSITIVE_INFINITY) => {
      await heal()
      sick = last = { fault, concerns, times, struck: 0 }
      if (fault.kind === 'away') await leave()
    },
    heal,
    struck: () => last?.struck ?? 0,
    passes: concerns => new Promise(resolve => waiting.add({ concerns, resolve })),
    asked: () => asked,
  }
}

/** Waits until there is room again for more. */
const write = async (to: Socket, piece: Buffer): Promise<void> => {
  if (piece.length === 0 || to.write(piece)) return
  const waited = new AbortController()
  const { signal } = waited
  await Promise.race([once(to, 'drain', { signal }), once(to, 'close', { signal })]).finally(() => waited.abort())
}
