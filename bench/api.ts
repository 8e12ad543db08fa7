/**
 * The API beside what it asks: pages and single records of an organization with many payouts, read through the API process
 * and, by the same load tool, the very same searches and multi-gets sent straight to Elasticsearch. Rounds alternate.
 */
import { authorization, type RunningApi, readApi, startApi } from './api-process.ts'
import type { Bench, Figure, Measure, Row } from './bench.ts'
import { createDataset } from './dataset.ts'
import { type Load, type LoadRequest, load } from './load.ts'
import { project } from './projection.ts'
import { createKey, createTopics } from './publish.ts'
import { type Recorded, startRecordingProxy } from './recording-proxy.ts'
import { spreadOf } from './statistics.ts'
import { type Cpu, EVERYTHING_ELSE, watchCpu } from './usage.ts'

/** What is asked of the API, and the very same of Elasticsearch. */
type Reading = {
  readonly what: string
  readonly api: readonly LoadRequest[]
  readonly raw: readonly LoadRequest[]
  readonly atLeast?: number
}
type Round = { readonly api: Load; readonly raw: Load; readonly cpu: Cpu; readonly seconds: number }

const PAGES = [50, 200] as const
const SINGLE_READS = 500

export const measureApi: Measure = async bench => {
  const { say, sizes } = bench
  const { data, rounds, warmUpSeconds, secondsPerRound } = sizes.api
  await using topics = await createTopics(bench)
  const dataset = createDataset(data)
  const [organization] = dataset.organizations
  if (organization === undefined) throw new Error('there is no organization')
  const key = createKey(organization.id)
  const recorded = [...dataset.peopleAndPeriods()]
  await topics.publish(key.event)
  await topics.publishAll(recorded, recorded.length, 'publishing reps and periods')
  await topics.publishAll(dataset.payouts(), data.payouts, 'publishing payouts')
  await using projection = await project(bench, topics, { what: 'projecting' })
  await projection.projector.stop()

  const recordings = await record(bench, projection.prefix, key.text)
  await using api = await startApi(bench, projection.prefix, bench.elasticsearch.url)
  const readings = recordings.map(recording => readingOf(recording, api, key.text, bench.elasticsearch.url))
  const rows: Row[] = []
  const all: Round[] = []
  for (const reading of readings) {
    await measureRound(bench, reading, api, warmUpSeconds)
    const measured: Round[] = []
    for (let round = 1; round <= rounds; round++)
      measured.push(await measureRound(bench, reading, api, secondsPerRound))
    rows.push(...rowsOf(reading, measured))
    all.push(...measured)
    say(`${reading.what}: measured`)
  }
  rows.push(...cpuRows('CPU of everything else meanwhile', 'cores', all, EVERYTHING_ELSE))
  return figureOf(bench, rows, recordings, Math.max(...all.flatMap(({ api, raw }) => [api.busy, raw.busy])))
}

type Recording = {
  readonly what: string
  readonly atLeast?: number
  readonly paths: readonly string[]
  readonly asked: readonly Recorded[]
  /** Records of one answer. */
  readonly records: number
}

/** Walks the pages and reads records once through a proxy that keeps what the API asks of Elasticsearch. */
const record = async (bench: Bench, prefix: string, key: string): Promise<Recording[]> => {
  const wanted = (path: string): boolean => /-payouts\/_search\b/.test(path) || path.startsWith('/_mget')
  await using proxy = await startRecordingProxy(bench.elasticsearch.url, wanted)
  await using api = await startApi(bench, prefix, proxy.url)
  const since = (before: number, sought: string): Recorded[] =>
    proxy.recorded.slice(before).filter(({ path, body }) => path.includes(sought) || body.includes(sought))

  const recordings: Recording[] = []
  const ids: string[] = []
  for (const limit of PAGES) {
    const before = proxy.recorded.length
    const pages = await walk(api.url, key, limit)
    ids.push(...pages.flatMap(page => page.ids))
    // The last page is shorter than the others.
    const paths = pages.slice(0, -1).map(page => page.path)
    const asked = since(before, '-payouts/_search').slice(0, paths.length)
    recordings.push({ what: `page of ${limit}`, paths, asked, records: limit, ...(limit === 200 && { atLeast: 0.6 }) })
  }
  const before = proxy.recorded.length
  const paths = ids.slice(0, SINGLE_READS).map(id => `/payouts/${id}`)
  for (const path of paths) await readApi(`${api.url}${path}`, key)
  recordings.push({ what: 'single read', paths, asked: since(before, '-payouts"'), records: 1 })
  for (const { what, paths, asked } of recordings) {
    if (paths.length === 0 || asked.length < paths.length) throw new Error(`${what}: what the API asks was not seen`)
  }
  return recordings
}

