/**
 * Freshness: from publishing an event to seeing it through the API, at a steady rate over several organizations. One event
 * in so many is a probe: it is asked for by its id until it is there.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { authorization, type RunningApi, startApi } from './api-process.ts'
import type { Bench, Figure, Measure, Row } from './bench.ts'
import { createDataset, type Organization, payoutOf } from './dataset.ts'
import type { Running } from './process.ts'
import { project } from './projection.ts'
import { createKey, createTopics, type Topics } from './publish.ts'
import { createRandom, type Random } from './random.ts'
import { percentile, spreadOf } from './statistics.ts'
import { type Cpu, watchCpu } from './usage.ts'

/** Milliseconds between two questions for one probe: a tenth of its age, so that a slow answer is not made slower by asking. */
const ASK_MS = 5
const ASK_SHARE = 0.1
/** Milliseconds after which a probe that is not there is a failure. */
const LOST_MS = 30_000

export const measureFreshness: Measure = async bench => {
  const { say, sizes, elasticsearch } = bench
  const { organizations, eventsPerSecond, warmUpSeconds, rounds, secondsPerRound, shape } = sizes.freshness
  await using topics = await createTopics(bench)
  // Reps and periods for so many pairs that each event is a payout of its own.
  const payouts = eventsPerSecond * (warmUpSeconds + rounds * secondsPerRound) + organizations
  const dataset = createDataset({ payouts, organizations, recalculated: 0, ...shape })
  const keys = dataset.organizations.map(({ id }) => createKey(id))
  await topics.publishAll(
    keys.map(({ event }) => event),
    keys.length,
    'publishing API keys',
  )
  const recorded = [...dataset.peopleAndPeriods()]
  await topics.publishAll(recorded, recorded.length, 'publishing reps and periods')

  await using projection = await project(bench, topics)
  await using api = await startApi(bench, projection.prefix, elasticsearch.url)
  const holders = dataset.organizations.map((organization, place) => ({ organization, key: keys[place]?.text ?? '' }))
  const run: Run = {
    bench,
    topics,
    projector: projection.projector,
    api,
    holders,
    random: createRandom('freshness'),
    published: 0,
  }
  const died = heardLater(Promise.race([projection.projector.died, api.process.died]))
  say(
    `publishing ${eventsPerSecond} events/s: ${warmUpSeconds} s to warm up, then ${rounds} times ${secondsPerRound} s`,
  )
  await Promise.race([publishFor(run, warmUpSeconds), died])
  const measured: Probes[] = []
  for (let round = 1; round <= rounds; round++) {
    const probes = await Promise.race([publishFor(run, secondsPerRound), died])
    say(`round ${round}: p50 ${percentile(timesOf(probes), 50).toFixed(0)} ms`)
    measured.push(probes)
  }
  return figureOf(bench, measured)
}

type Run = {
  readonly bench: Bench
  readonly topics: Topics
  readonly projector: Running
  readonly api: RunningApi
  readonly holders: readonly { readonly organization: Organization; readonly key: string }[]
  readonly random: Random
  published: number
}

/** Milliseconds since it was published: when the answer that has it had come, and when the last without it was asked for. */
type Probe = { readonly seen: number; readonly notYet: number; readonly asked: number; readonly refused: number }
type Probes = { readonly probes: readonly Probe[]; readonly perSecond: number; readonly cores: readonly Row[] }

/** Publishes at the rate, whatever becomes of what was published before. */
const publishFor = async (run: Run, seconds: number): Promise<Probes> => {
  const { bench, topics, holders, random } = run
  const { eventsPerSecond, probeEvery, shape } = bench.sizes.freshness
  const acknowledged: Promise<void>[] = []
  const probes: Promise<Probe>[] = []
  const began = performance.now()
  const cpu = watchCpu({
    'the projector': run.projector.pid,
    'the API': run.api.process.pid,
    Elasticsearch: bench.services.elasticsearch?.pid,
    Kafka: bench.services.kafka?.pid,
  })
  for (let sent = 0; sent < eventsPerSecond * seconds; sent++) {
    const due = began + (1000 * sent) / eventsPerSecond
    if (due > performance.now()) await sleep(due - performance.now(), undefined, { signal: bench.signal })
    const holder = holders[run.published % holders.length]
    if (holder === undefined) throw new Error('there is no organization')
    const payout = payoutOf(holder.organization, Math.floor(run.published / holders.length), null, shape, random)
    const at = performance.now()
    const published = topics.publish({ type: 'commission.payout.calculated.v1', data: payout })
    acknowledged.push(heardLater(published))
    if (run.published++ % probeEvery !== 0) continue
    const url = `${run.api.url}/payouts/${payout.id}`
    probes.push(heardLater(published.then(() => lookFor(run, url, holder.key, at))))
  }
  const perSecond = (1000 * acknowledged.length) / (performance.now() - began)
  const cores = coresOf(cpu(), seconds)
  await Promise.all(acknowledged)
  return { probes: await Promise.all(probes), perSecond, cores }
}

