/**
 * Sends a request again while the API refuses it only for now: 429 and 503, and 502 and 504 of a proxy before the API.
 * It waits for the seconds in `Retry-After`. Without them, after a connection that fails, or after an answer that ends
 * too early, it tries again with growing pauses: all requests only read.
 */
import { WholeAnswer } from './whole-answer.ts'

export type Send = (request: Request) => Promise<Response>

type Options = {
  /** Milliseconds that a request may take with all its retries. */
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** Longest attempt, its whole answer included: a connection can be gone without an error. */
const ATTEMPT_MAX_MS = 60_000
const PAUSE_MIN_MS = 500
const PAUSE_MAX_MS = 10_000
/** `new Response` throws for these statuses if it gets a body, even an empty one. */
const bodyless = new Set([204, 205, 304])
const retriedStatuses = new Set([429, 502, 503, 504])

/**
 * Returns a function that sends a request until it is answered, and reads the whole answer.
 * When the time is up, it returns the last refusal. Without one it rejects with the last error of the connection (a
 * `TimeoutError` if nothing came). It rejects with the reason of the signal as soon as this is aborted.
 */
export const retrying =
  (send: Send, { timeoutMs, signal }: Options): Send =>
  async request => {
    // Not the time of day: a corrected clock would end the request early, or never.
    const end = performance.now() + timeoutMs
    let answer: Response | undefined
    for (let growing = PAUSE_MIN_MS; ; growing = Math.min(2 * growing, PAUSE_MAX_MS)) {
      const left = Math.ceil(Math.max(0, Math.min(end - performance.now(), ATTEMPT_MAX_MS)))
      const until = AbortSignal.timeout(left)
      const both = signal === undefined ? until : AbortSignal.any([until, signal])
      // The API never redirects. A redirect is not followed: the answer of another host would look like one of the API.
      const asked = new Request(request, { signal: both, redirect: 'manual' })
      const attempt = await readWhole(send, asked).catch((error: unknown) => ({ error }))
      signal?.throwIfAborted()
      if (!('error' in attempt)) answer = attempt
      const isFinal = !('error' in attempt) && !retriedStatuses.has(attempt.status)
      const growingPause = growing * (0.5 + Math.random() / 2)
      const milliseconds = ('error' in attempt ? undefined : retryAfterOf(attempt)) ?? growingPause
      if (isFinal || performance.now() + milliseconds > end) {
        if (answer !== undefined) return answer
        if ('error' in attempt) throw attempt.error
      } else await pause(milliseconds, signal)
    }
  }

/**
 * A connection can end within an answer, and a proxy can hide that. Then the error belongs to this attempt, not to a
 * later reader.
 */
const readWhole = async (send: Send, request: Request): Promise<Response> => {
  const response = await send(request)
  const { headers } = response
  // A browser hides the status of a redirect.
  const status = response.type === 'opaqueredirect' ? 302 : response.status
  if (bodyless.has(status)) return new Response(null, { status, headers })
  const bytes = await response.arrayBuffer()
  if (status !== 200) return new Response(bytes, { status, headers })
  try {
    // JSON is UTF-8: a later reader would replace other bytes without an error.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return new WholeAnswer(text, JSON.parse(text), headers)
  } catch {
    throw new TypeError(`the answer is no whole JSON (${headers.get('Content-Type') ?? 'without a content type'})`)
  }
}

/** Returns the milliseconds of `Retry-After`; undefined if it has no seconds. */
const retryAfterOf = ({ headers }: Response): number | undefined => {
  const seconds = headers.get('Retry-After')
  return seconds !== null && /^\d+$/.test(seconds) ? Math.max(PAUSE_MIN_MS, 1_000 * Number(seconds)) : undefined
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
