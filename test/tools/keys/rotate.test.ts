/** Rotations of `key_1`. The topic of keys has its creation; another operator may publish its revocation. */
import { expect, test } from 'vitest'
import type { CommandContext, KafkaContext } from '../../../tools/context.ts'
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
  }
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
    fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: `${topic.length}` }],
  }
  const producer = {
    ...connects,
    send: async ({ messages }: { messages: readonly { value: string; headers: { ce_type: string } }[] }) => {
      const revokes = messages[0]?.headers.ce_type.includes('revoked') ?? false
      if (!revokes) steps.onCreate()
      const { id } = JSON.parse(messages[0]?.value ?? '')
      return [{ baseOffset: `${topic.push({ id, ...(revokes && { revokes }) }) - 1}` }]
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
      if (projects) projected = topic.length
    },
    ...{ kafka: { admin: () => admin, producer: () => producer }, topics: { events: 'events', 'api-keys': 'keys' } },
  } as unknown as KafkaContext
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
