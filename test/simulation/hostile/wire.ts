/**
 * The server side of one connection, in virtual time. The client reads an answer at its own rate; unread bytes stay
 * with the server. Not simulated: buffers of the kernel, and timeouts of incomplete headers.
 */
import { Duplex } from 'node:stream'
import type { Cancel, Clock } from '../clock.ts'

type Options = {
  readonly address: string
  /** Bytes that the client reads per millisecond; 0 for none. */
  readonly rate: number
  readonly latency: number
  readonly onBytes: (bytes: Buffer) => void
  readonly onClosed: () => void
}

/** Bytes per read: a slow client makes progress every second. */
const pieceOf = (rate: number): number => Math.max(1, Math.min(64 * 1024, Math.ceil(rate * 1_000)))

export class Wire extends Duplex {
  readonly remoteAddress: string
  readonly encrypted = false
  bytesTaken = 0
  readonly #clock: Clock
  readonly #options: Options
  #silence = 0
  #isReset = false
  #cancelSilence: Cancel = () => undefined

  constructor(clock: Clock, options: Options) {
    super({ allowHalfOpen: true })
    this.#clock = clock
    this.#options = options
    this.remoteAddress = options.address
    this.once('close', () => {
      this.#cancelSilence()
      options.onClosed()
    })
  }

  /** Delivers bytes of the client. */
  arrive(bytes: string): void {
    this.#clock.after(this.#options.latency, () => {
      if (this.destroyed || this.readableEnded) return
      this.#isActive()
      this.push(Buffer.from(bytes, 'latin1'))
    })
  }

  /** The client closes its side, or resets the connection. */
  leave(how: 'closes' | 'resets'): void {
    this.#clock.after(this.#options.latency, () => {
      if (this.destroyed) return
      if (how === 'closes') this.push(null)
      else if (this.isPaused()) this.#isReset = true
      else this.#reset()
    })
  }

  /** Like a socket: a reset is seen only by who reads or writes. */
  override resume(): this {
    if (this.#isReset) this.#reset()
    return super.resume()
  }

  #reset(): void {
    this.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
  }

  override _read(): void {
    // Data comes from `arrive`.
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    if (this.#isReset) this.#reset()
    const { rate, latency, onBytes } = this.#options
    const most = pieceOf(rate)
    const takeFrom = (from: number): void => {
      if (rate === 0) return
      const piece = bytes.subarray(from, from + most)
      this.#clock.after(latency + piece.length / rate, () => {
        if (this.destroyed) return
        this.#isActive()
        this.bytesTaken += piece.length
        onBytes(piece)
        if (from + most < bytes.length) takeFrom(from + most)
        else done()
      })
    }
    takeFrom(0)
  }

  /** Like a socket: emits `timeout` after this many milliseconds without activity. */
  setTimeout(milliseconds: number, listener?: () => void): this {
    this.#silence = milliseconds
    if (listener) this.once('timeout', listener)
    this.#isActive()
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  resetAndDestroy(): this {
    return this.destroy()
  }

  /** Like a socket: closes after all written bytes were read. */
  destroySoon(): void {
    if (!this.writableEnded) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  #isActive(): void {
    this.#cancelSilence()
    if (this.#silence === 0 || this.destroyed) return
    this.#cancelSilence = this.#clock.after(this.#silence, () => void this.emit('timeout'))
  }
}