/** Cores that each process had. The bench itself publishes and asks on the same cores. */
const coresOf = (cpu: Cpu, seconds: number): Row[] =>
  Object.entries(cpu).map(([name, used]) => ({ what: `CPU of ${name}`, unit: 'cores', value: used / seconds }))

/** Its failure is found when all are waited for: until then it must not pass for one that nobody hears. */
const heardLater = <Result>(promise: Promise<Result>): Promise<Result> => {
  promise.catch(() => undefined)
  return promise
}

/** Asks until the record is there. */
const lookFor = async (
  { api, bench: { signal } }: Run,
  url: string,
  key: string,
  published: number,
): Promise<Probe> => {
  let notYet = 0
  let refused = 0
  for (let asked = 1; ; asked++) {
    const at = performance.now() - published
    const answer = await fetch(url, { headers: authorization(key), signal })
    await answer.arrayBuffer()
    const seen = performance.now() - published
    if (answer.status === 200) return { seen, notYet, asked, refused }
    if (answer.status === 503) refused++
    else if (answer.status !== 404) throw new Error(`the API answers ${answer.status} to ${url}\n${api.process.last()}`)
    if (seen > LOST_MS) throw new Error(`${url} is not there ${LOST_MS / 1000} s after it was published`)
    notYet = at
    await sleep(Math.max(ASK_MS, ASK_SHARE * seen), undefined, { signal })
  }
}

const timesOf = ({ probes }: Probes): number[] => probes.map(({ seen }) => seen)

const figureOf = ({ sizes }: Bench, rounds: readonly Probes[]): Figure => {
  const { organizations, eventsPerSecond, secondsPerRound, probeEvery } = sizes.freshness
  const at = (percent: number) => spreadOf(rounds.map(round => percentile(timesOf(round), percent)))
  const all = rounds.flatMap(({ probes }) => probes)
  const asked = all.reduce((sum, probe) => sum + probe.asked, 0) / (rounds.length * secondsPerRound)
  const unsure = percentile(
    all.map(({ seen, notYet }) => seen - notYet),
    50,
  )
  const processes = rounds[0]?.cores.map(({ what }) => what) ?? []
  return {
    name: 'freshness',
    title: `Freshness: from publishing to seeing it through the API, at ${eventsPerSecond} events/s`,
    rows: [
      { what: 'publish → visible, p50', unit: 'ms', ...at(50), atMost: 60 },
      { what: 'publish → visible, p99', unit: 'ms', ...at(99), atMost: 400 },
      { what: 'publish → visible, longest', unit: 'ms', ...at(100) },
      { what: 'published', unit: 'events/s', ...spreadOf(rounds.map(({ perSecond }) => perSecond)) },
      { what: 'answered with 503', unit: 'requests', value: all.reduce((sum, { refused }) => sum + refused, 0) },
      ...processes.map(
        (what): Row => ({
          what,
          unit: 'cores',
          ...spreadOf(rounds.flatMap(({ cores }) => cores.find(row => row.what === what)?.value ?? [])),
        }),
      ),
    ],
    notes: [
      `Payouts of their own over ${organizations} organizations, each sent to Kafka by itself when it is due, ${rounds.length} times ${secondsPerRound} s after a time to warm up. One in ${probeEvery} (${all.length} in all) is asked for by its id, from its acknowledgement on, ${ASK_MS} ms (later a tenth of its age) after each answer that does not have it: ${asked.toFixed(0)} requests/s beside the publishing.`,
      `The time ends when the answer that has the record has come. How precise that is: half of the probes were still not there ${unsure.toFixed(0)} ms before.`,
    ],
  }
}
