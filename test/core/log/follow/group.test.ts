import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import {
  assignerOf,
  describeGroup,
  enterGroup,
  type GroupAdmin,
  type InstallationIdentity,
} from '../../../../core/log/follow/group.ts'
import { OWNERS_GRACE_MS, OWNERS_INTERVAL_MS } from '../../../../core/projection/limits.ts'
import { watchOwners } from '../../../../core/projection/stream/watch-owners.ts'
import { createHealth } from '../../../../core/runtime/health.ts'

const topic = 'commission.events'
const ours: InstallationIdentity = { prefix: 'commission', elasticsearch: 'cluster-1' }
const { MemberMetadata, MemberAssignment } = kafkajs.AssignerProtocol

/** The metadata of a member when it joins. A member of an older version names no installation. */
const metadataOf = (installation: InstallationIdentity | undefined): Buffer => {
  if (installation === undefined)
    return MemberMetadata.encode({ version: 0, topics: [topic], userData: Buffer.alloc(0) })
  const steps = { cluster: {} } as unknown as Parameters<ReturnType<typeof assignerOf>>[0]
  return assignerOf(installation)(steps).protocol({ topics: [topic] }).metadata
}

type Given = readonly (readonly [installation: InstallationIdentity | undefined, partitions: readonly number[]])[]

const groupOf = (members: Given, state = 'Stable'): GroupAdmin => ({
  describeGroups: async ([groupId = '']) => ({
    groups: [
      {
        errorCode: 0,
        groupId,
        protocol: 'RoundRobinAssigner',
        protocolType: 'consumer',
        state: state as 'Stable',
        members: members.map(([installation, partitions], number) => ({
          clientHost: '',
          clientId: '',
          memberId: `${number}`,
          memberMetadata: metadataOf(installation),
          memberAssignment: MemberAssignment.encode({
            version: 0,
            assignment: { [topic]: [...partitions] },
            userData: Buffer.alloc(0),
          }),
        })),
      },
    ],
  }),
})

describe('a group', () => {
  const look = (members: Given) => describeGroup(groupOf(members), 'g', topic, ours)

  test('with only our members has our owners, including members of older versions', async () => {
    expect(
      await look([
        [ours, [0, 2]],
        [undefined, [1]],
      ]),
    ).toEqual({
      isStable: true,
      foreign: [],
      unmarked: 1,
      owned: new Set([0, 1, 2]),
    })
  })

  test.each([
    ['prefix', { prefix: 'staging', elasticsearch: 'cluster-1' }],
    ['Elasticsearch', { prefix: 'commission', elasticsearch: 'cluster-2' }],
  ])('with a member of another %s has a foreign owner', async (_, other) => {
    const { foreign, owned } = await look([
      [ours, [0]],
      [other, [1]],
    ])
    expect([foreign, [...owned]]).toEqual([[other.prefix], [0]])
  })

  test('with our prefix is ours if the cluster is unknown', async () => {
    expect((await look([[{ prefix: 'commission', elasticsearch: null }, [1]]])).foreign).toEqual([])
  })
})

describe('joining a group', () => {
  const enter = (members: Given, warned: unknown[] = []) =>
    enterGroup(
      { groupId: 'g', identity: { topic } },
      ours,
      {
        admin: groupOf(members),
        retryOptions: { sleep: async () => undefined, random: () => 0 },
        health: createHealth({ warn: () => undefined, info: () => undefined }, () => 0),
        warn: details => void warned.push(details),
      },
      new AbortController().signal,
    )

  test('with our members is allowed without a warning', async () => {
    const warned: unknown[] = []
    await enter([[ours, [0]]], warned)
    expect(warned).toEqual([])
  })

  test('with members of another installation is refused', async () => {
    await expect(enter([[{ prefix: 'staging', elasticsearch: null }, [0]]])).rejects.toMatchObject({
      code: 'group_shared',
      where: { group: 'g', their_prefix: 'staging', our_prefix: 'commission' },
    })
  })

  test('with members that name no installation logs a warning', async () => {
    const warned: unknown[] = []
    await enter([[undefined, [0]]], warned)
    expect(warned).toEqual([{ group: 'g', members: 1 }])
  })
})

describe('partitions without an owner', () => {
  /** The reason after each look at the group. */
  const watch = async (looks: readonly GroupAdmin[]): Promise<(string | undefined)[]> => {
    const stopping = new AbortController()
    const said: (string | undefined)[] = []
    let at = -1
    await watchOwners(
      { groupId: 'g', generation: 'g1', topic, partitions: 2, installation: ours },
      {
        admin: { describeGroups: async groups => (looks[at] as GroupAdmin).describeGroups(groups) },
        elapsed: () => at * OWNERS_INTERVAL_MS,
        retryOptions: {
          sleep: async () => {
            if (++at === looks.length) stopping.abort()
          },
        },
        health: { set: (_, reason) => void said.push(reason) },
        onUnowned: () => undefined,
      },
      stopping.signal,
    )
    return said
  }
  const grace = OWNERS_GRACE_MS / OWNERS_INTERVAL_MS
  const half = groupOf([[ours, [0]]])
  const whole = groupOf([[ours, [0, 1]]])

  test('are reported once that has lasted, until they have one', async () => {
    const said = await watch([...Array(grace + 1).fill(half), whole])
    const reason = 'no projector of commission owns partitions 1'
    expect(said).toEqual([...Array(grace).fill(undefined), reason, undefined])
  })

  test('are not reported during a rebalance, unless it never ends', async () => {
    const sharing = groupOf([[ours, []]], 'PreparingRebalance')
    expect(await watch([sharing, half, whole, ...Array(grace).fill(half)])).toEqual(Array(grace + 3).fill(undefined))
    expect((await watch(Array(grace + 1).fill(sharing))).at(-1)).toContain('partitions 0, 1')
  })
})
