/**
 * Archive and restore beside a live projector: records a second at a limit of the rate, and how much later readers see
 * events meanwhile. The restore goes into other topics of the same broker, then into a broker of its own.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { endProcess } from '../../services/run-program.ts'
import { startServer } from '../../services/services.ts'
import { TIMES_KEPT_WAIT_MS } from '../../tools/limits.ts'
import { createTopics, publishDataset, type Topics } from '../processes/publish.ts'
import type { Bench, Figure, FigureRow, Measure } from '../rig/bench.ts'
import { createDataset } from '../rig/dataset.ts'
import { percentile } from '../rig/statistics.ts'
import { EVERYTHING_ELSE } from '../rig/usage.ts'
import { measureRound, type System, sizeOf, startOurs } from './freshness.ts'
import { coresOf, type FreshnessRound, timesOf } from './freshness-figure.ts'

/** Targets: records a second, and times of readers as a share of those without an archive or a restore. */
const RECORDS_PER_SECOND = 20_000
const OF_ALONE = 1.5

/** Messages of a restore that begin a phase in which every record is read or appended. */
const PHASES = ['verifying', 'appending', 'comparing every record'] as const
/** Seconds of one round of publishing. A round in which a phase ends belongs to none. */
const ROUND_SECONDS = 1
/** Events are published for this time at most: they need reps and periods that have no payout yet. */
const STREAM_SECONDS_MAX = 400

export const measureArchive: Measure = async bench => {
  const { payouts, shape, rate } = bench.sizes.archive
  const freshness = { ...bench.sizes.freshness, shape, rates: [rate], rounds: 1, secondsPerRound: STREAM_SECONDS_MAX }
  await using stack = new AsyncDisposableStack()
  const ours = { ...bench, sizes: { ...bench.sizes, freshness } }
  const { system } = await startOurs(ours, sizeOf(freshness), stack)
  // A log of its own, on the same broker: the projector needs not project it first.
  const archived = stack.use(await createTopics(bench))
  await publishDataset(archived, createDataset({ ...sizeOf(freshness), payouts }), payouts)
  // Awaited here: its resources are disposed of on return.
  return await measureBeside(bench, system, archived)
}

/** Measures beside a projector and an API that run. */
export const measureBeside = async (bench: Bench, system: System, topics: Topics): Promise<Figure> => {
  const { services, sizes } = bench
  const { rate, maxRate, warmUpSeconds, aloneSeconds } = sizes.archive
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'commission-bench-archive-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  await measureRound(bench, system, rate, warmUpSeconds)
  const alone = await measureRound(bench, system, rate, aloneSeconds)

  const limit = maxRate === undefined ? [] : ['--max-rate', String(maxRate)]
  const archive = ['archive', '--to', join(folder, 'archive'), ...limit]
  const restore = ['restore', '--from', join(folder, 'archive'), ...limit]
  const archived = await runBeside(bench, system, archive, topics)
  const sameBroker = stack.use(await createTopics(bench))
  const restored = await runBeside(bench, system, restore, sameBroker)
  const other = stack.use(await startServer('kafka', { say: bench.say, environment: process.env }))
  const otherBroker = stack.use(
    await createTopics({ ...bench, services: { ...services, kafkaBrokers: other.address } }),
  )
  const withOther = { ...system, pids: { ...system.pids, 'the other Kafka': other.pid } }
  const elsewhere = await runBeside(bench, withOther, restore, otherBroker)

  const limited = maxRate === undefined ? 'without a limit' : `with --max-rate ${maxRate}`
  return {
    name: 'archive',
    title: `Archive and restore ${limited}, beside ${rate.eventsPerSecond} events/s`,
    rows: [
      { what: 'publish → visible alone, p50', unit: 'ms', value: timeOf([alone], 50) },
      { what: 'publish → visible alone, p99', unit: 'ms', value: timeOf([alone], 99) },
      ...coreRows('alone', [alone]),
      ...rowsOf('archive', archived, alone),
      ...rowsOf('restore', restored, alone),
      ...rowsOf('restore to another broker', elsewhere, alone),
    ],
    notes: [],
  }
}

