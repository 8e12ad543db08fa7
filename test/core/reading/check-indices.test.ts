/** Checks of index identities, with indices that the test replaces and an Elasticsearch that the test lets fail. */

import { describe, expect, test } from 'vitest'
import { type ApiKeyCache, createApiKeyCache, type KeyHolder } from '../../../core/reading/api-key-cache.ts'
import {
  createIndexChecks,
  keysChecked,
  positionsChecked,
  searchesPermitted,
} from '../../../core/reading/check-indices.ts'
import { INDICES_CACHE_TIME, INDICES_CHECK_INTERVAL } from '../../../core/reading/limits.ts'
import { Refusal, unavailable } from '../../../core/runtime/refusals.ts'
import { abortReason, scheduleTimer } from '../../../core/runtime/time-limits.ts'
import { generationIdOf, type PositionReader } from '../../../core/store/positions/position.ts'
import type { MultiGet, Search } from '../../../core/store/read/search-client.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { multiGetAnswer, positionText } from '../../api/answers.ts'
import { documentText, sha256 } from '../../support/bodies.ts'
import { generationOf } from '../../support/layout.ts'
import { scopeOf } from '../../support/read-scope.ts'

const read = ['p-control', 'p-g1-reps', 'p-g1-periods', 'p-g1-payouts', 'p-g1-payroll_files', 'p-g1-statements']
const idsOf = (names: readonly string[]) => Object.fromEntries(names.map(name => [name, `id of ${name}`]))

const setUp = () => {
  const recorded: { indices: Record<string, string> | undefined; shards?: Record<string, string> } = {
    indices: idsOf([...read, 'p-g1-chains', 'p-api-keys']),
  }
  const shards = new Map<string, string>()
  const there = new Map(Object.entries(idsOf([...read, 'p-api-keys'])))
  const state = { time: 0, checks: 0, failing: false }
  const { check, checkNow } = createIndexChecks(
    'p',
    async ([name]) => {
      const _source = { kind: 'generation', body: { ...recorded } }
      return Buffer.from(
        JSON.stringify({ docs: [{ _index: 'p-control', _id: name?._id, _version: 1, found: true, _source }] }),
      )
    },
    async (_names, _signal, withShards) => {
      state.checks++
      if (state.failing) throw unavailable('elasticsearch_connection')
      return withShards ? new Map([...there, ...shards]) : there
    },
    () => state.time,
    scheduleTimer,
  )
  return { check, checkNow, recorded, there, shards, state }
}
const unavailableWith = (reason: string) => expect.objectContaining({ code: 'unavailable', reason })

