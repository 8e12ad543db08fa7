/** The scenario: publish, wait until searchable, publish one by one and measure, read everything back, compare. */
import type { Client } from '@elastic/elasticsearch'
import type { Stream } from '../../schemas/events.ts'
import type { ReportProgress, Say } from '../../services/service.ts'
import { type AnswerDifference, compareParked, compareValues } from '../check/compare.ts'
import { readDemoParked } from '../check/parked.ts'
import { createApiReader } from '../check/read-api.ts'
import { type Case, recordsToRead, verifyAnswers } from '../check/verify.ts'
import type { DemoRecord } from '../data/demo-record.ts'
import { type expectedOf, expectedParked } from '../data/expected.ts'
import { makeOrganizations } from '../data/organization.ts'
import type { Publisher } from '../data/publish.ts'
import { createRandom } from '../data/random.ts'
import type { DemoNames } from './installation.ts'
import { makePulse, measure } from './latency-probe.ts'
import { type Counts, readCounts, waitUntilCaughtUp } from './projector-admin.ts'

export type ShowOptions = {
  readonly seed: number
  readonly years: number
  readonly pulse: number
  readonly partitions: number
}

export type ShowParts = {
  readonly base: string
  readonly projectorAdmin: string
  readonly names: DemoNames
  readonly publisher: Publisher
  readonly client: Client
  readonly expect: typeof expectedOf
  readonly say: Say
  readonly progress: ReportProgress
  readonly now: () => number
  readonly signal: AbortSignal
}

export type Figures = {
  readonly published: number
  readonly publishSeconds: number
  /** From the last acknowledgement until readers may see everything. */
  readonly searchableSeconds: number
  readonly counts: Counts
  readonly read: number
  readonly readSeconds: number
  /** From publishing to visible, milliseconds of each. */
  readonly latencies: readonly number[]
}
export type Shown = {
  readonly figures: Figures
  readonly cases: readonly Case[]
  readonly differences: readonly AnswerDifference[]
}

export const runScenario = async (options: ShowOptions, parts: ShowParts): Promise<Shown> => {
  const { say, signal, projectorAdmin } = parts
  const organizations = makeOrganizations(options.seed, options)
  const pulse = makePulse(options.seed, options.pulse)
  const first = [...organizations, pulse].flatMap(({ sent }) => sent)
  const all = [...first, ...pulse.payouts]
  say(`publishing ${organizations.map(({ name }) => name).join(' and ')}, made with seed ${options.seed}`)

  await parts.publisher.connect()
  const [publishSeconds] = await timed(parts, () => publish(first, parts))
  const [searchableSeconds] = await timed(parts, () => untilSearchable(first.length, parts))
  const latencies = await measurePulse(pulse, parts)
  await untilSearchable(all.length, parts)

  const cases = [...organizations, pulse].map(organization => ({
    organization,
    expected: parts.expect(organization.id, all),
  }))
  let read = 0
  const [readSeconds, differences] = await timed(parts, () => readBack(options, cases, parts, count => (read += count)))
  const counts = await readCounts(projectorAdmin, signal)
  const parked = compareParked(expectedParked(all), await readDemoParked(parts.client, parts.names.prefix))
  return {
    figures: { published: all.length, publishSeconds, searchableSeconds, counts, read, readSeconds, latencies },
    cases,
    differences: [...differences, ...parked, ...compareCounts(all, counts)],
  }
}

const publish = async (sent: readonly DemoRecord[], { names, publisher, progress }: ShowParts): Promise<void> => {
  let done = 0
  const published = (count: number) => {
    done += count
    progress({ what: 'publishing', done, total: sent.length })
  }
  for (const stream of ['api-keys', 'events'] satisfies Stream[]) {
    const messages = sent.filter(each => each.stream === stream).map(({ message }) => message)
    await publisher.publish(names.topics[stream], messages, published)
  }
}

const untilSearchable = async (published: number, { projectorAdmin, progress, signal }: ShowParts): Promise<void> =>
  waitUntilCaughtUp(projectorAdmin, published, done => progress({ what: 'projecting', done, total: published }), signal)

const measurePulse = async (
  { name, keys, payouts }: ReturnType<typeof makePulse>,
  { base, names, publisher, say, progress, now, signal }: ShowParts,
): Promise<number[]> => {
  say(`publishing ${payouts.length} payouts of ${name} one by one, each read from the API before the next`)
  return measure(payouts, {
    publish: ({ message }) => publisher.publish(names.topics.events, [message]),
    reader: createApiReader(base, keys.reading.text, signal),
    now,
    measured: done => progress({ what: 'publish → visible', done, total: payouts.length }),
    signal,
  })
}

const readBack = async (
  { seed }: ShowOptions,
  cases: readonly Case[],
  { base, say, progress, signal }: ShowParts,
  read: (count: number) => void,
): Promise<AnswerDifference[]> => {
  const total = recordsToRead(cases)
  say('reading everything back: every list to its end, every replaced payout, a sample of statements')
  let done = 0
  return verifyAnswers(cases, {
    readerFor: key => createApiReader(base, key, signal),
    read: count => {
      done += count
      read(count)
      progress({ what: 'reading', done: Math.min(done, total), total })
    },
    random: createRandom(seed),
  })
}

/** Compares the counts, unless they are too high: after a rebalance the projector counts records again. */
const compareCounts = (sent: readonly DemoRecord[], counts: Counts): AnswerDifference[] => {
  const outcomeOf = ({ outcome }: DemoRecord) => (outcome === 'applied' || outcome === 'duplicate' ? outcome : 'parked')
  const expected = { applied: 0, duplicate: 0, parked: 0 }
  for (const each of sent) expected[outcomeOf(each)]++
  if (counts.applied + counts.duplicate + counts.parked > sent.length) return []
  return compareValues('counted by the projector', expected, counts)
}

const timed = async <Result>({ now }: ShowParts, work: () => Promise<Result>): Promise<[number, Result]> => {
  const began = now()
  const result = await work()
  return [(now() - began) / 1000, result]
}
