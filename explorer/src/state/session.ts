/**
 * One key at work. Only the closure of its clients has the key: no storage, no address and no element of the page. Its
 * answers are in its clients. A page has one session, and another key begins with a new page.
 */
import { type Client, createClient } from '../../../client/src/index.ts'
import { isOfMoment } from '../refusals.ts'

/** The age of the drawn values, the latest answer, and its refusal. */
export type Observed = {
  /** All values that are drawn include everything published up to this instant; undefined while none is drawn. */
  readonly upTo: string | undefined
  /**
   * The last request that the service refused for now, or did not answer. Without an answer it has no status. The
   * client sends it again. Undefined once it is answered.
   */
  readonly busy: { readonly status: number | undefined; readonly seconds: string | undefined } | undefined
  /** Whether the service does not know the key, and has answered nothing else. */
  readonly isUnknownKey: boolean
  /** By moment (`as_of`): whether the service accepts it. Absent before the first answer. */
  readonly moments: ReadonlyMap<string, boolean>
}

export const NOTHING_OBSERVED: Observed = { upTo: undefined, busy: undefined, isUnknownKey: false, moments: new Map() }

export type Session = {
  readonly client: Client
  /** A client whose requests end with a signal. */
  readonly clientUntil: (signal: AbortSignal) => Client
  /** Notes that the page draws a value, with everything up to an instant. Returns a function for when it ends. */
  readonly draw: (upTo: string) => () => void
}

/** A value that was read. `upTo`: everything published up to this instant is in it; undefined if nothing dates it. */
export type Dated<Value> = { readonly value: Value; readonly upTo: string | undefined }

/**
 * A value that needed no answer is made of what was read before, and of the changes that the page follows: it is as old
 * as the later one of them. If nothing was read before, it does not age.
 */
export const upToOf = (
  { upTo }: Pick<Dated<unknown>, 'upTo'>,
  before: string | undefined,
  followed: string | undefined,
): string | undefined =>
  upTo ?? (before === undefined || followed === undefined || before > followed ? before : followed)

/** Reads a value that is as old as the oldest of its answers; undefined without an answer. */
export const readDated = async <Value>(
  client: Client,
  read: (client: Client) => Promise<Value>,
): Promise<Dated<Value>> => {
  const times: string[] = []
  const value = await read(client.noting(time => void times.push(time)))
  return { value, upTo: oldestOf(times) }
}

/** All of them are texts of the API, in UTC and with milliseconds: they stand in the order of time. */
const oldestOf = (times: Iterable<string>): string | undefined => [...times].sort()[0]

type Waiting = NonNullable<Observed['busy']> & { readonly until: number }

/** The service names a minute at most, and the client sends a refused request again soon after that time. */
const SENT_AGAIN_MS = 75_000
const MOMENTS_KEPT = 100

/** @param base the address of the API with its path */
export const openSession = (base: string, key: string, onObserved: (observed: Observed) => void): Session => {
  const drawn = new Map<symbol, string>()
  let isKnown = false
  let isUnknownKey = false
  // By address: the answer to another request does not end the wait of this one.
  const waiting = new Map<string, Waiting>()
  const moments = new Map<string, boolean>()
  const observe = (): void => {
    // The client has given up the older ones, or nothing on the page waits for them.
    for (const [url, { until }] of waiting) if (performance.now() >= until) waiting.delete(url)
    const upTo = oldestOf(drawn.values())
    onObserved({ upTo, busy: [...waiting.values()].at(-1), isUnknownKey, moments: new Map(moments) })
  }
  const wait = (url: string, status: number | undefined, seconds?: string): void => {
    waiting.delete(url)
    waiting.set(url, { status, seconds, until: performance.now() + SENT_AGAIN_MS })
    // A timer may be early.
    setTimeout(observe, SENT_AGAIN_MS + 10)
  }
  const send = async (request: Request): Promise<Response> => {
    // The browser must not write pay to its disk: answers as of a change may be stored.
    const answer = await fetch(request, {
      cache: 'no-store',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
    }).catch((error: unknown) => {
      if (!request.signal.aborted || isOfTime(request.signal.reason)) {
        wait(request.url, undefined)
        observe()
      }
      throw error
    })
    waiting.delete(request.url)
    // The service answers.
    for (const [url, { status }] of waiting) if (status === undefined) waiting.delete(url)
    const { code, message } = await refusalIn(answer)
    noteMoment(moments, request.url, answer, isOfMoment(code, message))
    isKnown ||= answer.ok || code === 'forbidden'
    isUnknownKey = code === 'unauthorized' && !isKnown
    if ([429, 502, 503, 504].includes(answer.status))
      wait(request.url, answer.status, answer.headers.get('Retry-After') ?? undefined)
    observe()
    return answer
  }
  const draw = (upTo: string): (() => void) => {
    const value = Symbol()
    drawn.set(value, upTo)
    observe()
    return () => {
      drawn.delete(value)
      observe()
    }
  }
  const options = { baseUrl: base, key, fetch: send }
  return {
    client: createClient(options),
    clientUntil: signal => createClient({ ...options, signal, keptCharacters: 0 }),
    draw,
  }
}

/** The client ends an attempt that takes too long. Other requests end because nothing waits for them any more. */
const isOfTime = (reason: unknown): boolean => reason instanceof DOMException && reason.name === 'TimeoutError'

/** Returns code and message of a refusal of the API; empty texts for any other answer. */
const refusalIn = async (answer: Response): Promise<{ readonly code: string; readonly message: string }> => {
  const body: unknown = [400, 401, 403].includes(answer.status)
    ? await answer
        .clone()
        .json()
        .catch(() => null)
    : null
  const { code, message } = (body as { error?: Record<string, unknown> } | null)?.error ?? {}
  return { code: typeof code === 'string' ? code : '', message: typeof message === 'string' ? message : '' }
}

/** A request can be refused for another reason than its moment: then another request has an answer of that moment. */
const noteMoment = (
  moments: Map<string, boolean>,
  url: string,
  { ok, status }: Response,
  isMomentRefused: boolean,
): void => {
  const moment = new URL(url).searchParams.get('as_of')
  const isShown = ok || status === 304
  if (moment === null || !(isShown || isMomentRefused)) return
  const isKnown = moments.get(moment) === true
  moments.delete(moment)
  moments.set(moment, isShown || isKnown)
  const [oldest] = moments.keys()
  if (moments.size > MOMENTS_KEPT && oldest !== undefined) moments.delete(oldest)
}