describe('the indices of a generation', () => {
  test('are checked before the first request, then in the background, and before the next request after a pause', async () => {
    const { check, state } = setUp()
    await check('g1')
    expect(state.checks).toBe(1)
    state.time = INDICES_CHECK_INTERVAL - 1
    expect(check('g1')).toBeUndefined()
    expect(state.checks).toBe(1)
    state.time = INDICES_CHECK_INTERVAL
    expect(check('g1')).toBeUndefined()
    expect(check('g1')).toBeUndefined()
    expect(state.checks).toBe(2)
    await new Promise(setImmediate)
    state.time += INDICES_CACHE_TIME
    const running = check('g1')
    expect(running).toBeInstanceOf(Promise)
    expect(check('g1')).toBe(running)
    await running
    expect(state.checks).toBe(3)
  })

  test.each(read)('are refused if %s was replaced; if it is missing or not shown, that is the reason', async name => {
    const { check, there } = setUp()
    there.delete(name)
    await expect(check('g1')).rejects.toThrow(unavailableWith('index_not_shown'))
    there.set(name, 'another')
    await expect(check('g1')).rejects.toThrow(unavailableWith('indices_replaced'))
  })

  test('are refused as replaced if one is another one while the next one is missing: a restore is under way', async () => {
    const { check, there } = setUp()
    there.delete('p-g1-reps')
    there.set('p-g1-statements', 'another')
    await expect(check('g1')).rejects.toThrow(unavailableWith('indices_replaced'))
  })

  test('are refused if another generation of this name was read: all indices were deleted and made anew', async () => {
    const { check, recorded, there, state } = setUp()
    const id = generationIdOf('g1', recorded.indices)
    await check('g1', id)
    expect(check('g1', id)).toBeUndefined()
    const anew = Object.fromEntries(Object.keys(recorded.indices ?? {}).map(name => [name, `new id of ${name}`]))
    recorded.indices = anew
    for (const [name, newId] of Object.entries(anew)) there.set(name, newId)
    state.time = INDICES_CACHE_TIME
    await expect(check('g1', id)).rejects.toThrow(unavailableWith('generation_made_anew'))
    await expect(check('g1', id)).rejects.toThrow(unavailableWith('generation_made_anew'))
    expect(check('g1', generationIdOf('g1', anew))).toBeUndefined()
  })

  test('are checked anew, with their shards, for what is signed: a projector has not compared them yet', async () => {
    const { check, checkNow, recorded, shards, state } = setUp()
    const id = generationIdOf('g1', recorded.indices)
    recorded.shards = { 'p-g1-payouts/0': 'first', 'p-g1-chains/0': 'not read here' }
    shards.set('p-g1-payouts/0', 'first')
    shards.set('p-g1-chains/0', 'another')
    await check('g1', id)
    await checkNow('g1', id, true)
    expect(state.checks).toBe(2)
    shards.set('p-g1-payouts/0', 'another')
    await expect(checkNow('g1', id, true)).rejects.toThrow(unavailableWith('shard_lost'))
    expect(check('g1', id)).toBeUndefined()
    shards.set('p-g1-payouts/0', 'first')
    await expect(checkNow('g1', 'another', true)).rejects.toThrow(unavailableWith('generation_made_anew'))
  })

  test('are checked anew, without their shards, before a command gives out a page', async () => {
    const { check, checkNow, recorded, there, state } = setUp()
    recorded.shards = { 'p-g1-payouts/0': 'of a node that is away' }
    await check('g1')
    await checkNow('g1')
    expect(state.checks).toBe(2)
    there.set('p-g1-reps', 'another')
    await expect(checkNow('g1')).rejects.toThrow(unavailableWith('indices_replaced'))
  })

  test('nothing is signed while the id of a recorded shard is not known', async () => {
    const { checkNow, recorded, shards } = setUp()
    const id = generationIdOf('g1', recorded.indices)
    await checkNow('g1', id, true)
    recorded.shards = { 'p-g1-payouts/0': 'first' }
    await expect(checkNow('g1', id, true)).rejects.toThrow(unavailableWith('shards_unknown'))
    shards.set('p-g1-payouts/0', 'first')
    await checkNow('g1', id, true)
  })

  test('are refused until a projector has recorded their ids', async () => {
    const { check, recorded } = setUp()
    recorded.indices = undefined
    await expect(check('g1')).rejects.toThrow(unavailableWith('indices_not_recorded'))
  })

  test('that are replaced while requests are served are trusted for a bounded time only, then refused', async () => {
    const { check, there, state } = setUp()
    await check('g1')
    there.set('p-control', 'another')
    state.time = INDICES_CHECK_INTERVAL
    expect(check('g1')).toBeUndefined()
    await new Promise(setImmediate)
    await expect(check('g1')).rejects.toThrow(unavailableWith('indices_replaced'))
    await expect(check('g1')).rejects.toThrow(unavailableWith('indices_replaced'))
    there.set('p-control', 'id of p-control')
    await check('g1')
  })

  test('that cannot be checked are trusted no longer than otherwise', async () => {
    const { check, state } = setUp()
    await check('g1')
    state.failing = true
    state.time = INDICES_CACHE_TIME
    await expect(check('g1')).rejects.toThrow(unavailableWith('elasticsearch_connection'))
    state.failing = false
    await check('g1')
  })

  test('are those of the requested generation', async () => {
    const { check, there } = setUp()
    there.set('p-g1-reps', 'another')
    await check('api-keys')
    there.set('p-api-keys', 'another')
    expect(check('api-keys')).toBeUndefined()
    await expect(setUpKeys(there).lookup('k', new AbortController().signal)).rejects.toThrow(
      unavailableWith('indices_replaced'),
    )
  })
})

