/**
 * One key at work. Only the closure of its clients has the key: no storage, no address and no element of the page. Its
 * answers are in its clients. A page has one session, and another key begins with a new page.
 */
import { type Client, createClient } from '../../../client/src/index.ts'

/** The headers of the latest answer, and its refusal. */
export type Observed = {
  /** Everything published up to this instant is included; undefined before the first answer. */
  readonly upTo: string | undefined
  /** The last request that the service refused for now. The client sends it again. Undefined once it is answered. */
  readonly busy: { readonly status: number; readonly seconds: string | undefined } | undefined
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
}

type Refused = { readonly status: number; readonly seconds: string | undefined; readonly until: number }

/** The service names a minute at most, and the client sends a refused request again soon after that time. */
const SENT_AGAIN_MS = 75_000
const MOMENTS_KEPT = 100

/** @param base the address of the API with its path */
export const openSession = (base: string, key: string, onObserved: (observed: Observed) => void): Session => {
  let upTo: string | undefined
  let isKnown = false
  let isUnknownKey = false
  // By address: the answer to another request does not end the wait of this one.
  const refused = new Map<string, Refused>()
  const moments = new Map<string, boolean>()
  const observe = (): void => {
    // The client has given up the older ones, or nothing on the page waits for them.
    for (const [url, { until }] of refused) if (performance.now() >= until) refused.delete(url)
    onObserved({ upTo, busy: [...refused.values()].at(-1), isUnknownKey, moments: new Map(moments) })
  }
  const send = async (request: Request): Promise<Response> => {
    // The browser must not write pay to its disk: answers as of a change may be stored.
    const answer = await fetch(request, { cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' })
    upTo = answer.headers.get('Projection-Time') ?? upTo
    refused.delete(request.url)
    noteMoment(moments, request.url, answer.status)
    isKnown ||= answer.ok || answer.status === 403
    isUnknownKey = answer.status === 401 && !isKnown
    if ([429, 502, 503, 504].includes(answer.status)) {
      const seconds = answer.headers.get('Retry-After') ?? undefined
      refused.set(request.url, { status: answer.status, seconds, until: performance.now() + SENT_AGAIN_MS })
      // A timer may be early.
      setTimeout(observe, SENT_AGAIN_MS + 10)
    }
    observe()
    return answer
  }
  const options = { baseUrl: base, key, fetch: send }
  return {
    client: createClient(options),
    clientUntil: signal => createClient({ ...options, signal, keptCharacters: 0 }),
  }
}

/** A request can be refused for another reason than its moment: then another request has an answer of that moment. */
const noteMoment = (moments: Map<string, boolean>, url: string, status: number): void => {
  const moment = new URL(url).searchParams.get('as_of')
  const isShown = (status >= 200 && status < 300) || status === 304
  if (moment === null || !(isShown || status === 400)) return
  const isKnown = moments.get(moment) === true
  moments.delete(moment)
  moments.set(moment, isShown || isKnown)
  const [oldest] = moments.keys()
  if (moments.size > MOMENTS_KEPT && oldest !== undefined) moments.delete(oldest)
}
