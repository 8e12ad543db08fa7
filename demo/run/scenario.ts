/** The scenario: publish, wait until searchable, publish one by one and measure, read everything back, compare. */
import type { Client } from '@elastic/elasticsearch'
import { createClient } from '../../client/src/index.ts'
import type { Stream } from '../../schemas/events.ts'
import type { ReportProgress, Say } from '../../services/service.ts'
import { type AnswerDifference, compareParked, compareValues } from '../check/compare.ts'
import { readDemoParked } from '../check/parked.ts'
import { type Case, recordsToRead, verifyAnswers } from '../check/verify.ts'
import type { DemoRecord } from '../data/demo-record.ts'
import { type expectedOf, expectedParked } from '../data/expected.ts'
import { makeOrganizations } from '../data/organization.ts'
import type { Publisher } from '../data/publish.ts'
import { createRandom } from '../data/random.ts'
import type { DemoNames } from './installation.ts'
import { makeProbeOrganization, measureLatencies } from './latency-probe.ts'
import { type Counts, readCounts, waitUntilCaughtUp } from './projector-admin.ts'

type ScenarioOptions = {
  readonly seed: number
  readonly years: number
  readonly probes: number
  readonly partitions: number
}

type ScenarioParts = {
  readonly base: string
  readonly projectorAdmin: string
  readonly names: DemoNames
  readonly publisher: Publisher
  readonly client: Client
  readonly expect: typeof expectedOf
  readonly say: Say
  readonly progress: ReportProgress
  readonly elapsed: () => number
  readonly signal: AbortSignal
}

type Figures = {
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
export type ScenarioResult = {
  readonly figures: Figures
  readonly cases: readonly Case[]
  readonly differences: readonly AnswerDifference[]
}

/** Runs the scenario once. @throws Error if a step fails; differences are no failure */
export const runScenario = async (options: ScenarioOptions, parts: ScenarioParts): Promise<ScenarioResult> => {
  const { say, signal, projectorAdmin } = parts
  const organizations = makeOrganizations(options.seed, options)
  const probe = makeProbeOrganization(options.seed, options.probes)
  const first = [...organizations, probe].flatMap(({ sent }) => sent)
  const all = [...first, ...probe.payouts]
  say(`publishing ${organizations.map(({ name }) => name).join(' and ')}, made with seed ${options.seed}`)

  await parts.publisher.connect()
  const [publishSeconds] = await timed(parts, () => publish(first, parts))
  const [searchableSeconds] = await timed(parts, () => waitUntilSearchable(first.length, parts))
  const latencies = await publishProbes(probe, parts)
  await waitUntilSearchable(all.length, parts)

  const cases = [...organizations, probe].map(organization => ({
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

const publish = async (sent: readonly DemoRecord[], { names, publisher, progress }: ScenarioParts): Promise<void> => {
  let done = 0
  const onPublished = (count: number) => {
    done += count
    progress({ what: 'publishing', done, total: sent.length })
  }
  for (const stream of ['api-keys', 'events'] satisfies Stream[]) {
    const messages = sent.filter(each => each.stream === stream).map(({ message }) => message)
    await publisher.publish(names.topics[stream], messages, onPublished)
  }
}

const waitUntilSearchable = async (
  published: number,
  { projectorAdmin, progress, signal }: ScenarioParts,
): Promise<void> =>
  waitUntilCaughtUp(projectorAdmin, published, done => progress({ what: 'projecting', done, total: published }), signal)

const publishProbes = async (
  { name, keys, payouts }: ReturnType<typeof makeProbeOrganization>,
  { base, names, publisher, say, progress, elapsed, signal }: ScenarioParts,
): Promise<number[]> => {
  say(`publishing ${payouts.length} payouts of ${name} one by one, each read from the API before the next`)
  return measureLatencies(payouts, {
    publish: ({ message }) => publisher.publish(names.topics.events, [message]),
    client: createClient({ baseUrl: base, key: keys.reading.text, signal }),
    elapsed,
    onMeasured: done => progress({ what: 'publish → visible', done, total: payouts.length }),
    signal,
  })
}

const readBack = async (
  { seed }: ScenarioOptions,
  cases: readonly Case[],
  { base, say, progress, signal }: ScenarioParts,
  onRead: (count: number) => void,
): Promise<AnswerDifference[]> => {
  const total = recordsToRead(cases)
  say('reading everything back: every list to its end, every replaced payout, a sample of statements')
  let done = 0
  return verifyAnswers(cases, {
    clientFor: key => createClient({ baseUrl: base, key, signal }),
    onRead: count => {
      done += count
      onRead(count)
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

const timed = async <Result>({ elapsed }: ScenarioParts, work: () => Promise<Result>): Promise<[number, Result]> => {
  const began = elapsed()
  const result = await work()
  return [(elapsed() - began) / 1000, result]
}
