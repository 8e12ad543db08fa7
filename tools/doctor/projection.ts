/** Checks of what is projected, for identities that read it: whether they may trust it, and whether the API answers. */
import type { Admin } from 'kafkajs'
import { RULES_VERSION } from '../../core/ledger/index.ts'
import { assertSameSource, describeSource } from '../../core/log/index.ts'
import {
  createApiKeyCache,
  createIndexChecks,
  createReaders,
  keysChecked,
  searchesPermitted,
} from '../../core/reading/index.ts'
import { Refusal, StopError, scheduleTimer } from '../../core/runtime/index.ts'
import {
  assertControlNotLost,
  listIndices,
  readGeneration,
  readGenerations,
  type SearchClient,
  type Send,
  uncounted,
} from '../../core/store/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { API_KEYS_GENERATION, controlIndexOf } from '../../schemas/stored/documents.ts'
import { findUncompared } from '../documents/shards.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

type Values = Readonly<Record<string, string>>

export const settingOfTopic = { events: 'KAFKA_EVENTS_TOPIC', 'api-keys': 'KAFKA_API_KEYS_TOPIC' } as const

const NOTHING = 'nothing is projected yet'

const stepsOf = (send: Send, values: Values, signal: AbortSignal) => ({
  prefix: values.ELASTICSEARCH_INDEX_PREFIX ?? '',
  request: <Body>(asked: Parameters<Send>[0]) => send<Body>(asked, signal),
})

/**
 * For other identities than the projector: the live generation is of this topic and of this version of the rules; the
 * one of API keys is of this topic. The indices are those that were recorded.
 */
export const checkProjection = async (
  stream: Stream,
  admin: Admin,
  send: Send,
  values: Values,
  signal: AbortSignal,
): Promise<Finding[]> => {
  const check = 'projection'
  const steps = stepsOf(send, values, signal)
  return unlessMissing(check, async () => {
    const name = stream === 'events' ? (await readGenerations(steps))?.live : API_KEYS_GENERATION
    const identity = name === undefined ? undefined : await readGeneration(name, steps)
    if (identity === undefined) return [ok(check, NOTHING)]
    const topic = values[settingOfTopic[stream]] ?? identity.topic
    assertSameSource(identity, await describeSource(admin, topic))
    const shard = await findUncompared(identity, { ...steps, send: steps.request })
    const { generation, rules_version } = identity
    if (shard !== undefined) {
      const detail = `the shard ${shard} of ${generation} cannot be compared with the recorded one`
      return [warning(check, detail, 'bring its node back, or give this user monitor on the indices: docs/access.md')]
    }
    if (stream === 'api-keys' || rules_version === RULES_VERSION)
      return [ok(check, `generation ${generation} is of topic ${topic}`)]
    const detail = `generation ${generation} has version ${rules_version} of the rules, this program ${RULES_VERSION}`
    return [warning(check, detail, 'npx commission projection rebuild')]
  })
}

const unlessMissing = async (check: string, look: () => Promise<Finding[]>): Promise<Finding[]> => {
  try {
    return await look()
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    if (error.code === 'index_missing' && error.where.status === 404) return [ok(check, NOTHING)]
    return [failed(check, error.message, 'docs/operating.md has each stop code')]
  }
}

const RUNBOOK = 'docs/runbooks.md, CommissionApiNotReady'
const RUNBOOK_OF_PARTITIONS = 'docs/runbooks.md, CommissionPartitionNotServed'

/** Asks what `/readyz` of the API asks, if something is projected. */
export const checkAnswers = async (
  { search, multiGet, indexIds }: SearchClient,
  send: Send,
  values: Values,
  now: () => number,
  signal: AbortSignal,
): Promise<Finding[]> => {
  const check = 'answers'
  const steps = stepsOf(send, values, signal)
  return unlessMissing(check, async () => {
    const names = [...(await listIndices(steps)).keys()]
    if (!names.includes(controlIndexOf(steps.prefix))) assertControlNotLost(names, steps.prefix)
    if ((await readGenerations(steps)) === undefined) return [ok(check, NOTHING)]
    const { prefix } = steps
    const indexChecks = createIndexChecks(prefix, multiGet, indexIds, now, scheduleTimer)
    const reads = uncounted({ search, multiGet })
    const { positions } = createReaders({ prefix, reads, indexChecks, now, elapsed: now, later: scheduleTimer })
    const keys = keysChecked(createApiKeyCache(prefix, multiGet, now, now), indexChecks.check)
    const [served, keysServed] = await Promise.allSettled([
      searchesPermitted(positions.readServedPositions, search, now)(signal),
      keys.checkServed(signal),
    ])
    const refused = [served, keysServed].flatMap(one => (one.status === 'rejected' ? [one.reason as unknown] : []))
    const unexpected = refused.find(error => !(error instanceof Refusal))
    if (unexpected !== undefined) throw unexpected
    const positionsServed = served.status === 'fulfilled' ? served.value : undefined
    const notServed = [...(positionsServed?.notServed ?? [])].map(
      ([partition, reason]) => `partition ${partition}: ${reason}`,
    )
    const reasons = [
      ...refused.map(error => (error instanceof Refusal ? (error.reason ?? error.code) : '')),
      ...notServed,
    ]
    if (reasons.length === 0) return [ok(check, 'a generation and the API keys are served')]
    // As `/readyz`: one partition that waits takes no answer from the others.
    const isOneServed = positionsServed?.partitions.some(position => position !== undefined)
    if (refused.length === 0 && isOneServed) {
      const detail = `the API answers 503 for the organizations of some partitions: ${notServed.join(', ')}`
      return [warning(check, detail, RUNBOOK_OF_PARTITIONS)]
    }
    return [failed(check, `the API answers 503: ${[...new Set(reasons)].join(', ')}`, RUNBOOK)]
  })
}
