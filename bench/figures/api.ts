/**
 * The API beside its own searches: pages, single records and statements of an organization with many payouts are read
 * through the API and, by the same load tool, the recorded searches and multi-gets are sent straight to Elasticsearch.
 * Rounds alternate. Then a whole walk, and pages while a projector writes.
 */
import { walkPayouts } from '../processes/api-process.ts'
import { type Recording, record } from '../processes/api-recordings.ts'
import { createSteadyPublisher } from '../processes/constant-rate.ts'
import { waitForPositions } from '../processes/projection.ts'
import { type Holder, type Served, serve } from '../processes/read-rig.ts'
import type { Bench, Figure, FigureRow, Measure, Picture } from '../rig/bench.ts'
import { separate } from '../rig/cores.ts'
import { applyLoad, type Load } from '../rig/load.ts'
import { type Spread, spreadOf } from '../rig/statistics.ts'
import { type Cpu, EVERYTHING_ELSE, serverPids, watchCpu } from '../rig/usage.ts'

/** The number of connections that has targets, and the targets: shares of the straight rate. */
const TARGET_CONNECTIONS = 8
const targets: Partial<Record<Recording['what'], number>> = { 'page of 50': 0.75, 'page of 200': 0.85 }
const WALK_LIMIT = 200

export const measureApi: Measure = async bench => {
  const { say, sizes } = bench
  const { data, whileProjecting } = sizes.api
  const free = Math.ceil(
    (whileProjecting.eventsPerSecond * whileProjecting.seconds * whileProjecting.rounds) / data.organizations,
  )
  await using served = await serve(bench, { ...data, free })
  const [reader] = served.holders
  if (reader === undefined) throw new Error('there is no organization')

  const recordings = await record(bench, served.projection.prefix, served.api.url, reader.key)
  const figures: Figure[] = []
  const rounds: Round[] = []
  for (const recording of recordings) {
    const measured = await measureReading(bench, recording, served)
    say(`${recording.what}: measured`)
    rounds.push(...measured)
    figures.push(figureOf(recording, measured))
  }
  const separated = await measureSeparated(bench, recordings, served)
  const walked = await measureWalk(bench, reader, served)
  const pages = recordings.find(({ what }) => what === 'page of 200')
  if (pages === undefined) throw new Error('there are no pages of 200')
  const writing = await measureWhileProjecting(bench, pages, served)
  return [
    ...figures.map((figure, index) =>
      index === 0 ? introduced(bench, figure, walked.records, recordings, rounds) : figure,
    ),
    ...separated,
    walkFigure(walked),
    whileProjectingFigure(bench, writing),
  ]
}

type Round = {
  readonly what: Recording['what']
  readonly connections: number
  readonly api: Load
  readonly raw: Load
  readonly apiCpu: Cpu
  readonly rawCpu: Cpu
}

/** For every number of connections: straight first, then the API, each for the same time. */
const measureReading = async (
  bench: Bench,
  { what, api, raw }: Recording,
  served: Served,
  connections: readonly number[] = bench.sizes.api.connections,
): Promise<Round[]> => {
  const { rounds, warmUpSeconds, secondsPerRound } = bench.sizes.api
  const one = async (requests: Recording['api'], open: number, seconds: number) => {
    const cpu = watchCpu(pidsOf(bench, served))
    const options = { requests, connections: open, milliseconds: seconds * 1000, signal: bench.signal }
    const measured = await Promise.race([applyLoad(options), served.died])
    return { measured, cpu: cpu() }
  }
  for (const requests of [raw, api]) await one(requests, TARGET_CONNECTIONS, warmUpSeconds)
  const all: Round[] = []
  for (let round = 1; round <= rounds; round++) {
    for (const open of connections) {
      const straight = await one(raw, open, secondsPerRound)
      const through = await one(api, open, secondsPerRound)
      const [apiCpu, rawCpu] = [through.cpu, straight.cpu]
      const loads = { api: through.measured, raw: straight.measured }
      all.push({ what, connections: open, ...loads, apiCpu, rawCpu })
    }
  }
  return all
}

/** Measures only requests with a target. Returns nothing if processes cannot be pinned to cores. */
const measureSeparated = async (bench: Bench, recordings: readonly Recording[], served: Served): Promise<Figure[]> => {
  await using separated = await separate(bench, [served.api.process.pid, served.projection.projector.pid])
  const figures: Figure[] = []
  for (const recording of separated ? recordings.filter(({ what }) => what in targets) : []) {
    const rounds = await measureReading(bench, recording, served, [TARGET_CONNECTIONS])
    const where = 'each on a core of its own'
    bench.say(`${recording.what}, ${where}: measured`)
    figures.push({
      name: 'api',
      title: `API: ${recording.what}, ${where}`,
      rows: rowsOf(`${recording.what}, ${where}`, targets[recording.what], TARGET_CONNECTIONS, rounds),
      notes: [
        'Elasticsearch and Kafka run on one core; the API, the load tool and the projector on another one. So the CPU of the API takes nothing from Elasticsearch, as on separate machines. Requests of the API beyond the search still do.',
      ],
    })
  }
  return figures
}

