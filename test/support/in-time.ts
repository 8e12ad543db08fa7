/** Reads on a busy machine: the API gives a request few seconds, and says 503 then. Its records have no fault. */
import { expect } from 'vitest'
import type { ServedApi } from './api.ts'
import type { Api, LogLine } from './processes.ts'
import { eventually } from './scope.ts'

/** Milliseconds during which a request whose time was up is sent again. */
const SLOW_MAX = 60_000
/** Milliseconds in which the line of an answer is written. */
const LINE_WITHIN = 5_000
/** The time of a request or of its search was up, or too many searches waited in Elasticsearch. */
export const LATE: readonly string[] = [
  ...['time_is_up', 'elasticsearch_timed_out', 'elasticsearch_timeout', 'elasticsearch_overloaded'],
]
/** Also: it waited for its turn behind others of its organization. */
export const SLOW: readonly string[] = [...LATE, 'reads_of_organization', 'large_answers']

/**
 * Sends a request again while the API is slow. Returns every other answer, also a 503 for another reason.
 * @param lines the log of the API, which has the reasons
 */
export const inTime = async <Answer extends { readonly status: number; readonly headers: Headers }>(
  ask: () => Promise<Answer>,
  lines: () => readonly LogLine[],
  reasons = SLOW,
): Promise<Answer> => {
  const began = performance.now()
  for (;;) {
    const answer = await ask()
    if (answer.status !== 503 || performance.now() - began >= SLOW_MAX) return answer
    const findLine = () => lines().find(({ request_id }) => request_id === answer.headers.get('x-request-id'))
    // A process writes the line of an answer later; of many answers without a valid key it writes few.
    const wasWritten = eventually(() => expect(findLine()).toBeDefined(), { within: LINE_WITHIN })
    await wasWritten.catch(() => undefined)
    const line = findLine()
    if (line !== undefined && !reasons.includes(String(line.because))) return answer
  }
}

/** A request to an API process, sent again while its time is up. */
export const fetchInTime = (api: Pick<Api, 'url' | 'lines'>, path: string, key: string): Promise<Response> =>
  inTime(
    () => fetch(`${api.url}${path}`, { headers: { authorization: `Bearer ${key}` } }),
    () => api.lines(),
  )

/** Asks a projector for a receipt again while it answers 503: a read for receipts has 3 s. Returns any other answer. */
export const receiptInTime = <Answer extends { readonly status: number }>(
  ask: () => Promise<Answer>,
): Promise<Answer> =>
  eventually(async () => {
    const answer = await ask()
    expect(answer.status).not.toBe(503)
    return answer
  })

/** Returns commands in which each curl asks an API again while it answers 503, and prints no refused answer. */
export const curlInTime = (commands: string): string =>
  commands.replaceAll(/curl -sf? /g, 'curl -sf --retry 30 --retry-delay 1 ')

type Logged = Pick<ServedApi, 'logged'>

export const loggedBy = ({ logged }: Logged): readonly LogLine[] => logged.map(line => JSON.parse(line))

/** Whether an answer is the refusal of a request whose time was up. @param id its X-Request-Id */
export const wasLate = (api: Logged, id: string | null | undefined): boolean =>
  typeof id === 'string' &&
  loggedBy(api).some(({ request_id, because }) => request_id === id && LATE.includes(String(because)))

/** Requests to an API of this process, sent again while the time of each is up. */
export const patient =
  (api: Pick<ServedApi, 'ask'> & Logged): ServedApi['ask'] =>
  (...given) =>
    inTime(
      () => api.ask(...given),
      () => loggedBy(api),
      LATE,
    )
