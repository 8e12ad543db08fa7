/** Reads of a partition from an index `p-g1-chains` of one shard, which the test changes between two attempts. */
import { expect, test, vi } from 'vitest'
import type { DecidedDocument } from '../../../../core/ledger/decide/project.ts'
import type { GenerationBody } from '../../../../core/log/kafka/source.ts'
import { HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS } from '../../../../core/log/limits.ts'
import { PartitionStore, StreamStore } from '../../../../core/projection/flow/partition-store.ts'
import { BULKS_IN_FLIGHT, DOUBTED_READ_MS, STOOD_STILL_MS } from '../../../../core/projection/limits.ts'
import { StopError } from '../../../../core/runtime/failures.ts'
import { createHealth } from '../../../../core/runtime/health.ts'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import type { Request } from '../../../../core/store/elasticsearch/client.ts'
import { BULK_BYTES } from '../../../../core/store/limits.ts'
import { layoutOf } from '../../../../schemas/stored/layout.ts'
import { isRead, primariesAnswer, sending } from '../../../support/answering.ts'
import { addressIn } from '../../../support/layout.ts'

const [CHAIN, OTHER] = [addressIn('p-g1-chains', 'chain'), addressIn('p-g1-reps', 'rep')]
const identity: GenerationBody = {
  ...{ generation: 'g1', topic: 'events', cluster_id: 'c', partitions: 2, rules_version: 1 },
  indices: { 'p-g1-chains': 'id' },
  shards: { 'p-g1-chains/0': 'first' },
}

/** The documents that a bulk request writes, as Elasticsearch tells that it wrote them. */
const writesIn = ({ bulk }: Request): object[] =>
  String(bulk)
    .split('\n')
    .flatMap(line => (line.startsWith('{"index"') ? [{ ...JSON.parse(line).index, status: 201 }] : []))

/**
 * `untold`: the number of answers about ids that lack its own, as when its node does not answer. `refused`: the number
 * of questions for ids that are refused, as without the privilege `monitor`.
 */
type Shard = { history: string; chain: object | undefined; untold: number; refused: number }

/** `held` decides each attempt to read the chain, before the shard answers. */
const setUp = (
  held: (attempt: number, shard: Shard, clock: { now: number }) => Promise<void> | void,
  atStart: GenerationBody = identity,
  onRequest: (path: string, clock: { now: number }) => Promise<void> | void = () => undefined,
) => {
  const shard: Shard = { history: 'first', chain: { org_id: 'org_1' }, untold: 0, refused: 0 }
  const clock = { now: 0 }
  const requests: string[] = []
  const stored: GenerationBody[] = []
  let attempts = 0
  const isOfChain = ({ bulk }: Request) => String(bulk).includes('chain')
  const send = sending(async asked => {
    const { method, path, body } = asked
    requests.push(`${method} ${path}`)
    await onRequest(isRead(asked.bulk) ? 'read' : path, clock)
    if (path === '/_bulk') {
      if (!isRead(asked.bulk)) return { status: 200, body: { items: writesIn(asked).map(index => ({ index })) } }
      if (isOfChain(asked)) await held(++attempts, shard, clock)
      return primariesAnswer(asked, index => (index === CHAIN._index ? shard.chain : { org_id: 'org_1' }))
    }
    if (path.endsWith('/_settings')) {
      const settings = (uuid: string) => ({ settings: { index: { uuid } } })
      return { status: 200, body: { 'p-control': settings('c'), 'p-g1-chains': settings('id') } }
    }
    if (path.endsWith('/_stats/get')) {
      if (shard.refused-- > 0) throw new StopError('access_refused', 'Elasticsearch answers 403', { status: 403 })
      if (shard.untold > 0) {
        shard.untold--
        return { status: 200, body: { indices: {} } }
      }
      const copy = { routing: { primary: true }, commit: { user_data: { history_uuid: shard.history } } }
      return { status: 200, body: { indices: { 'p-g1-chains': { shards: { 0: [copy] } } } } }
    }
    if (method === 'PUT') stored.push((body as { body: GenerationBody }).body)
    // Elasticsearch without security.
    if (path.startsWith('/_security/')) return { status: 404, body: {} }
    return { status: 200, body: { _source: { body: identity }, _seq_no: 1, _primary_term: 1 } }
  })
  const shared = new StreamStore(
    {
      elasticsearch: { send },
      elapsed: () => clock.now,
      retryOptions: { sleep: async () => undefined, random: () => 0 },
      health: createHealth({ warn: () => undefined, info: () => undefined }, () => clock.now),
    },
    { identity: atStart, prefix: 'p' },
  )
  // The position that another process publishes meanwhile, and the one that this process knows.
  const position = { stored: 0, known: 0, onRead: (): void => undefined }
  const store = new PartitionStore({
    ...{ identity: atStart, prefix: 'p', layout: layoutOf('p', identity), partition: 0, shared },
    published: {
      current: () => ({ position: position.known, last: null, at: 0, time: 0, serve_from: 0 }),
      advance: async () => undefined,
      advanceTime: async () => undefined,
      readAgain: async () => {
        position.onRead()
        position.known = position.stored
      },
    },
    stream: { onRead: () => undefined, onWritten: () => undefined },
    signal: new AbortController().signal,
  })
  const { assertSame } = shared.sameIndices
  const { getDocuments } = store
  return {
    store,
    shard,
    clock,
    position,
    getDocuments,
    requests,
    stored,
    assertSame: () => assertSame(identity, { request: send, prefix: 'p' }),
  }
}