const holder: KeyHolder = { org: 'o', orgHash: 'h', id: 'k', permissions: new Set(['read']) }
const setUpKeys = (replaced?: ReadonlyMap<string, string>) => {
  const { check, there } = setUp()
  for (const [name, id] of replaced ?? []) there.set(name, id)
  const keys: ApiKeyCache = {
    remembered: () => holder,
    lookup: async () => holder,
    forget: () => undefined,
    wasValid: () => true,
    checkServed: async () => undefined,
  }
  return keysChecked(keys, check)
}

describe('keys', () => {
  const { signal } = new AbortController()

  test('are taken from the cache only if their index was checked recently; otherwise they are looked up', async () => {
    const keys = setUpKeys()
    expect(keys.remembered('k')).toBeUndefined()
    expect(await keys.lookup('k', signal)).toBe(holder)
    expect(keys.remembered('k')).toBe(holder)
  })

  test('in a replaced index are neither valid nor unknown', async () => {
    const keys = setUpKeys(new Map([['p-api-keys', 'another']]))
    expect(keys.remembered('k')).toBeUndefined()
    await expect(keys.lookup('k', signal)).rejects.toThrow(unavailableWith('indices_replaced'))
    await expect(keys.checkServed(signal)).rejects.toThrow(unavailableWith('indices_replaced'))
  })

  test.each([
    ['revoked key', { revoked: false }],
    ['created key', undefined],
  ])('of a replaced index are forgotten: nobody gets its answer about a %s once it is adopted', async (_, copied) => {
    const { check, recorded, there } = setUp()
    const fields = { key_id: 'key_1', org_id: 'org_a', permissions: ['read'], ...copied }
    const documents: Record<string, string> = {
      'position:api-keys:0': positionText(5, 0, 5),
      ...(copied && { [sha256('k')]: documentText(fields, JSON.stringify({ created_seq: 0 })) }),
    }
    const multiGet: MultiGet = async names => multiGetAnswer(names, documents)
    const now = () => 0
    const cache = createApiKeyCache('p', multiGet, now, now)
    const keys = keysChecked(cache, check)
    there.set('p-api-keys', 'another')
    await expect(keys.lookup('k', signal)).rejects.toThrow(unavailableWith('indices_replaced'))

    documents['position:api-keys:0'] = positionText(0, 0, 9)
    recorded.indices = { ...recorded.indices, 'p-api-keys': 'another' }
    await check('api-keys')
    expect(keys.remembered('k')).toBeUndefined()
    await expect(keys.lookup('k', signal)).rejects.toThrow(unavailableWith('keys_not_read_yet'))
  })
})

describe('readiness', () => {
  const { signal } = new AbortController()
  const setUpSearch = (layout?: 2 | 3) => {
    const state = { time: 0, generation: 'g1', asked: [] as string[], refusal: undefined as string | undefined }
    const readServed = async () => {
      const { generation: name } = state
      const generation = {
        ...generationOf({ name }),
        layout: layoutOf('p', { generation: name, topic: '', ...(layout && { layout }) }),
      }
      return { generation, building: null, partitions: [], notServed: new Map() }
    }
    const search: Search = async ({ index }) => {
      state.asked.push(index)
      if (state.refusal !== undefined) throw new Refusal('unavailable', { reason: state.refusal })
      return Buffer.from('{}')
    }
    return { state, isReady: searchesPermitted(readServed, search, () => state.time) }
  }

  test.each([
    [undefined, 'p-g1-reps,p-g1-periods,p-g1-payouts,p-g1-payroll_files,p-g1-statements'],
    [2, 'p-g1-payouts,p-g1-statements,p-g1-periods'],
    [3, 'p-g1-payouts,p-g1-statements,p-g1-periods'],
  ] as const)(
    'of a generation of layout %s needs the right to search each index that answers are read from',
    async (layout, indices) => {
      const { state, isReady } = setUpSearch(layout)
      expect((await isReady(signal)).generation.name).toBe('g1')
      expect(state.asked).toEqual([indices])
      state.time = INDICES_CHECK_INTERVAL
      state.refusal = 'elasticsearch_status_403'
      await expect(isReady(signal)).rejects.toThrow(unavailableWith('elasticsearch_status_403'))
      await expect(isReady(signal)).rejects.toThrow(unavailableWith('elasticsearch_status_403'))
    },
  )

  test('asks for the right once in an interval, and again for another generation', async () => {
    const { state, isReady } = setUpSearch()
    for (const time of [0, INDICES_CHECK_INTERVAL - 1, INDICES_CHECK_INTERVAL]) {
      state.time = time
      await isReady(signal)
    }
    expect(state.asked).toHaveLength(2)
    state.generation = 'g2'
    await isReady(signal)
    expect(state.asked).toHaveLength(3)
  })

  test('does not need every shard: those that are there answer', async () => {
    const { state, isReady } = setUpSearch()
    state.refusal = 'elasticsearch_status_503'
    expect((await isReady(signal)).generation.name).toBe('g1')
  })

  test('names the index of the keys if it is missing or not shown', async () => {
    const { check, there } = setUp()
    there.delete('p-api-keys')
    const multiGet: MultiGet = async names => multiGetAnswer(names, {}, index => index === 'p-api-keys')
    const now = () => 0
    const keys = keysChecked(createApiKeyCache('p', multiGet, now, now), check)
    await expect(keys.checkServed(signal)).rejects.toThrow(unavailableWith('index_not_shown'))
  })
})