const pidsOf = ({ services }: Bench, { api, projection }: Served) => ({
  'the API': api.process.pid,
  'the projector': projection.projector.pid,
  ...serverPids(services),
})

const figureOf = ({ what }: Recording, all: readonly Round[]): Figure => ({
  name: 'api',
  title: `API: ${what}, compared with straight requests to Elasticsearch`,
  rows: [...new Set(all.map(({ connections }) => connections))].flatMap(connections =>
    rowsOf(
      what,
      connections === TARGET_CONNECTIONS ? targets[what] : undefined,
      connections,
      all.filter(round => round.connections === connections),
    ),
  ),
  notes: [],
})

/** @param what identifies the ratio in other results */
const rowsOf = (
  what: string,
  target: number | undefined,
  connections: number,
  rounds: readonly Round[],
): FigureRow[] => {
  const among = connections === 1 ? '1 connection' : `${connections} connections`
  const of = (name: string, unit: string, pick: (round: Round) => number | undefined): FigureRow[] => {
    const values = rounds.flatMap(round => pick(round) ?? [])
    return values.length === 0 ? [] : [{ what: `${among}: ${name}`, unit, ...spreadOf(values) }]
  }
  const ratio = of('API / straight', '', ({ api, raw }) => api.perSecond / raw.perSecond).map(row => ({
    ...row,
    key: `${what}, ${row.what}`,
    isRatio: true as const,
    ...(target !== undefined && { atLeast: target }),
  }))
  const perRequest = (cpu: Cpu, name: string, { requests }: Load): number | undefined => {
    const used = cpu[name]
    return used === undefined ? undefined : (1_000 * used) / requests
  }
  return [
    ...of('API', 'requests/s', ({ api }) => api.perSecond),
    ...of('straight to Elasticsearch', 'requests/s', ({ raw }) => raw.perSecond),
    ...ratio,
    ...of('API, p50', 'ms', ({ api }) => api.p50),
    ...of('straight, p50', 'ms', ({ raw }) => raw.p50),
    ...of('API, p99', 'ms', ({ api }) => api.p99),
    ...of('straight, p99', 'ms', ({ raw }) => raw.p99),
    ...of('CPU of the API', 'ms per request', ({ apiCpu, api }) => perRequest(apiCpu, 'the API', api)),
    ...of('CPU of Elasticsearch for the API', 'ms per request', ({ apiCpu, api }) =>
      perRequest(apiCpu, 'Elasticsearch', api),
    ),
    ...of('CPU of Elasticsearch, straight', 'ms per request', ({ rawCpu, raw }) =>
      perRequest(rawCpu, 'Elasticsearch', raw),
    ),
  ]
}

/** The first table has the picture, and the notes about all. */
const introduced = (
  { sizes }: Bench,
  figure: Figure,
  records: number,
  recordings: readonly Recording[],
  rounds: readonly Round[],
): Figure => {
  const { data, secondsPerRound, rounds: count } = sizes.api
  const cores = (name: string): FigureRow[] => {
    const used = rounds.flatMap(({ apiCpu, api }) => (apiCpu[name] === undefined ? [] : [apiCpu[name] / api.seconds]))
    return used.length === 0 ? [] : [{ what: `CPU of ${name} meanwhile`, unit: 'cores', ...spreadOf(used) }]
  }
  const busy = (of: 'api' | 'raw') => (100 * Math.max(...rounds.map(round => round[of].busy))).toFixed(0)
  return {
    ...figure,
    rows: [...figure.rows, ...cores('the projector'), ...cores(EVERYTHING_ELSE)],
    notes: [
      `One organization has ${records} current payouts of ${data.lines} lines and ${data.steps} steps, among ${data.organizations} with ${data.payouts} payout events. The load tool sends this many different requests in turn: ${recordings.map(({ what, api }) => `${what} ${api.length}`).join(', ')}. Rounds of ${secondsPerRound} s alternate, ${count} of each; a ratio compares neighbouring rounds. The projector runs and is idle.`,
      'Straight requests are the very searches that the API sends for these pages; for a single read or a statement, the one multi-get. They are recorded byte for byte, and the same load tool sends them. The tool reads each answer to its end and drops it. For a page the API also reads the published position, authenticates, counts, cuts the records out and adds the next cursor. It remembers the place of a cursor that it returned, or that was requested before. The API joins single reads of several requests into one. So for single reads and statements, Elasticsearch does less work for the API than for straight requests.',
      `All processes share the cores. Straight requests need the load tool and Elasticsearch; requests to the API need a third process. So a ratio includes the CPU of the API and the longer way. The load tool is one thread, at most ${busy('raw')} % busy with straight requests and ${busy('api')} % with the API. It costs both the same for each request.`,
    ],
    pictures: [pictureOf(rounds)],
  }
}

