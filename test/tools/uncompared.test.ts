/** Commands while a recorded shard cannot be compared: one that decides refuses, one that only lists warns. */
import { expect, test } from 'vitest'
import type { GenerationBody } from '../../core/log/index.ts'
import { generationId, LIVE_ID, positionId } from '../../schemas/stored/documents.ts'
import type { ClusterContext } from '../../tools/context.ts'
import { diff } from '../../tools/generations/diff.ts'
import { assertNotAnew, findWhole } from '../../tools/generations/sandboxes.ts'
import { swap } from '../../tools/generations/swap.ts'
import { verify } from '../../tools/generations/verify.ts'
import { grow } from '../../tools/grow/grow.ts'
import { listKeys, revokeKey } from '../../tools/keys/keys.ts'
import { rotateKey } from '../../tools/keys/rotate.ts'
import { again, count, listParked, showParked } from '../../tools/parked/parked.ts'
import { validateFile } from '../../tools/validate/validate.ts'
import { sending } from '../support/answering.ts'
import { MemoryElasticsearch } from '../support/memory-elasticsearch.ts'
import { answerParked } from '../support/parked-store.ts'
import { answerIds, recordedIds } from '../support/shard-answers.ts'

const indices = ['p-g1-parked', 'p-g2-parked', 'p-api-keys', 'p-sandbox-s-parked']
const identityOf = (generation: string, topic: string, index: string): GenerationBody => {
  const rules_version = generation === 'api-keys' ? 2 : 4
  return { generation, topic, cluster_id: 'c', partitions: 1, rules_version, ...recordedIds([index]) }
}

type Away = 'before documents are read' | 'since documents are read'

/** Two generations, the keys and a sandbox; the node of this shard is away, by default always. */
const world = (hidden: string, away?: Away) => {
  let isAway = away !== 'since documents are read'
  const engine = new MemoryElasticsearch()
  const add = (prefix: string, identity: GenerationBody, more: object = {}): GenerationBody => {
    const { generation } = identity
    engine.put(`${prefix}-control`, generationId(generation), 1, { kind: 'generation', body: { ...identity, ...more } })
    const position = { position: 5, last: null, at: 1, time: 2, serve_from: 0 }
    engine.put(`${prefix}-control`, positionId(generation, 0), 1, { kind: 'position', body: position })
    return identity
  }
  add('p', identityOf('g1', 'events', 'p-g1-parked'))
  add('p', identityOf('g2', 'events', 'p-g2-parked'))
  add('p', identityOf('api-keys', 'keys', 'p-api-keys'))
  const sandbox = add('p-sandbox', identityOf('s', 'events', 'p-sandbox-s-parked'), {
    sandbox: { org: null, until: null, bounds: [5], rules: null },
  })
  const body = { generation: 'g1', previous: 'g2', kept: ['g1', 'g2'] }
  engine.put('p-control', LIVE_ID, 1, { kind: 'live', body })
  const said: string[] = []
  const whole = { _shards: { failed: 0 }, timed_out: false }
  const send = sending(async request => {
    if (away !== undefined && request.path.endsWith('/_pit')) isAway = away === 'since documents are read'
    const ids = answerIds(request.path, ['p-control', ...indices, 'p-sandbox-control'], isAway ? [hidden] : [])
    if (ids !== undefined) return ids
    if (request.path === '/p-api-keys/_search') return { status: 200, body: { ...whole, hits: { hits: [] } } }
    return answerParked(request, new Map()) ?? engine.send(request)
  })
  const nothing = async () => undefined
  const admin = {
    ...{ connect: nothing, disconnect: nothing },
    describeCluster: async () => ({ clusterId: 'c' }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
    fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: '5' }],
  }
  const context = {
    ...{ send, prefix: 'p', out: () => undefined, say: (line: string) => void said.push(line) },
    ...{ now: () => 0, elapsed: () => 0, sleep: nothing, signal: new AbortController().signal },
    ...{ kafka: { admin: () => admin }, topics: { events: 'events', 'api-keys': 'keys' } },
    openCluster: async () => ({ logEnds: async () => new Map([[0, 5]]), disconnect: nothing }),
  } as unknown as Omit<ClusterContext, 'out'> & { readonly out: () => undefined }
  return { context: { ...context, signal: new AbortController().signal }, said, sandbox }
}
type World = ReturnType<typeof world>
type Run = (world: World) => Promise<unknown>