describe('a request', () => {
  const generation = generationOf()
  const position = { generation, publishedTo: 1, time: 0, takenBack: 0 }
  const positions: PositionReader = {
    readAt: async () => ({ position, documents: [] }),
    oldestTime: async () => 0,
    readServedPositions: async () => ({ generation, building: null, partitions: [position], notServed: new Map() }),
    latest: () => position,
    liveBefore: () => undefined,
    forget: () => undefined,
  }
  const keys: ApiKeyCache = {
    remembered: () => holder,
    lookup: async () => holder,
    forget: () => undefined,
    wasValid: () => true,
    checkServed: async () => undefined,
  }
  /** A check that ends later than the request. */
  const slow = () => new Promise<void>(resolve => void setImmediate(() => setImmediate(resolve)))
  const checked = positionsChecked(positions, slow)
  const checkedKeys = keysChecked(keys, slow)

  test.each<[string, (signal: AbortSignal) => Promise<unknown>]>([
    ['readAt', signal => checked.readAt(scopeOf('org_a', signal), () => [], 'may-be-older')],
    ['readServedPositions', signal => checked.readServedPositions(signal)],
    ['lookup', signal => checkedKeys.lookup('k', signal)],
    ['checkServed', signal => checkedKeys.checkServed(signal)],
  ])('waits for a check no longer than its own time: %s', async (_, read) => {
    const ending = new AbortController()
    const reading = read(ending.signal)
    ending.abort(abortReason('time_is_up'))
    await expect(reading).rejects.toThrow(unavailableWith('time_is_up'))
  })

  describe('whose generation was made anew', () => {
    const setUpAnew = (readAt: PositionReader['readAt']) => {
      const forgotten: string[] = []
      const reads: PositionReader = {
        ...positions,
        readAt,
        liveBefore: () => generation,
        forget: ({ id }) => void forgotten.push(id),
      }
      const check = async (_: string, id?: string) => {
        if (id === generation.id) throw unavailable('generation_made_anew')
      }
      const { readAt: read } = positionsChecked(reads, check)
      return { forgotten, read: () => read(scopeOf('org_a'), () => [], 'may-be-older') }
    }

    test('is refused, and the next one reads the generation again', async () => {
      const { read, forgotten } = setUpAnew(positions.readAt)
      await expect(read()).rejects.toThrow(unavailableWith('generation_made_anew'))
      expect(forgotten).toEqual([generation.id])
    })

    test.each(['position_went_back', 'no_position', 'elasticsearch_partial'] as const)(
      'also if it cannot be read as before: %s',
      async reason => {
        const { read, forgotten } = setUpAnew(async () => {
          throw unavailable(reason)
        })
        await expect(read()).rejects.toThrow(unavailableWith(reason))
        expect(forgotten).toEqual([generation.id])
      },
    )
  })
})