type Phase = { readonly name: string; readonly seconds: number; readonly rounds: readonly FreshnessRound[] }
type Beside = { readonly records: number; readonly phases: readonly Phase[] }

/** Runs a command of the archive while events are published, and reads its phases from its messages. */
const runBeside = async (
  bench: Bench,
  system: System,
  args: readonly string[],
  { settings }: Pick<Topics, 'settings'>,
): Promise<Beside> => {
  const child = spawn(process.execPath, ['tools/main.ts', ...args, '--json'], {
    cwd: join(import.meta.dirname, '..', '..'),
    env: { ...process.env, ...settings },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exitHook = runOnExit('kill -9 "$0"', String(child.pid))
  const [program = ''] = args
  const phases = [{ name: program, began: performance.now(), rounds: [] as FreshnessRound[] }]
  const said: string[] = []
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  createInterface({ input: child.stderr }).on('line', line => {
    said.push(line)
    const name = PHASES.find(one => line.startsWith(one))
    if (name !== undefined) phases.push({ name, began: performance.now(), rounds: [] })
  })
  const exit = once(child, 'exit')
  const ended = exit.then(() => performance.now())
  const besides = { ...system, pids: { ...system.pids, [`the ${program}`]: child.pid } }
  try {
    while (child.exitCode === null) {
      const phase = phases.at(-1)
      const round = await measureRound(bench, besides, bench.sizes.archive.rate, ROUND_SECONDS)
      if (child.exitCode === null && phase === phases.at(-1)) phase?.rounds.push(round)
    }
  } finally {
    await endProcess(child, exit, 'SIGTERM', 15_000)
    await exitHook.revoke()
  }
  if (child.exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${child.exitCode}:\n${said.join('\n')}`)
  const end = await ended
  const { records }: { records: number } = JSON.parse(out)
  const timed = phases.map(({ name, began, rounds }, index) => {
    const lasted = (phases[index + 1]?.began ?? end) - began - (name === 'appending' ? TIMES_KEPT_WAIT_MS : 0)
    return { name, seconds: lasted / 1000, rounds }
  })
  // A restore begins with the start of Node. A phase without a round is too short to be measured.
  return { records, phases: timed.length > 1 ? timed.slice(1).filter(({ rounds }) => rounds.length > 0) : timed }
}

const timeOf = (rounds: readonly FreshnessRound[], percent: number): number =>
  percentile(
    rounds.flatMap(({ probes }) => timesOf(probes)),
    percent,
  )

const rowsOf = (what: string, { records, phases }: Beside, alone: FreshnessRound): FigureRow[] =>
  phases.flatMap(({ name, seconds, rounds }) => {
    const title = name === what ? what : `${what}, ${name}`
    const ratio = (percent: number): FigureRow => ({
      what: `${title}: p${percent} / alone`,
      unit: '',
      value: timeOf(rounds, percent) / timeOf([alone], percent),
      isRatio: true,
      atMost: OF_ALONE,
    })
    const rate = { what: title, unit: 'records/s', value: records / seconds, atLeast: RECORDS_PER_SECOND }
    // A phase of less than a round has no times of readers.
    if (rounds.length === 0) return [rate]
    return [
      rate,
      { what: `${title}: publish → visible, p50`, unit: 'ms', value: timeOf(rounds, 50) },
      { what: `${title}: publish → visible, p99`, unit: 'ms', value: timeOf(rounds, 99) },
      ratio(50),
      ratio(99),
      ...coreRows(title, rounds),
    ]
  })

/** CPU of the command and of the servers, the median of the rounds. */
const coreRows = (title: string, rounds: readonly FreshnessRound[]): FigureRow[] =>
  SHOWN.filter(name => rounds[0]?.cpu[name] !== undefined).map(name => {
    return { what: `${title}: CPU of ${name}`, unit: 'cores', value: coresOf(rounds, name).value }
  })
const SHOWN = ['the archive', 'the restore', 'Kafka', 'the other Kafka', 'Elasticsearch', EVERYTHING_ELSE]
