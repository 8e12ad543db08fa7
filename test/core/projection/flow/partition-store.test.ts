/** Reads of a partition from an index `p-g1-chains` of one shard, which the test changes between two attempts. */
import { expect, test } from 'vitest'
import type { GenerationBody } from '../../../../core/log/kafka/source.ts'
import { PartitionStore, StreamStore } from '../../../../core/projection/flow/partition-store.ts'
import { DOUBTED_READ_MS } from '../../../../core/projection/limits.ts'
import { createHealth } from '../../../../core/runtime/health.ts'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import type { Request } from '../../../../core/store/elasticsearch/client.ts'
import { layoutOf } from '../../../../schemas/stored/layout.ts'
import { primariesAnswer, sending } from '../../../support/answering.ts'
import { addressIn } from '../../../support/layout.ts'

const [CHAIN, OTHER] = [addressIn('p-g1-chains', 'chain'), addressIn('p-g1-reps', 'rep')]
const identity: GenerationBody = {
  ...{ generation: 'g1', topic: 'events', cluster_id: 'c', partitions: 2, rules_version: 1 },
  indices: { 'p-g1-chains': 'id' },
  shards: { 'p-g1-chains/0': 'first' },
}

type Shard = { history: string; chain: object | undefined }

/** `held` decides each attempt to read the chain, before the shard answers. */
const setUp = (
  held: (attempt: number, shard: Shard, clock: { now: number }) => Promise<void> | void,
  atStart: GenerationBody = identity,
) => {
  const shard: Shard = { history: 'first', chain: { org_id: 'org_1' } }
  const clock = { now: 0 }
  const requests: string[] = []
  const stored: GenerationBody[] = []
  let attempts = 0
  const isOfChain = ({ bulk }: Request) => String(bulk).includes('chain')
  const send = sending(async asked => {
    const { method, path, body } = asked
    requests.push(`${method} ${path}`)
    if (path === '/_bulk') {
      if (isOfChain(asked)) await held(++attempts, shard, clock)
      return primariesAnswer(asked, index => (index === CHAIN._index ? shard.chain : { org_id: 'org_1' }))
    }
    if (path.endsWith('/_settings')) {
      const settings = (uuid: string) => ({ settings: { index: { uuid } } })
      return { status: 200, body: { 'p-control': settings('c'), 'p-g1-chains': settings('id') } }
    }
    if (path.endsWith('/_stats/get')) {
      const copy = { routing: { primary: true }, commit: { user_data: { history_uuid: shard.history } } }
      return { status: 200, body: { indices: { 'p-g1-chains': { shards: { 0: [copy] } } } } }
    }
    if (method === 'PUT') stored.push((body as { body: GenerationBody }).body)
    // Elasticsearch without security.
    if (path.startsWith('/_security/')) return { status: 404, body: {} }
    return { status: 200, body: { _source: { body: identity }, _seq_no: 1, _primary_term: 1 } }
  })
  const shared = new StreamStore({
    elasticsearch: { send },
    elapsed: () => clock.now,
    retryOptions: { sleep: async () => undefined, random: () => 0 },
    health: createHealth({ warn: () => undefined, info: () => undefined }, () => clock.now),
  })
  const published = { current: () => ({ position: 0, last: null, at: 0, time: 0, serve_from: 0 }) }
  const { getDocuments } = new PartitionStore({
    ...{ identity: atStart, prefix: 'p', layout: layoutOf('p', identity), partition: 0, shared },
    published: { ...published, advance: async () => undefined, advanceTime: async () => undefined },
    stream: { onRead: () => undefined, onWritten: () => undefined },
    signal: new AbortController().signal,
  })
  const { assertSame } = shared.sameIndices
  return { getDocuments, requests, stored, assertSame: () => assertSame(identity, { request: send, prefix: 'p' }) }
}

const empty = (shard: Shard): void => {
  shard.history = 'second'
  shard.chain = undefined
}
const CHECKED = ['GET /_security/user/_privileges', 'GET /p-*/_settings', 'GET /p-*/_stats/get']
const READ_AND_CHECKED = ['GET /p-control/_doc/generation%3Ag1', ...CHECKED]
const replaced = expect.objectContaining({ code: 'index_replaced' })

test('a read that a red shard did not answer stops when an empty shard has come in its place, and readers are told', async () => {
  const { getDocuments, stored } = setUp((attempt, shard) => {
    if (attempt === 1) throw new Unanswered('elasticsearch', 503, 'unavailable_shards_exception', 'p-g1-chains')
    empty(shard)
  })
  await expect(getDocuments([CHAIN])).rejects.toThrow(replaced)
  expect(stored).toEqual([{ ...identity, lost: 'p-g1-chains/0' }])
})

test('a shard whose id was recorded after the start of the projector counts, too', async () => {
  const { shards: _, ...atStart } = identity
  const { getDocuments } = setUp((attempt, shard) => {
    if (attempt === 1) throw new Unanswered('elasticsearch', 503)
    empty(shard)
  }, atStart)
  await expect(getDocuments([CHAIN])).rejects.toThrow(replaced)
})

test('a read whose answer was lost goes on while the indices and shards are the same', async () => {
  const { getDocuments, requests } = setUp(attempt => {
    if (attempt <= 2) throw new Unanswered('elasticsearch')
  })
  expect(await getDocuments([CHAIN])).toMatchObject([{ found: true }])
  expect(requests.slice(3)).toEqual(READ_AND_CHECKED)
})

test('a read that Elasticsearch held until an empty shard came stops, too', async () => {
  const { getDocuments } = setUp((_, shard, clock) => {
    clock.now += DOUBTED_READ_MS
    empty(shard)
  })
  await expect(getDocuments([CHAIN])).rejects.toThrow(replaced)
})

test('while a read waits for a shard, the answers of the others are checked; before and after that, none is', async () => {
  const { promise: goesOn, resolve } = Promise.withResolvers<void>()
  const { promise: isAskedAgain, resolve: askedAgain } = Promise.withResolvers<void>()
  const { getDocuments, requests } = setUp(async attempt => {
    if (attempt === 1) throw new Unanswered('elasticsearch', 503)
    askedAgain()
    await goesOn
  })
  const asked = async (): Promise<readonly string[]> => {
    requests.length = 0
    await getDocuments([OTHER])
    return requests.filter(request => request !== 'POST /_bulk')
  }
  expect(await asked()).toEqual([])
  // More documents than are combined with other reads.
  const waiting = getDocuments(Array.from({ length: 201 }, () => CHAIN))
  await isAskedAgain
  expect(await asked()).toEqual(READ_AND_CHECKED)
  resolve()
  await waiting
  expect(await asked()).toEqual([])
})

test('a check of a followed generation counts for a moment, but not for a read that had to wait after it', async () => {
  const { getDocuments, requests, assertSame } = setUp(attempt => {
    if (attempt === 1) throw new Unanswered('elasticsearch', 503)
  })
  const asked = async (): Promise<readonly string[]> => {
    requests.length = 0
    await assertSame()
    return requests
  }
  expect(await asked()).toEqual(CHECKED)
  expect(await asked()).toEqual([])
  await getDocuments([CHAIN])
  expect(await asked()).toEqual(CHECKED)
})