type Page = { readonly path: string; readonly ids: readonly string[] }

const walk = async (url: string, key: string, limit: number): Promise<Page[]> => {
  const pages: Page[] = []
  let path = `/payouts?limit=${limit}`
  for (;;) {
    const page = (await readApi(`${url}${path}`, key)) as {
      data: { id: string }[]
      has_more: boolean
      next_cursor: string
    }
    pages.push({ path, ids: page.data.map(({ id }) => id) })
    if (!page.has_more) return pages
    path = `/payouts?limit=${limit}&starting_after=${page.next_cursor}`
  }
}

const readingOf = (
  { what, atLeast, paths, asked }: Recording,
  api: RunningApi,
  key: string,
  elasticsearch: string,
): Reading => ({
  what,
  ...(atLeast !== undefined && { atLeast }),
  api: paths.map(path => ({ url: `${api.url}${path}`, method: 'GET', headers: authorization(key) })),
  raw: asked.map(({ method, path, headers, body }) => ({
    url: `${elasticsearch}${path}`,
    method,
    headers: { ...headers, 'content-length': String(body.length) },
    body,
  })),
})

/** Straight first, then the API, for as long each. */
const measureRound = async (
  bench: Bench,
  { api, raw }: Reading,
  { process }: RunningApi,
  seconds: number,
): Promise<Round> => {
  const { sizes, signal, services } = bench
  const options = { connections: sizes.api.connections, milliseconds: seconds * 1000, signal }
  const straight = await load({ ...options, requests: raw })
  const cpu = watchCpu({
    'the API': process.pid,
    Elasticsearch: services.elasticsearch?.pid,
    Kafka: services.kafka?.pid,
  })
  return { raw: straight, api: await load({ ...options, requests: api }), cpu: cpu(), seconds }
}

const rowsOf = ({ what, atLeast }: Reading, rounds: readonly Round[]): Row[] => {
  const of = (pick: (round: Round) => number) => spreadOf(rounds.map(pick))
  return [
    { what: `${what}: API`, unit: 'requests/s', ...of(({ api }) => api.perSecond) },
    { what: `${what}: straight to Elasticsearch`, unit: 'requests/s', ...of(({ raw }) => raw.perSecond) },
    {
      what: `${what}: API / straight`,
      unit: '',
      ...of(({ api, raw }) => api.perSecond / raw.perSecond),
      isRatio: true,
      ...(atLeast !== undefined && { atLeast }),
    },
    ...cpuRows(`${what}: CPU of the API`, 'ms per request', rounds, 'the API'),
    { what: `${what}: API, p50`, unit: 'ms', ...of(({ api }) => api.p50) },
    { what: `${what}: straight, p50`, unit: 'ms', ...of(({ raw }) => raw.p50) },
    { what: `${what}: API, p99`, unit: 'ms', ...of(({ api }) => api.p99) },
    { what: `${what}: straight, p99`, unit: 'ms', ...of(({ raw }) => raw.p99) },
  ]
}

const cpuRows = (what: string, unit: 'ms per request' | 'cores', rounds: readonly Round[], process: string): Row[] => {
  const values = rounds.flatMap(({ api, cpu, seconds }) => {
    const used = cpu[process]
    return used === undefined ? [] : [unit === 'cores' ? used / seconds : (1_000 * used) / (api.perSecond * seconds)]
  })
  return values.length === 0 ? [] : [{ what, unit, ...spreadOf(values) }]
}

const figureOf = ({ sizes }: Bench, rows: Row[], recordings: readonly Recording[], busy: number): Figure => {
  const { connections, data, secondsPerRound } = sizes.api
  const first = Math.round(data.payouts * (data.firstShare ?? 1 / data.organizations))
  const [page] = recordings
  return {
    name: 'api',
    title: 'API: pages and single payouts, beside the same searches without it',
    rows,
    notes: [
      `An organization of ${first} payouts (${(page?.paths.length ?? 0) * (page?.records ?? 0)} of them on full pages of ${page?.records}) among ${data.organizations} with ${data.payouts}. All pages in turn, ${connections} connections, rounds of ${secondsPerRound} s of either, alternating.`,
      'Straight to Elasticsearch go, by the same load tool, the very searches that the API sends for these pages (for a single read its one multi-get), recorded byte for byte. For a page the API also reads the published position and the cursor before, authenticates and counts.',
      `The load tool runs on the same cores; its own thread was busy at most ${(100 * busy).toFixed(0)} % of the time.`,
    ],
  }
}
