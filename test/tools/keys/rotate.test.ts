/** Rotations and revocations of `key_1`. The topic has its creation; another operator may publish its revocation. */
import { expect, test } from 'vitest'
import type { ClusterContext, CommandContext } from '../../../tools/context.ts'
import { revokeKey } from '../../../tools/keys/keys.ts'
import { rotateKey } from '../../../tools/keys/rotate.ts'

type Asked = Parameters<CommandContext['send']>[0]
type Event = { readonly id: string; readonly revokes?: true }

const world = ({ projects = true } = {}) => {
  const topic: Event[] = [{ id: 'key_1' }]
  let projected = 1
  let elapsed = 0
  const steps = {
    /** Called when a key is published, before it is in the topic. */
    onCreate: (): void => undefined,
    /** Called when the command waits. */
    onSleep: (): void => undefined,
    /** The number of events at the end of the topic that an open transaction hides. */
    hidden: 0,
    logEnds: async (): Promise<ReadonlyMap<number, number>> => new Map([[0, topic.length]]),
    /** The event that the topic keeps of one that is sent, and the offset that Kafka answers. */
    kept: (event: Event): Event => event,
    offsetOf: (offset: number): number => offset,
  }
  const stableEnd = (): number => topic.length - steps.hidden
  const revokedIn = (id: string): boolean => topic.slice(0, projected).some(event => event.id === id && event.revokes)
  const isMade = (id: string): boolean => topic.slice(0, projected).some(event => event.id === id)
  const identity = { topic: 'keys', cluster_id: 'c', partitions: 1, rules_version: 2 }
  const controls = (): Readonly<Record<string, object>> => ({
    live: { generation: 'g1' },
    'generation:g1': { ...identity, generation: 'g1', topic: 'events' },
    'generation:api-keys': { ...identity, generation: 'api-keys' },
    'position:api-keys:0': { position: projected, time: 0, at: 0, last: null, serve_from: 0 },
  })
  const whole = { _shards: { failed: 0 }, timed_out: false }
  const bodyOf = (id: string): object | undefined => {
    if (!id.startsWith('org_1:')) return controls()[id]
    const key = id.slice('org_1:'.length)
    return isMade(key) ? { name: 'x', created_seq: 0, revoked_seq: revokedIn(key) ? 1 : null } : undefined
  }
  const answerOf = ({ path, body }: Asked): object => {
    if (path.endsWith('/_refresh')) return whole
    if (path.endsWith('/_mget')) {
      const { docs } = body as { docs: readonly { _id: string }[] }
      return {
        docs: docs.map(({ _id }) => {
          const found = bodyOf(_id)
          return { _id, found: found !== undefined, _source: { kind: _id.split(':')[0], body: found } }
        }),
      }
    }
    const made = [...new Set(topic.slice(0, projected).map(({ id }) => id))]
    const hits = made.map(key_id => ({
      _source: { key_id, org_id: 'org_1', permissions: ['read'], revoked: revokedIn(key_id), body: {} },
    }))
    return { ...whole, hits: { hits } }
  }
  const connects = { connect: async () => undefined, disconnect: async () => undefined }
  const admin = {
    ...connects,
    describeCluster: async () => ({ clusterId: 'c' }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
    fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: `${stableEnd()}` }],
  }
  const producer = {
    ...connects,
    send: async ({ messages }: { messages: readonly { value: string; headers: { ce_type: string } }[] }) => {
      const revokes = messages[0]?.headers.ce_type.includes('revoked') ?? false
      if (!revokes) steps.onCreate()
      const { id } = JSON.parse(messages[0]?.value ?? '')
      const offset = topic.push(steps.kept({ id, ...(revokes && { revokes }) })) - 1
      if (steps.hidden > 0) steps.hidden++
      return [{ baseOffset: `${steps.offsetOf(offset)}` }]
    },
  }
  const said: string[] = []
  const out: string[] = []
  const context = {
    send: async (request: Asked) => ({ status: 200, body: answerOf(request) }),
    ...{ prefix: 'test', now: () => 0, elapsed: () => elapsed },
    ...{ say: (line: string) => void said.push(line), out: (text: string) => void out.push(text) },
    sleep: async (milliseconds: number) => {
      elapsed += milliseconds
      steps.onSleep()
      if (projects) projected = stableEnd()
    },
    ...{ kafka: { admin: () => admin, producer: () => producer }, topics: { events: 'events', 'api-keys': 'keys' } },
    openCluster: async () => ({ logEnds: () => steps.logEnds(), disconnect: async () => undefined }),
  } as unknown as ClusterContext
  const options = { org: 'org_1', id: 'key_1', waitSeconds: 1, json: false }
  return {
    ...{ topic, steps, said, out },
    revoke: () => void topic.push({ id: 'key_1', revokes: true }),
    rotate: () => rotateKey({ ...options, name: undefined, expiresAt: null, networks: undefined }, context),
    revokeById: (id: string) => revokeKey({ ...options, id }, context),
  }
}

