/**
 * Who shares the partitions of a topic with us. In: the group as Kafka describes it. Out: whether members of another
 * installation are in it, and which partitions none of ours owns.
 * Promises: each member of ours says which installation it is of (index prefix and Elasticsearch cluster), in what it
 * joins the group with.
 * Can go wrong: two installations under one group id would take partitions from each other, and both would look ready.
 * A member of a version that says nothing is taken for one of ours: a rolling upgrade has some.
 */
import kafkajs, { type Admin, type PartitionAssigner } from 'kafkajs'
import { type Elasticsearch, keepTrying, type Patience, Unavailable } from '../elasticsearch/client.ts'
import { kafkaPatience, patiently } from '../elasticsearch/patiently.ts'
import { StopError } from '../failures.ts'
import type { Health } from '../health.ts'

export type Installation = {
  readonly prefix: string
  /** The identity of the Elasticsearch cluster; null where it is not told to us. */
  readonly elasticsearch: string | null
}

export type Group = {
  /** Whether the partitions are given out: while they are shared out again nothing can be said of owners. */
  readonly isStable: boolean
  /** Prefixes of members of other installations. */
  readonly foreign: readonly string[]
  /** Members that do not say which installation they are of. */
  readonly unmarked: number
  /** Partitions of the topic that members of this installation own. */
  readonly owned: ReadonlySet<number>
}

export type GroupAdmin = Pick<Admin, 'describeGroups'>

const installationOf = async (prefix: string, { send }: Pick<Elasticsearch, 'send'>): Promise<Installation> => {
  try {
    const { body } = await send({ method: 'GET', path: '/', query: { filter_path: 'cluster_uuid' } })
    const { cluster_uuid: elasticsearch } = (body ?? {}) as { cluster_uuid?: unknown }
    return { prefix, elasticsearch: typeof elasticsearch === 'string' ? elasticsearch : null }
  } catch (error) {
    // The prefix alone tells most installations apart; credentials that may not see more are enough.
    if (error instanceof StopError) return { prefix, elasticsearch: null }
    throw error
  }
}

const { MemberMetadata, MemberAssignment } = kafkajs.AssignerProtocol

/**
 * Shares the partitions out as the client does by itself, under the same name, so that members of older versions take
 * part.
 */
export const assignerOf =
  (installation: Installation): PartitionAssigner =>
  steps => {
    const usual = kafkajs.PartitionAssigners.roundRobin(steps)
    const userData = Buffer.from(JSON.stringify(installation))
    return {
      ...usual,
      protocol: ({ topics }) => ({
        name: usual.name,
        metadata: MemberMetadata.encode({ version: usual.version, topics, userData }),
      }),
    }
  }

export const lookAtGroup = async (
  admin: GroupAdmin,
  groupId: string,
  topic: string,
  ours: Installation,
): Promise<Group> => {
  const { groups } = await admin.describeGroups([groupId])
  const members = groups[0]?.members ?? []
  const marks = members.map(({ memberMetadata }) => markIn(memberMetadata))
  const owned = members.flatMap(({ memberAssignment }, place) => {
    const mark = marks[place]
    if (mark !== undefined && !isSame(mark, ours)) return []
    return memberAssignment.length === 0 ? [] : (MemberAssignment.decode(memberAssignment)?.assignment[topic] ?? [])
  })
  return {
    isStable: groups[0]?.state === 'Stable',
    foreign: marks.flatMap(mark => (mark === undefined || isSame(mark, ours) ? [] : [mark.prefix])),
    unmarked: marks.filter(mark => mark === undefined).length,
    owned: new Set(owned),
  }
}

type Joining = { readonly prefix: string; readonly groupId: string; readonly identity: { readonly topic: string } }

type GroupContext = {
  readonly admin: GroupAdmin
  readonly elasticsearch: Elasticsearch
  readonly patience: Omit<Patience, 'onTrouble'>
  readonly health: Health
  readonly warn?: (details: Readonly<Record<string, string | number>>, message: string) => void
}

/** Of which installation we are. @throws StopError `group_shared` where the group is another one's */
export const enterGroup = async (
  { prefix, groupId, identity }: Joining,
  context: GroupContext,
  signal: AbortSignal,
): Promise<Installation> => {
  const ours = await patiently('prepare', signal, context, () => installationOf(prefix, context.elasticsearch))
  const look = () => assertOwnGroup(context.admin, groupId, identity.topic, ours)
  const { unmarked } = await keepTrying(look, signal, kafkaPatience(context))
  if (unmarked > 0)
    context.warn?.({ group: groupId, members: unmarked }, 'members of the group do not say whose they are')
  return ours
}

/** @throws StopError `group_shared`; Unavailable when Kafka does not answer */
const assertOwnGroup = async (
  admin: GroupAdmin,
  groupId: string,
  topic: string,
  ours: Installation,
): Promise<Group> => {
  const group = await lookAtGroup(admin, groupId, topic, ours).catch(() => {
    throw new Unavailable(0)
  })
  const [prefix] = group.foreign
  if (prefix === undefined) return group
  const detail = `${groupId} has members of another installation; give each a KAFKA_GROUP_ID of its own`
  throw new StopError('group_shared', detail, { group: groupId, their_prefix: prefix, our_prefix: ours.prefix })
}

const isSame = (a: Installation, b: Installation): boolean =>
  a.prefix === b.prefix && (a.elasticsearch === b.elasticsearch || a.elasticsearch === null || b.elasticsearch === null)

/** What a member says of itself; undefined for one that says nothing. */
const markIn = (metadata: Buffer): Installation | undefined => {
  try {
    const { userData } = MemberMetadata.decode(metadata) ?? {}
    const { prefix, elasticsearch } = JSON.parse(String(userData)) as Partial<Installation>
    if (typeof prefix !== 'string' || !/^[a-z0-9-]{1,120}$/.test(prefix)) return undefined
    return { prefix, elasticsearch: typeof elasticsearch === 'string' ? elasticsearch : null }
  } catch {
    return undefined
  }
}
