/** The swap to the generation of a new topic, with logs, groups and control documents that the test changes. */
import type { Admin } from 'kafkajs'
import { expect, test } from 'vitest'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { GenerationBody } from '../../../core/log/kafka/source.ts'
import type { LogEntry } from '../../../core/log/records/read-log.ts'
import type { Copy } from '../../../tools/grow/copy.ts'
import { swapGrown } from '../../../tools/grow/swap.ts'
import { GROW_WAIT_MS, SWAP_WAIT_MS } from '../../../tools/limits.ts'
import { primariesAnswer, sending } from '../../support/answering.ts'
import { entriesFrom } from '../archive/any-entries.ts'

const identity = (generation: string, topic: string, partitions: number) => {
  return { generation, topic, cluster_id: 'c', partitions, topic_id: `id of ${topic}`, rules_version: 1 }
}
const live = identity('g1', 'old', 1)
const spare = identity('g2', 'new', 2)
const record: Omit<LogEntry, 'offset'> = {
  kind: 'record',
  timestamp: 1,
  key: null,
  value: null,
  headers: encodeHeaders([['ce_source', Buffer.from('/payroll')]]),
}

/** One old partition; all its records go to the first of two new ones. Only waiting moves the clock. */
const given = () => {
  const state = {
    old: entriesFrom(0, [record, record]),
    /** Records of the new topic; without those that somebody else published. */
    copied: 2,
    early: 0,
    members: 1,
    /** Records of the old topic that only its new leader has: it tells its end, and nobody reads from it. */
    unread: 0,
    /** Partitions of the old topic. */
    open: [] as readonly number[],
    /** The ids of the partitions of each topic: that of the topic. */
    ids: { old: ['id of old'], new: ['id of new', 'id of new'] },
    spare: spare as GenerationBody,
    times: { g1: 100, g2: 100 },
    spareLag: 0,
    /** Readers may have seen the old generation up to here. */
    servedFrom: 0,
    /** Whether a change is stored, and then answered as if it was not. */
    losesAnswer: false,
    grownBy: undefined as object | undefined,
    onWait: (_: number): void => undefined,
    live: { generation: 'g1', kept: ['g1', 'g2'] } as Record<string, unknown>,
  }
  let [time, seqNo] = [0, 1]
  const out: string[] = []
  const said: string[] = []
  const sourceOf = (id: string): object | undefined => {
    const [kind, name, partition] = id.split(':')
    if (kind === 'live') return { kind, body: state.live }
    if (kind !== 'position') return undefined
    const at = partition === '0' ? (name === 'g1' ? state.old.length : state.copied - state.spareLag) : 0
    const [serve_from, time] = name === 'g1' ? [state.servedFrom, state.times.g1] : [0, state.times.g2]
    return { kind, body: { position: at, serve_from, time } }
  }
  const send = sending(async request => {
    const { method, path, body, query } = request
    const [, index = '', operation, id = ''] = path.split('/').map(decodeURIComponent)
    if (index === '_bulk') return primariesAnswer(request, (_, id) => sourceOf(id))
    if (index === '_mget') {
      const { docs } = body as { docs: { _id: string }[] }
      const found = docs.map(({ _id }) => ({ _id, found: sourceOf(_id) !== undefined, _source: sourceOf(_id) }))
      return { status: 200, body: { docs: found } }
    }
    if (operation === '_refresh') return { status: 200, body: { _shards: { failed: 0 } } }
    if (operation === '_pit' || index === '_pit') return { status: 200, body: { id: 'pit' } }
    if (index === '_search') {
      return { status: 200, body: { timed_out: false, _shards: { failed: 0 }, pit_id: 'pit', hits: { hits: [] } } }
    }
    if (method === 'GET') {
      const _source = sourceOf(id)
      if (_source === undefined) return { status: 404, body: { found: false } }
      return { status: 200, body: { _source, _seq_no: seqNo, _primary_term: 1 } }
    }
    if (query?.if_seq_no !== seqNo) return { status: 409, body: {} }
    seqNo++
    state.live = (body as { body: Record<string, unknown> }).body
    if (state.grownBy) state.live = { ...state.live, grown: state.grownBy }
    return { status: state.losesAnswer ? 409 : 200, body: {} }
  })
  const admin = {
    describeCluster: async () => ({ clusterId: 'c' }),
    fetchTopicMetadata: async ({ topics: [name = 'old'] }: { topics: ('old' | 'new')[] }) => {
      return { topics: [{ partitions: state.ids[name].map(topicId => ({ topicId })) }] }
    },
    describeGroups: async () => ({ groups: [{ members: Array.from({ length: state.members }) }] }),
    fetchTopicOffsets: async (topic: string) =>
      topic === 'old'
        ? [{ partition: 0, low: '0', high: String(state.old.length + state.unread) }]
        : [0, 1].map(partition => {
            return { partition, low: '0', high: String(partition === 0 ? state.copied : state.early) }
          }),
    describeConfigs: async () => ({ resources: [{ configEntries: [] }] }),
    alterConfigs: async () => undefined,
  } as unknown as Admin
  const copy: Copy = {
    run: async () => {
      const came = state.old.length - state.copied
      state.copied = state.old.length
      return came
    },
    reached: () => ({ from: [state.copied], to: [state.copied, 0] }),
  }
  const oldLog = {
    topic: 'old',
    read: async (_: number, from: number) => ({ entries: state.old.slice(from), end: state.old.length }),
  }
  const context = {
    ...{ send, prefix: 'p', kafka: {} as never, topics: { events: 'old', 'api-keys': 'keys' }, groupId: 'g' },
    out: (text: string | Buffer) => void out.push(String(text)),
    say: (line: string) => void said.push(line),
    sleep: async (milliseconds: number) => {
      time += milliseconds
      state.onWait(time)
    },
    now: () => time,
    elapsed: () => time,
    signal: new AbortController().signal,
  }
  const publish = (entry: Omit<LogEntry, 'offset'> = record): void => {
    state.old = entriesFrom(0, [...state.old, entry])
  }
  const openTransactions = async () => state.open
  const swap = () =>
    swapGrown({ live, spare: state.spare, source: live, openTransactions, copy }, oldLog, false, admin, context)
  return { state, out, said, publish, swap, time: () => time }
}