test('a key gets a successor with its name, and stays valid', async () => {
  const { rotate, topic, said, out } = world()
  expect(await rotate()).toBe(0)
  expect([topic.length, out.length]).toEqual([2, 1])
  expect(said.at(-1)).toBe('npx commission keys revoke --org org_1 --id key_1')
})

test('a key that was revoked gets no successor, also while the projector has not read the revocation', async () => {
  const { rotate, revoke, topic, out } = world()
  revoke()
  await expect(rotate()).rejects.toThrow('key_1 of org_1 is revoked')
  expect([topic.length, out]).toEqual([2, []])
})

test('no key gets a successor while the projector does not read what was published', async () => {
  const { rotate, revoke, topic, out } = world({ projects: false })
  revoke()
  await expect(rotate()).rejects.toThrow(
    'the projector is 1 records behind on keys after 1 s: is it running? Nothing was published.',
  )
  expect([topic.length, out]).toEqual([2, []])
})

test.for(['onCreate', 'onSleep'] as const)(
  'if a key is revoked while its successor is made (%s), the successor is to be revoked, too',
  async when => {
    const { rotate, revoke, steps, topic, said } = world()
    steps[when] = () => {
      steps[when] = () => undefined
      revoke()
    }
    await expect(rotate()).rejects.toThrow(/^key_1 was revoked meanwhile, and the API accepts (key_\w+): revoke \1 now/)
    expect(topic.length).toBe(3)
    expect(said.join()).not.toContain('as before')
  },
)

test('a key whose creation is not projected yet is revoked as soon as it is', async () => {
  const { revokeById, topic } = world()
  topic.push({ id: 'key_2' })
  expect(await revokeById('key_2')).toBe(0)
  expect(topic.at(-1)).toEqual({ id: 'key_2', revokes: true })
  await expect(revokeById('key_3')).rejects.toThrow('org_1 has no key key_3')
})

test('a revocation at an offset before the end of the topic is refused, because no projector reads it', async () => {
  const { revokeById, steps, topic, said } = world()
  topic.push({ id: 'key_2' })
  steps.offsetOf = () => 0
  await expect(revokeById('key_1')).rejects.toThrow(
    'Kafka put a record at offset 0 of partition 0 of keys, which had ended at 2: it has lost records',
  )
  expect(said).toEqual([])
})

test('a key is said to be revoked only if the documents say so: its event may be lost, and another in its place', async () => {
  const { revokeById, steps, said } = world()
  steps.kept = () => ({ id: 'key_2' })
  await expect(revokeById('key_1')).rejects.toThrow('keys has lost the event, which was at offset 1')
  expect(said).toEqual([])
})

test('a key that was made is said to be accepted only if the documents have it', async () => {
  const { rotate, steps, said } = world()
  steps.kept = () => ({ id: 'key_2' })
  await expect(rotate()).rejects.toThrow('keys has lost the event, which was at offset 1')
  expect(said.join()).not.toContain('accepts')
})

test('no key gets a successor while a transaction stays open: it may hide the revocation', async () => {
  const { rotate, revoke, steps, topic, out } = world()
  revoke()
  steps.hidden = 1
  await expect(rotate()).rejects.toThrow(
    'open transactions in partition 0 of keys: they may hide that a key was made or revoked. Nothing was published. End them, and',
  )
  expect([topic.length, out]).toEqual([2, []])
})

test('a transaction that ends soon only delays a rotation, which then knows its events', async () => {
  const { rotate, revoke, steps, topic } = world()
  revoke()
  steps.hidden = 1
  steps.onSleep = () => {
    steps.hidden = 0
  }
  await expect(rotate()).rejects.toThrow('key_1 of org_1 is revoked')
  expect(topic.length).toBe(2)
})

test('no key gets a successor while Kafka does not tell whether a transaction is open', async () => {
  const { rotate, steps, topic } = world()
  steps.logEnds = async () => Promise.reject(new Error('away'))
  await expect(rotate()).rejects.toThrow(
    /^it is not known whether transactions are open in partition 0 of keys.*Look at the brokers, and run the same/,
  )
  expect(topic.length).toBe(1)
})

test('a revocation is published also behind an open transaction, which the command names when it waited in vain', async () => {
  const { revokeById, steps, topic, said } = world()
  topic.push({ id: 'key_2' })
  steps.hidden = 1
  await expect(revokeById('key_1')).rejects.toThrow(
    'behind on keys after 1 s: end the open transactions in partition 0 of keys, which hide records. key_1 is revoked when',
  )
  expect(topic.at(-1)).toEqual({ id: 'key_1', revokes: true })
  expect(said).toEqual([])
})

test('a key whose creation an open transaction hides is not said to be unknown', async () => {
  const { revokeById, steps, topic } = world()
  topic.push({ id: 'key_2' })
  steps.hidden = 1
  await expect(revokeById('key_2')).rejects.toThrow('open transactions in partition 0 of keys')
})
