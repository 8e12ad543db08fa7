/**
 * Checks the members of our consumer group.
 * In: the group as Kafka describes it. Out: members of other installations, and the partitions that no member of ours
 * owns.
 * Promises: each of our members names its installation (index prefix and Elasticsearch cluster) in its member metadata.
 * Can go wrong: the group has members of another installation: `group_shared`. The two would take partitions from each
 * other, and both would look ready. A member of a version that names no installation counts as ours: a rolling upgrade
 * has such members. Only a start stops for them: a new member must not be able to end a running projector.
 */
import kafkajs, { type Admin, type PartitionAssigner } from 'kafkajs'
import { type Retrying, StopError } from '../../runtime/index.ts'
import { withRight } from '../kafka/access-refusal.ts'
import { asUnanswered, untilKafkaAnswers } from '../kafka-retry.ts'

export type InstallationIdentity = {
  readonly prefix: string
  /** The UUID of the Elasticsearch cluster; null if we may not read it. */
  readonly elasticsearch: string | null
}

export type Group = {
  /** False during a rebalance: then nothing is known of owners. */
  readonly isStable: boolean
  /** Prefixes of members of other installations. */
  readonly foreign: readonly string[]
  /** Number of members that name no installation. */
  readonly unmarked: number
  /** Partitions of the topic that members of this installation own. */
  readonly owned: ReadonlySet<number>
}

export type GroupAdmin = Pick<Admin, 'describeGroups'>

const { MemberMetadata, MemberAssignment } = kafkajs.AssignerProtocol

/** The client's default assigner with our metadata. It keeps its name, so that older members can join. */
export const assignerOf =
  (installation: InstallationIdentity): PartitionAssigner =>
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

export const describeGroup = async (
  admin: GroupAdmin,
  groupId: string,
  topic: string,
  ours: InstallationIdentity,
): Promise<Group> => {
  const { groups } = await withRight('Describe', `group ${groupId}`, admin.describeGroups([groupId]))
  const members = groups[0]?.members ?? []
  const marks = members.map(({ memberMetadata }) => markIn(memberMetadata))
  const owned = members.flatMap(({ memberAssignment }, index) => {
    const mark = marks[index]
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

type Joining = { readonly groupId: string; readonly identity: { readonly topic: string } }

type GroupContext = Retrying & {
  readonly admin: GroupAdmin
  readonly warn?: (details: Readonly<Record<string, string | number>>, message: string) => void
}

/** @throws StopError `group_shared` if the group has members of another installation */
export const enterGroup = async (
  { groupId, identity }: Joining,
  ours: InstallationIdentity,
  context: GroupContext,
  signal: AbortSignal,
): Promise<void> => {
  const checkGroup = () => assertOwnGroup(context.admin, groupId, identity.topic, ours)
  const { unmarked } = await untilKafkaAnswers(checkGroup, signal, context)
  if (unmarked > 0)
    context.warn?.({ group: groupId, members: unmarked }, 'members of the group do not name their installation')
}

/** @throws StopError `group_shared`, `access_refused`; Unanswered when Kafka does not answer */
export const assertOwnGroup = async (
  admin: GroupAdmin,
  groupId: string,
  topic: string,
  ours: InstallationIdentity,
): Promise<Group> => {
  const group = await describeGroup(admin, groupId, topic, ours).catch(asUnanswered)
  const [prefix] = group.foreign
  if (prefix === undefined) return group
  const detail = `${groupId} has members of another installation; give each a KAFKA_GROUP_ID of its own`
  throw new StopError('group_shared', detail, { group: groupId, their_prefix: prefix, our_prefix: ours.prefix })
}

const isSame = (a: InstallationIdentity, b: InstallationIdentity): boolean =>
  a.prefix === b.prefix && (a.elasticsearch === b.elasticsearch || a.elasticsearch === null || b.elasticsearch === null)

/** Returns the installation that a member names; undefined if none. */
const markIn = (metadata: Buffer): InstallationIdentity | undefined => {
  try {
    const { userData } = MemberMetadata.decode(metadata) ?? {}
    const { prefix, elasticsearch }: Partial<InstallationIdentity> = JSON.parse(String(userData))
    if (typeof prefix !== 'string' || !/^[a-z0-9-]{1,120}$/.test(prefix)) return undefined
    return { prefix, elasticsearch: typeof elasticsearch === 'string' ? elasticsearch : null }
  } catch {
    return undefined
  }
}
