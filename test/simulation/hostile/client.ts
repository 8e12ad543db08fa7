/** A client of a simulated API process: sends requests over one connection and reads the answers in order. */
import type { ApiProcess } from './api-process.ts'
import type { Wire } from './wire.ts'

export type Answer = {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}
type Waiting = { readonly method: string; readonly resolve: (answer: Answer | undefined) => void }

export type Habits = { readonly address: string; readonly rate: number; readonly latency: number }

const HEAD_END = Buffer.from('\r\n\r\n')

export class Client {
  readonly #wire: Wire
  readonly #onAnswer: (answer: Answer) => void
  #waiting: Waiting[] = []
  #bytes: Buffer = Buffer.alloc(0)
  #isClosed = false

  /** @param onAnswer called for every answer, requested or not */
  constructor(api: ApiProcess, habits: Habits, onAnswer: (answer: Answer) => void) {
    this.#onAnswer = onAnswer
    this.#wire = api.connect({ ...habits, onBytes: bytes => this.#take(bytes), onClosed: () => this.#close() })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  send(bytes: string): void {
    this.#wire.arrive(bytes)
  }

  leave(how: 'closes' | 'resets'): void {
    this.#wire.leave(how)
  }

  /** Returns undefined if the connection ends before the answer. */
  ask(method: string, path: string, headers: readonly string[]): Promise<Answer | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined)
    this.send(requestText(method, path, headers))
    return new Promise(resolve => this.#waiting.push({ method, resolve }))
  }

  #take(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    for (let answer = this.#next(); answer !== undefined; answer = this.#next()) {
      this.#onAnswer(answer)
      this.#waiting.shift()?.resolve(answer)
    }
  }

  #next(): Answer | undefined {
    const end = this.#bytes.indexOf(HEAD_END)
    if (end === -1) return undefined
    const [first = '', ...lines] = this.#bytes.toString('latin1', 0, end).split('\r\n')
    const headers = new Map(
      lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.replace(/^[^:]*: /, '')]),
    )
    const status = Number(first.split(' ')[1])
    const hasBody = this.#waiting[0]?.method !== 'HEAD' && status !== 304
    const from = end + HEAD_END.length
    const to = from + (hasBody ? Number(headers.get('content-length') ?? 0) : 0)
    if (this.#bytes.length < to) return undefined
    const body = this.#bytes.toString('utf8', from, to)
    this.#bytes = this.#bytes.subarray(to)
    return { status, headers, body }
  }

  #close(): void {
    this.#isClosed = true
    for (const { resolve } of this.#waiting.splice(0)) resolve(undefined)
  }
}

export const requestText = (method: string, path: string, headers: readonly string[]): string =>
  `${[`${method} /api/v1${path} HTTP/1.1`, 'Host: simulated', ...headers].join('\r\n')}\r\n\r\n`

export const bearer = (key: string): string => `Authorization: Bearer ${key}`