test('the swap comes once nobody publishes to the old topic or projects it, and says where both topics were cut', async () => {
  const { state, publish, swap, time } = given()
  state.onWait = passed => {
    if (passed === 1_000) publish()
    if (passed === 20_000) state.members = 0
  }
  expect(await swap()).toBe(0)
  expect(time()).toBeGreaterThan(20_000)
  expect(state.live).toMatchObject({
    ...{ generation: 'g2', previous: 'g1', floor: [3, 0], alone: { g2: [3, 0] } },
    grown: { topic: 'old', cluster_id: 'c', topic_id: 'id of old', ends: [3] },
  })
})

test('after another swap the live document names each topic before, but none whose name is used again', async () => {
  const { state, swap } = given()
  state.members = 0
  const former = (topic: string) => ({ topic, cluster_id: 'c', ends: [7] })
  const grown = { ...former('second'), before: [former('new'), former('old'), former('first')] }
  state.live = { generation: 'g1', kept: ['g1', 'g2'], grown }
  expect(await swap()).toBe(0)
  const last = { topic: 'old', cluster_id: 'c', topic_id: 'id of old', ends: [2] }
  expect(state.live.grown).toEqual({ ...last, before: [former('second'), former('first')] })
})

test.each([
  ['of other rules', { rules_version: 2 }, 'g2 of new has version 2 of the rules, and g1 version 1'],
  ['that took over parked records', { follows: 'g0' }, 'g2 of new takes over what g0 parked'],
])('a generation %s does not become live, and the message says what to do', async (_, fields, what) => {
  const { state, swap } = given()
  Object.assign(state, { members: 0, spare: { ...spare, ...fields } })
  const next = 'npx commission projection drop g2, then npx commission grow --to new'
  await expect(swap()).rejects.toThrow(`${what}. Nothing is changed. Next: ${next}`)
  expect(state.live).toEqual({ generation: 'g1', kept: ['g1', 'g2'] })
})

test.each([
  ['the old topic was made anew', { old: ['another'] }, 'topic_id: expected id of old, got another'],
  ['the old topic got a partition more', { old: ['id of old', 'id of old'] }, 'partitions: expected 1, got 2'],
  ['the new topic was made anew', { new: ['another', 'another'] }, 'topic_id: expected id of new, got another'],
])('nothing is changed if %s meanwhile', async (_, ids, what) => {
  const { state, swap } = given()
  state.members = 0
  state.onWait = () => Object.assign(state.ids, ids)
  await expect(swap()).rejects.toThrow(what)
  expect(state.live.generation).toBe('g1')
})

test('a swap whose answer is lost has happened: the command sees it, and says so', async () => {
  const { state, said, swap } = given()
  Object.assign(state, { members: 0, losesAnswer: true })
  expect(await swap()).toBe(0)
  expect([state.live.generation, said.at(-2)]).toEqual(['g2', expect.stringContaining('g2 is live')])
})

test('a swap to the same generation that somebody else made meanwhile, with another cut, is not taken for ours', async () => {
  const { state, swap } = given()
  Object.assign(state, {
    members: 0,
    losesAnswer: true,
    grownBy: { topic: 'old', cluster_id: 'c', topic_id: 'id of old', ends: [1] },
  })
  await expect(swap()).rejects.toThrow('meanwhile g2 was made live')
})