const key = { org: 'org_1', id: 'key_1', waitSeconds: 1, json: false, expiresAt: null }
const nothingElse = { positions: [], filter: {}, json: false }
const NO_RESULT = 'The comparison has no result'
const comparing: Run = ({ context }) => verify({ a: 'g2', b: 'g1', json: false }, context)
const [ofEvents, ofKeys, ofSandbox] = ['p-g1-parked/0', 'p-api-keys/0', 'p-sandbox-s-parked/0']

test.each<[string, string, string, Run, Away?]>([
  [
    'keys rotate',
    ofKeys,
    'Nothing was published',
    ({ context }) => rotateKey({ ...key, name: undefined, networks: undefined }, context),
  ],
  ['keys revoke', ofKeys, 'Nothing was revoked', ({ context }) => revokeKey(key, context)],
  ['projection verify of the first', 'p-g2-parked/0', NO_RESULT, comparing, 'before documents are read'],
  ['projection verify of the second', ofEvents, NO_RESULT, comparing, 'before documents are read'],
  ['projection verify of the first, at its end', 'p-g2-parked/0', NO_RESULT, comparing, 'since documents are read'],
  ['projection verify of the second, at its end', ofEvents, NO_RESULT, comparing, 'since documents are read'],
  [
    'projection swap',
    'p-g2-parked/0',
    'Nothing is changed. Try again, or --force with a reason',
    ({ context }) => swap({ generation: 'g2', force: undefined, json: false }, context),
  ],
  [
    'grow --swap',
    ofEvents,
    'Nothing is changed',
    ({ context }) =>
      grow(
        { to: 'events-2', partitions: 2, swap: true, maxRate: 1, json: false },
        context as unknown as Parameters<typeof grow>[1],
      ),
  ],
  [
    'parked publish-again --publish',
    ofEvents,
    'Nothing was published',
    ({ context }) => again({ ...nothingElse, publish: true, force: false, waitSeconds: 1 }, context),
  ],
])('%s refuses while a shard cannot be compared', async (_, shard, end, run, away) => {
  const what = `the shard ${shard} cannot be compared with the recorded one, and documents may be missing`
  await expect(run(world(shard, away))).rejects.toThrow(new RegExp(`^${what}: .* ${end}$`))
})

const validated = { file: 'f', type: undefined, partitions: 1, live: true, json: false, generation: undefined }
test.each<[string, string, Run]>([
  ['keys list', ofKeys, ({ context }) => listKeys({ org: 'org_1', json: true }, context)],
  [
    'parked list',
    ofEvents,
    ({ context }) => listParked({ filter: {}, order: 'oldest', after: undefined, limit: 1, json: true }, context),
  ],
  ['parked count', ofEvents, ({ context }) => count({ filter: {}, json: true }, context)],
  [
    'parked show',
    ofEvents,
    ({ context }) => showParked({ position: { topic: 'events', partition: 0, offset: 1 }, as: 'json' }, context),
  ],
  [
    'parked publish-again without --publish',
    ofEvents,
    ({ context }) => again({ ...nothingElse, publish: false, force: false, waitSeconds: 1 }, context),
  ],
  [
    'validate --live',
    ofKeys,
    ({ context }) =>
      validateFile(validated, { ...context, draw: undefined, context: () => context, open: async function* () {} }),
  ],
  [
    'diff',
    ofEvents,
    ({ context }) => diff({ a: 'g1', b: 'g2', org: undefined, format: 'table', html: undefined }, context),
  ],
  ['a command that answers from a sandbox', ofSandbox, ({ context }) => findWhole('sandbox:s', context)],
  [
    'replay, before it says that the sandbox is complete',
    ofSandbox,
    ({ context, sandbox }) => assertNotAnew(sandbox, { ...context, prefix: 'p-sandbox' }),
  ],
])('%s warns while a shard cannot be compared', async (_, shard, run) => {
  const its = world(shard)
  // Its answer without documents does not count here.
  await run(its).catch(() => undefined)
  expect(its.said.join('\n')).toContain(`the shard ${shard} cannot be compared with the recorded one`)
})
