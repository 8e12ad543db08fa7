/**
 * Reads of the feed by something else than a cursor: as of an instant, and after a sequence. Each answer is compared
 * with the model at the position of the answer.
 */
import type { ReadList } from '../../core/reading/pages/read-list.ts'
import { Refusal } from '../../core/runtime/refusals.ts'
import type { Random } from '../support/random.ts'
import { scopeOf } from '../support/read-scope.ts'
import type { Clock } from './clock.ts'
import type { Coverage } from './coverage.ts'
import type { History } from './history.ts'
import { eventsUpTo, mayBeRemembered } from './moments.ts'

export type FeedReading = {
  readonly random: Random
  readonly history: History
  readonly coverage: Coverage
  readonly clock: Clock
  readonly fail: (reason: string) => void
  readonly read: (...of: Parameters<ReadList>) => Promise<Awaited<ReturnType<ReadList>> | Refusal | undefined>
  readonly positionOf: (org: string) => number
}

/** An instant must have the events up to it, or be refused where their times do not say which these are. */
export const lookBack = async ({ random, history, coverage, clock, fail, read, positionOf }: FeedReading) => {
  const org = random.pick(history.organizations)
  const state = () => ({ events: history.eventsOf(org, positionOf(org)), now: clock.now() })
  const before = state()
  if (before.events.length === 0) return
  const instant = random.pick(before.events).at + random.pick([-1, 0, 1, 500])
  const asOf = { kind: 'instant', milliseconds: instant } as const
  const page = await read(scopeOf(org), { list: 'payouts', limit: 1, startingAfter: undefined, asOf, filter: {} })
  const after = state()
  const [wanted, other] = [before, after].map(({ events, now }) => eventsUpTo(events, instant, now))
  if (page === undefined || wanted === 'unknown' || wanted !== other) return
  coverage.count('instants compared with the model')
  if (wanted === 'refused') coverage.count('instants that times do not decide')
  const got =
    page instanceof Refusal ? 'refused' : after.events.filter(({ seq }) => seq < page.position.publishedTo).length
  const wasAnswer = got !== 'refused' && mayBeRemembered(after.events, instant, after.now, got)
  if (got !== wanted && !(wanted === 'refused' && wasAnswer))
    fail(`${org} as of ${instant}: ${got} of its events, and not ${wanted}`)
}

/** A page after a sequence must have the changes with the next ones, without a gap, and with their sequences. */
export const readAfter = async ({ random, history, coverage, fail, read, positionOf }: FeedReading) => {
  const org = random.pick(history.organizations)
  const sequence = random.below(history.eventsOf(org, positionOf(org)).length + 1)
  const asked = { list: 'changes', limit: random.pick([1, 3, 50]), startingAfter: undefined } as const
  const page = await read(scopeOf(org), { ...asked, after: sequence, asOf: undefined })
  if (page === undefined) return
  const what = `changes of ${org} after the sequence ${sequence}`
  if (page instanceof Refusal) return fail(`${what} are refused with ${page.code}`)
  coverage.count('changes after a sequence compared with the model')
  const behind = history.eventsOf(org, page.position.publishedTo).slice(sequence)
  const wanted = behind.slice(0, asked.limit).map(({ seq }, at) => `${seq} is ${sequence + at + 1}`)
  const got = page.hits.map(({ sortValue }, at) => `${sortValue} is ${page.sequences?.[at]}`)
  if (got.join() !== wanted.join() || page.hasMore !== behind.length > asked.limit)
    fail(`${what} at ${page.position.publishedTo}: ${got}, and not ${wanted}`)
}
