/** Reads on a busy machine: the API gives a request 3 s, and says 503 then. That is not a fault of what it reads. */
import { expect } from 'vitest'
import type { LogLine } from './processes.ts'
import { eventually } from './scope.ts'

/** Milliseconds during which a request whose time was up is sent again. */
const SLOW_MAX = 60_000
/** The last two: a request waited 2 s for its turn behind others of its organization. */
const SLOW = [
  'time_is_up',
  'elasticsearch_timed_out',
  'elasticsearch_timeout',
  'reads_of_organization',
  'large_answers',
]

/**
 * Sends a request again while the time of each is up. Returns every other answer, also a 503 for another reason.
 * @param lines the log of the API, which has the reasons
 */
export const inTime = async <Answer extends { readonly status: number; readonly headers: Headers }>(
  ask: () => Promise<Answer>,
  lines: () => readonly LogLine[],
): Promise<Answer> => {
  const began = performance.now()
  for (;;) {
    const answer = await ask()
    if (answer.status !== 503 || performance.now() - began >= SLOW_MAX) return answer
    // A process writes the line of an answer later.
    const reason = await eventually(() => {
      const line = lines().find(({ request_id }) => request_id === answer.headers.get('x-request-id'))
      expect(line).toBeDefined()
      return String(line?.because)
    })
    if (!SLOW.includes(reason)) return answer
  }
}