const pictureOf = (rounds: readonly Round[]): Picture => {
  const measured = rounds.filter(({ connections }) => connections === TARGET_CONNECTIONS)
  const bar = (what: string, of: 'api' | 'raw', name: string) => ({
    name: `${what}, ${name}`,
    ...spreadOf(measured.filter(round => round.what === what).map(round => round[of].perSecond)),
  })
  return {
    name: 'api-rate',
    title: `Requests answered, ${TARGET_CONNECTIONS} connections`,
    unit: 'requests/s',
    bars: [...new Set(measured.map(({ what }) => what))].flatMap(what => [
      bar(what, 'api', 'API'),
      bar(what, 'raw', 'straight to Elasticsearch'),
    ]),
  }
}

type Walked = { readonly records: number; readonly seconds: readonly number[] }

const measureWalk = async ({ sizes, say, signal }: Bench, { key }: Holder, { api }: Served): Promise<Walked> => {
  const seconds: number[] = []
  let records = 0
  for (let round = 1; round <= sizes.api.rounds; round++) {
    const began = performance.now()
    const pages = await walkPayouts(api.url, key, WALK_LIMIT, signal)
    seconds.push((performance.now() - began) / 1000)
    const read = pages.reduce((sum, { ids }) => sum + ids.length, 0)
    if (round > 1 && read !== records) throw new Error(`a walk has ${read} records, the one before had ${records}`)
    records = read
  }
  say(`walks of ${records} payouts: measured`)
  return { records, seconds }
}

const walkFigure = ({ records, seconds }: Walked): Figure => ({
  name: 'api',
  title: `API: a whole walk of ${records.toLocaleString('en-US')} payouts`,
  rows: [
    { what: 'from the first page to the last', unit: 's', ...spreadOf(seconds) },
    { what: 'read', unit: 'records/s', ...spreadOf(seconds.map(each => records / each)) },
  ],
  notes: [
    `The client reads and parses pages of ${WALK_LIMIT}, one after the other by cursor, ${seconds.length} times.`,
  ],
})

type ProjectingRound = {
  readonly idle: Load
  readonly projecting: Load
  readonly perSecond: number
  readonly visibleAfter: number
}

/** Rounds without and with a publisher whose events the projector writes meanwhile. */
const measureWhileProjecting = async (
  bench: Bench,
  { api: requests }: Recording,
  served: Served,
): Promise<ProjectingRound[]> => {
  const { signal, say, sizes } = bench
  const { eventsPerSecond, seconds, rounds } = sizes.api.whileProjecting
  const { topics, holders, projection, died } = served
  const organizations = holders.map(({ organization }) => organization)
  const publish = createSteadyPublisher({ topics, organizations, shape: sizes.api.data, signal })
  const pages = () => applyLoad({ requests, connections: TARGET_CONNECTIONS, milliseconds: seconds * 1000, signal })
  const measured: ProjectingRound[] = []
  for (let round = 1; round <= rounds; round++) {
    const idle = await Promise.race([pages(), died])
    const both = Promise.all([pages(), publish(eventsPerSecond, seconds)])
    const [projecting, perSecond] = await Promise.race([both, died])
    const ended = performance.now()
    await waitForPositions(bench, projection.prefix, await topics.ends())
    measured.push({ idle, projecting, perSecond, visibleAfter: performance.now() - ended })
  }
  say(`pages while ${eventsPerSecond} events/s are projected: measured`)
  return measured
}

const whileProjectingFigure = ({ sizes }: Bench, rounds: readonly ProjectingRound[]): Figure => {
  const { eventsPerSecond, seconds } = sizes.api.whileProjecting
  const of = (pick: (round: ProjectingRound) => number): Spread => spreadOf(rounds.map(pick))
  const condition = `while ${eventsPerSecond} events/s are projected`
  return {
    name: 'api',
    title: `API: pages of 200 ${condition}`,
    rows: [
      { what: 'alone', unit: 'requests/s', ...of(({ idle }) => idle.perSecond) },
      { what: condition, unit: 'requests/s', ...of(({ projecting }) => projecting.perSecond) },
      {
        what: `${condition} / alone`,
        unit: '',
        ...of(({ idle, projecting }) => projecting.perSecond / idle.perSecond),
        isRatio: true,
      },
      { what: 'alone, p50', unit: 'ms', ...of(({ idle }) => idle.p50) },
      { what: `${condition}, p50`, unit: 'ms', ...of(({ projecting }) => projecting.p50) },
      { what: 'alone, p99', unit: 'ms', ...of(({ idle }) => idle.p99) },
      { what: `${condition}, p99`, unit: 'ms', ...of(({ projecting }) => projecting.p99) },
      { what: 'published meanwhile', unit: 'events/s', ...of(({ perSecond }) => perSecond) },
      { what: 'all visible after the last', unit: 'ms', ...of(({ visibleAfter }) => visibleAfter) },
    ],
    notes: [
      `${TARGET_CONNECTIONS} connections. Rounds of ${seconds} s without and with a publisher alternate. The payouts are of all organizations, including the one that is read. Clients send requests as fast as they get answers, so writing takes its CPU from them. Visibility is checked every tenth of a second.`,
    ],
  }
}
