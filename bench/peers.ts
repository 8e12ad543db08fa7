/**
 * Plain pipes, for comparison: each record of the same topic becomes one document of an index with the mappings of
 * payouts. Measured like the projector, from the start of consumption until everything is visible.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { FIRST_GENERATION, indexOf } from '../schemas/stored/documents.ts'
import { generationIndices } from '../schemas/stored/mappings.ts'
import { POSITIONS_INTERVAL_MS } from './processes/projection.ts'
import type { Topics } from './processes/publish.ts'
import type { Bench } from './rig/bench.ts'
import { newPrefix } from './rig/elasticsearch.ts'
import { type Running, startBenchProcess } from './rig/process.ts'
import { type Cpu, peakMebibytes, serverPids, watchCpu } from './rig/usage.ts'

export type Peer = {
  readonly name: string
  /** For `startBenchProcess`. */
  readonly script: string
}

export type Piped = { readonly seconds: number; readonly cpu: Cpu; readonly peakMebibytes: number | undefined }

type Peers = { readonly all: readonly Peer[]; [Symbol.asyncDispose](): Promise<void> }

/** Returns the pipes that can run here. Without Go leaves its pipe out and says so. */
export const preparePeers = async ({ say, signal }: Bench): Promise<Peers> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-peers-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  const program = join(folder, 'go-pipe')
  say('building the Go pipe, which takes some minutes the first time: its client is large')
  const cwd = join(import.meta.dirname, 'peers/go-pipe')
  const built = await promisify(execFile)('go', ['build', '-o', program, '.'], { cwd, signal }).catch(buildFailure)
  if (!('code' in built))
    return { all: [helpersBulk, { name: 'franz-go + esutil', script: program }], [Symbol.asyncDispose]: remove }
  signal.throwIfAborted()
  say(`the Go pipe is left out: ${built.code === 'ENOENT' ? 'there is no go on the PATH' : built.stderr.trim()}`)
  return { all: [helpersBulk], [Symbol.asyncDispose]: remove }
}

/** The error of a program: of its start (`ENOENT`), or its exit code and output. */
const buildFailure = ({ code, stderr = '' }: { readonly code?: unknown; readonly stderr?: string }) => ({
  code,
  stderr,
})

/** The usual client of the language, with its bulk helper. */
export const helpersBulk: Peer = { name: 'kafkajs + helpers.bulk', script: 'bench/peers/helpers-bulk.ts' }

type Pipe = { readonly index: string; readonly process: Running; [Symbol.asyncDispose](): Promise<void> }

/** Starts a pipe into a new index. @param settings of the index; by default those of payouts */
export const startPipe = async (
  { elasticsearch, signal }: Bench,
  topics: Topics,
  { script }: Peer,
  settings?: object,
): Promise<Pipe> => {
  const prefix = newPrefix()
  const index = indexOf(prefix, FIRST_GENERATION, 'payouts')
  const definition = generationIndices(prefix, { generation: FIRST_GENERATION }, { shards: 1 })[index]
  await using stack = new AsyncDisposableStack()
  await elasticsearch.call('PUT', `/${index}`, {
    mappings: definition?.mappings ?? {},
    settings: { index: settings ?? definition?.settings },
  })
  stack.defer(async () => void (await elasticsearch.call('DELETE', `/${index}`)))
  stack.defer(() => topics.forgetGroups([prefix]))
  const process = stack.use(
    await startBenchProcess({
      script,
      ready: 'consuming',
      signal,
      settings: {
        ...topics.settings,
        KAFKA_GROUP_ID: prefix,
        ELASTICSEARCH_URL: elasticsearch.url,
        ELASTICSEARCH_INDEX: index,
      },
    }),
  )
  const kept = stack.move()
  return { index, process, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** @throws Error if the number of documents differs from the number of records */
export const pipeOnce = async (bench: Bench, topics: Topics, peer: Peer, records: number): Promise<Piped> => {
  const { elasticsearch, services } = bench
  await using running = await startPipe(bench, topics, peer)
  const { index, process: pipe } = running
  const { name } = peer
  const cpu = watchCpu({ [name]: pipe.pid, ...serverPids(services) })
  await Promise.race([waitUntilIndexed(bench, index, records), pipe.died])
  await elasticsearch.call('POST', `/${index}/_refresh`)
  const piped = {
    seconds: (Date.now() - pipe.ready.time) / 1000,
    cpu: cpu(),
    peakMebibytes: peakMebibytes(pipe.pid),
  }
  const { count } = await elasticsearch.call<{ count: number }>('GET', `/${index}/_count`)
  if (count !== records) throw new Error(`${name} made ${count} documents of ${records} records`)
  return piped
}

/** Every record has another id, so that none is counted twice. */
const waitUntilIndexed = async ({ elasticsearch, signal }: Bench, index: string, records: number): Promise<void> => {
  for (;;) {
    const { _all } = await elasticsearch.call<IndexingStats>('GET', `/${index}/_stats/indexing`)
    const { index_total, index_failed } = _all.primaries.indexing
    if (index_failed > 0) throw new Error(`${index_failed} documents of a plain pipe were refused`)
    if (index_total >= records) return
    await sleep(POSITIONS_INTERVAL_MS, undefined, { signal })
  }
}

type IndexingStats = {
  readonly _all: { readonly primaries: { readonly indexing: { index_total: number; index_failed: number } } }
}