test('while readers wait for records that the old topic lost, nothing is compared and nothing is changed', async () => {
  const { state, said, swap } = given()
  Object.assign(state, { members: 0, servedFrom: 5 })
  await expect(swap()).rejects.toThrow('g1 is at 2 in partition 0 of old, and reads again up to 5: records could be')
  expect([state.live.generation, said]).toEqual(['g1', []])
})

test('a publisher who does not stop is named, and nothing is changed', async () => {
  const { state, out, publish, swap } = given()
  state.members = 0
  state.onWait = () => publish()
  await expect(swap()).rejects.toThrow('records came to old: stop them')
  expect(out.at(-1)).toContain('ce_source /payroll')
  expect(state.live.generation).toBe('g1')
})

test('a publisher who comes back just before the swap is named, and nothing is changed', async () => {
  const { state, out, publish, swap } = given()
  state.members = 0
  let isLate = false
  state.onWait = passed => {
    if (passed < 12_000 || isLate) return
    isLate = true
    publish()
  }
  await expect(swap()).rejects.toThrow('a publisher still publishes to old (above)')
  expect(out).toEqual([expect.stringMatching(/^old:0:2 .* ce_source \/payroll\n$/)])
  expect(state.live.generation).toBe('g1')
})

test('records that came at last, and cannot be read because a leader that was replaced answers, refuse the swap', async () => {
  const { state, swap } = given()
  state.members = 0
  state.onWait = passed => {
    if (passed >= 12_000) state.unread = 1
  }
  await expect(swap()).rejects.toThrow('partition 0 of old ends at 3, but nothing from offset 2 on can be read')
  expect(state.live.generation).toBe('g1')
})

test('the swap waits until no transaction of the old topic is open, and copies the records behind it', async () => {
  const { state, said, publish, swap, time } = given()
  Object.assign(state, { members: 0, open: [0] })
  state.onWait = passed => {
    if (passed !== 30_000) return
    state.open = []
    publish()
  }
  expect(await swap()).toBe(0)
  expect(time()).toBeGreaterThan(30_000)
  expect(said).toContain('waiting: open transactions in partition 0 of old')
  expect(state.live).toMatchObject({ generation: 'g2', grown: { ends: [3] } })
})

test('a transaction that stays open is named with its partition, and nothing is changed', async () => {
  const { state, swap } = given()
  Object.assign(state, { members: 0, open: [0, 2] })
  await expect(swap()).rejects.toThrow('open transactions in partitions 0, 2 of old: stop them, and run the same again')
  expect(state.live.generation).toBe('g1')
})

test('a transaction that begins just before the swap is named, and nothing is changed', async () => {
  const { state, swap } = given()
  Object.assign(state, { members: 0, times: { g1: 100, g2: 50 } })
  state.onWait = passed => {
    if (passed < 12_000) return
    Object.assign(state, { open: [0], times: { g1: 100, g2: 100 } })
  }
  await expect(swap()).rejects.toThrow('open transactions in partition 0 of old: end them, and run the same again')
  expect(state.live.generation).toBe('g1')
})

test('projectors of the old topic that go on are told, and nothing is changed', async () => {
  const { state, said, swap } = given()
  await expect(swap()).rejects.toThrow('projectors keep up g1: 1')
  expect(said).toContain('waiting: projectors keep up g1: 1')
  expect(said.filter(line => line.startsWith('waiting')).length).toBeLessThan(GROW_WAIT_MS / 5_000)
  expect(state.live.generation).toBe('g1')
})

test('publishers that stopped are not named when the command gives up, because projectors go on', async () => {
  const { state, out, publish, swap } = given()
  state.onWait = passed => {
    if (passed === 1_000) publish()
  }
  await expect(swap()).rejects.toThrow('projectors keep up g1: 1: stop them, and run the same again')
  expect(out).toEqual([])
  expect(state.live.generation).toBe('g1')
})

test('a record that somebody published to the new topic too early is refused', async () => {
  const { state, swap } = given()
  state.members = 0
  state.early = 1
  await expect(swap()).rejects.toThrow('a publisher publishes to new already')
  expect(state.live.generation).toBe('g1')
})

test('the swap waits until the new generation has all records, and times that are not behind those that readers saw', async () => {
  const { state, swap, time } = given()
  Object.assign(state, { members: 0, spareLag: 1, times: { g1: 100, g2: 50 } })
  state.onWait = passed => {
    if (passed === 2_000) state.spareLag = 0
    if (passed === 30_000) state.times.g2 = 99
    if (passed === 40_000) state.times.g2 = 100
  }
  expect(await swap()).toBe(0)
  expect(state.live.generation).toBe('g2')
  expect(time()).toBe(40_000)
})

test('without a projector of the new topic the swap ends, and says so', async () => {
  const { state, swap } = given()
  state.spareLag = 2
  let ended = 0
  state.onWait = passed => {
    ended = passed
  }
  await expect(swap()).rejects.toThrow('g2 is 2 records behind: is a projector of new running?')
  expect(ended).toBeLessThan(SWAP_WAIT_MS + 1_000)
})