const empty = (shard: Shard): void => {
  shard.history = 'second'
  shard.chain = undefined
}
const QUESTIONS = ['GET /_security/user/_privileges', 'GET /_security/_authenticate']
const CHECKED = [...QUESTIONS, 'GET /p-*/_settings', 'GET /p-*/_stats/get']
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

test('a read that had to wait is checked again until Elasticsearch tells the id of its shard', async () => {
  const { getDocuments, requests } = setUp((attempt, shard) => {
    if (attempt === 1) throw new Unanswered('elasticsearch', 503)
    empty(shard)
    shard.untold = 2
  })
  await expect(getDocuments([CHAIN])).rejects.toThrow(replaced)
  expect(requests.filter(request => request === CHECKED.at(-1))).toHaveLength(3)
})

test('a read that had to wait is checked again until the user may ask for the id of its shard', async () => {
  const { getDocuments, requests } = setUp((attempt, shard) => {
    if (attempt === 1) throw new Unanswered('elasticsearch', 503)
    empty(shard)
    shard.refused = 2
  })
  await expect(getDocuments([CHAIN])).rejects.toThrow(replaced)
  expect(requests.filter(request => request === CHECKED.at(-1))).toHaveLength(3)
})

test('a read that had to wait does not wait for the id of a shard of another index', async () => {
  const { shard, getDocuments, requests } = setUp(
    () => undefined,
    identity,
    (path, clock) => {
      if (path === 'read') clock.now += DOUBTED_READ_MS
    },
  )
  shard.untold = Number.POSITIVE_INFINITY
  expect(await getDocuments([OTHER])).toMatchObject([{ found: true }])
  expect(requests.slice(1)).toEqual(READ_AND_CHECKED)
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

const REP = { kind: 'reps', id: 'org_1:rep_1', version: 7, line: '{"org_id":"org_1"}' } as DecidedDocument

/** Writes one rep, of the record at offset 7, a time after it was packed. */
const writeAfter = async ({ store, requests, clock }: ReturnType<typeof setUp>, milliseconds: number) => {
  const write = store.packBatch([REP], { offset: 7, sha256: 'hash' })
  clock.now += milliseconds
  requests.length = 0
  await write().catch((error: unknown) => requests.push(`${(error as StopError).code}`))
  return requests
}

test('a process that did not stand still asks nothing before it writes', async () => {
  expect(
    await writeAfter(
      setUp(() => undefined),
      STOOD_STILL_MS - 1,
    ),
  ).toEqual(['POST /_bulk'])
})

test('a process that stood still looks at its indices and its position before it writes', async () => {
  const asked = await writeAfter(
    setUp(() => undefined),
    STOOD_STILL_MS,
  )
  expect(asked).toEqual([...READ_AND_CHECKED, 'POST /_bulk'])
})

test('a process that stood still while its indices were made anew writes nothing into the new ones', async () => {
  const steps = setUp(() => undefined)
  empty(steps.shard)
  const asked = await writeAfter(steps, STOOD_STILL_MS)
  expect(asked).not.toContain('POST /_bulk')
  expect(asked).toContain('index_replaced')
})

test('what another process has published meanwhile is not written: the log may have other records there now', async () => {
  const steps = setUp(() => undefined)
  steps.position.stored = 8
  expect(await writeAfter(steps, STOOD_STILL_MS)).toEqual(READ_AND_CHECKED)
})

test('what another process has not published yet is written', async () => {
  const steps = setUp(() => undefined)
  steps.position.stored = 7
  expect(await writeAfter(steps, STOOD_STILL_MS)).toEqual([...READ_AND_CHECKED, 'POST /_bulk'])
})

test('one look is enough for what is written soon after it', async () => {
  const steps = setUp(() => undefined)
  await writeAfter(steps, STOOD_STILL_MS)
  expect(await writeAfter(steps, STOOD_STILL_MS - 1)).toEqual(['POST /_bulk'])
})

test('a look that takes longer than it counts is made twice, not for ever', async () => {
  const steps = setUp(
    () => undefined,
    identity,
    (_, clock) => {
      clock.now += STOOD_STILL_MS / 4
    },
  )
  expect(await writeAfter(steps, STOOD_STILL_MS)).toEqual([...READ_AND_CHECKED, ...READ_AND_CHECKED, 'POST /_bulk'])
})

test('while somebody blocks the metadata of an index, records go on', async () => {
  const steps = setUp(
    () => undefined,
    identity,
    path => {
      if (path.endsWith('/_settings'))
        throw new Unanswered('elasticsearch', 403, 'cluster_block_exception', 'p-g1-reps')
    },
  )
  expect((await writeAfter(steps, STOOD_STILL_MS)).at(-1)).toBe('POST /_bulk')
})

/** Writes one large batch more than are sent at once: the last one waits. They go on once `change` has been called. */
const writeMoreThanAtOnce = async (change: (steps: ReturnType<typeof setUp>) => void) => {
  const { promise: goesOn, resolve } = Promise.withResolvers<void>()
  const steps = setUp(
    () => undefined,
    identity,
    path => (path === '/_bulk' ? goesOn : undefined),
  )
  const line = JSON.stringify({ org_id: 'org_1', name: 'x'.repeat(BULK_BYTES * 0.75) })
  const writes = Array.from({ length: BULKS_IN_FLIGHT + 1 }, (_, place) =>
    steps.store.packBatch([{ ...REP, version: place, line }], { offset: place, sha256: 'hash' })(),
  )
  await vi.waitFor(() => expect(steps.requests.length).toBeGreaterThanOrEqual(BULKS_IN_FLIGHT))
  steps.clock.now += STOOD_STILL_MS
  change(steps)
  resolve()
  const outcomes = await Promise.allSettled(writes)
  expect(steps.requests.filter(request => request === 'POST /_bulk')).toHaveLength(BULKS_IN_FLIGHT)
  return outcomes.filter(({ status }) => status === 'rejected')
}

test('a write that had to wait for others looks when it is sent', async () => {
  const refused = await writeMoreThanAtOnce(({ shard }) => empty(shard))
  expect(refused).toEqual([{ status: 'rejected', reason: replaced }])
})

test('a write that had to wait for others looks at its position when it is sent', async () => {
  const refused = await writeMoreThanAtOnce(({ position }) => {
    position.stored = 100
  })
  expect(refused).toEqual([])
})

test('a batch that another process is publishing waits until all of it is published, and is not written', async () => {
  const steps = setUp(() => undefined)
  const reps = [15, 16, 20].map(version => ({ ...REP, id: `org_1:rep_${version}`, version }))
  const write = steps.store.packBatch(reps, { offset: 20, sha256: 'hash' })
  steps.clock.now += STOOD_STILL_MS
  steps.position.stored = 18
  let reads = 0
  steps.position.onRead = () => {
    if (++reads === 5) steps.position.stored = 21
  }
  await write()
  expect(steps.requests).not.toContain('POST /_bulk')
})

test('a batch of which another process has published a part is written once the group knows its owner', async () => {
  const steps = setUp(() => undefined)
  const write = steps.store.packBatch([{ ...REP, version: 15 }], { offset: 20, sha256: 'hash' })
  steps.clock.now += STOOD_STILL_MS
  steps.position.stored = 18
  const began = steps.clock.now
  steps.position.onRead = () => {
    steps.clock.now += 1_000
  }
  await write()
  expect(steps.clock.now - began).toBeGreaterThanOrEqual(SESSION_TIMEOUT_MS)
  expect(steps.requests.filter(request => request === 'POST /_bulk')).toHaveLength(1)
})

test('a process looks before the group can have given its partition to another one', () => {
  expect(STOOD_STILL_MS).toBeLessThanOrEqual(SESSION_TIMEOUT_MS - HEARTBEAT_INTERVAL_MS)
})
