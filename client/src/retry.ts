/**
 * Sends a request again while the API refuses it only for now: 429 and 503, after the seconds in `Retry-After`. A
 * connection that fails, or ends within an answer, is tried again with growing pauses: all requests only read.
 */
export type Send = (request: Request) => Promise<Response>

type Options = {
  /** Milliseconds that a request may take with all its retries. */
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** A connection can be gone without an error. */
const SILENCE_MAX_MS = 60_000
const PAUSE_MIN_MS = 500
const PAUSE_MAX_MS = 10_000
const retriedStatuses = new Set([429, 503])

/**
 * Returns a function that sends a request until it is answered, and reads the whole answer.
 * It returns the last refusal when the time is up. Without one it rejects with the last error of the connection (a
 * `TimeoutError` if nothing came), or with the reason of the signal.
 */
export const retrying =
  (send: Send, { timeoutMs, signal }: Options): Send =>
  async request => {
    const end = Date.now() + timeoutMs
    let refusal: Response | undefined
    for (let growing = PAUSE_MIN_MS; ; growing = Math.min(2 * growing, PAUSE_MAX_MS)) {
      const until = AbortSignal.timeout(Math.max(0, Math.min(end - Date.now(), SILENCE_MAX_MS)))
      const both = signal === undefined ? until : AbortSignal.any([until, signal])
      const attempt = await readWhole(send, new Request(request, { signal: both })).catch((error: unknown) => ({
        error,
      }))
      signal?.throwIfAborted()
      const milliseconds = 'error' in attempt ? growing * (0.5 + Math.random() / 2) : waitOf(attempt)
      if (!('error' in attempt)) refusal = attempt
      if (milliseconds === undefined || Date.now() + milliseconds > end) {
        if (refusal !== undefined) return refusal
        if ('error' in attempt) throw attempt.error
      } else await pause(milliseconds, signal)
    }
  }

/** A connection can end within an answer. Then the error belongs to this attempt, not to a later reader. */
const readWhole = async (send: Send, request: Request): Promise<Response> => {
  const response = await send(request)
  const body = response.status === 304 ? null : await response.text()
  return new Response(body, { status: response.status, headers: response.headers })
}

/** Returns the milliseconds to wait before the next attempt; undefined if the answer is final. */
const waitOf = (response: Response): number | undefined => {
  if (!retriedStatuses.has(response.status)) return undefined
  const seconds = Number(response.headers.get('Retry-After') ?? 1)
  return Math.max(PAUSE_MIN_MS, 1_000 * (Number.isFinite(seconds) ? seconds : 1))
}

/** @throws the reason of the signal */
export const pause = (milliseconds: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, milliseconds)
    signal?.addEventListener('abort', stop, { once: true })
  })
