/**
 * Documents of three organizations, one of them without records, and keys with every set of permissions. The rules of
 * the projector make them from events, so that each probe goes from an event to an answer.
 */

import { Cache } from '../../../core/ledger/decide/cache.ts'
import { serialize } from '../../../core/ledger/decide/project.ts'
import type { RawRecord } from '../../../core/ledger/event/decode.ts'
import type { Stream } from '../../../schemas/events.ts'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  controlIndexOf,
  FIRST_GENERATION,
  generationId,
  indexOf,
  LIVE_ID,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { commonIndices, generationIndices } from '../../../schemas/stored/mappings.ts'
import type { KeyPermission } from '../../../schemas/values.ts'
import { Documents, projectBatch } from '../../projector/given.ts'
import { record } from '../../projector/records.ts'
import {
  keyCreated,
  keyRevoked,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  periodRecorded,
  repRecorded,
} from '../../support/events.ts'
import { BEGINNING } from '../clock.ts'
import { indexIdOf } from '../hostile/store.ts'
import { PREFIX } from '../promises.ts'
import { Index } from '../stored.ts'

/** `ends`: milliseconds since 1970 from which on the key is refused. `clients`: who may use it; all if absent. */
export type ProbeKey = {
  readonly text: string
  readonly org: OrgName
  readonly permissions: readonly KeyPermission[]
  readonly isRevoked: boolean
  readonly ends: number
  readonly networks?: string[]
  readonly clients?: (client: number) => boolean
}
export type OrgName = 'a' | 'b' | 'empty'
export const orgNames: readonly OrgName[] = ['a', 'b', 'empty']

const parts = [
  'reps:read',
  'periods:read',
  'payouts:read',
  'statements:read',
  'payroll:read',
  'totals:read',
  'changes:read',
] as const

/** Every set of the parts, and sets with `read`. */
const permissionSets: readonly (readonly KeyPermission[])[] = [
  ...Array.from({ length: 2 ** parts.length }, (_, set) => parts.filter((_, part) => set & (2 ** part))),
  ['read'],
  ['read', 'read'],
  ...parts.map(part => [part, 'read'] as const),
]

/** Virtual milliseconds after the beginning: a key expires in the middle of the probes. */
export const EXPIRES_AFTER = 60_000
const NEVER = Number.POSITIVE_INFINITY
/** The addresses of clients: some have the IPv6 form of IPv4. */
export const addressOfClient = (client: number): string => `${client % 3 === 0 ? '::ffff:' : ''}10.0.0.${client}`
/** The end of a key, in milliseconds since 1970, whether it is revoked, and its networks. */
const lives: readonly Pick<ProbeKey, 'ends' | 'isRevoked' | 'networks' | 'clients'>[] = [
  { ends: NEVER, isRevoked: false },
  { ends: BEGINNING, isRevoked: false },
  { ends: BEGINNING + EXPIRES_AFTER, isRevoked: false },
  { ends: Date.UTC(2999, 0, 1), isRevoked: false },
  { ends: NEVER, isRevoked: false, networks: ['10.0.0.0/28'], clients: client => client < 16 },
  {
    ends: BEGINNING + EXPIRES_AFTER,
    isRevoked: false,
    // No client has an address of IPv6.
    networks: ['::/0', '10.0.0.7/32', '10.0.0.16/28'],
    clients: client => client === 7 || (client >= 16 && client < 32),
  },
  { ends: NEVER, isRevoked: true },
]

/** Records that are projected together. Even: a key and its revocation are in one batch. */
const BATCH = 200

export const createProbeStore = async () => {
  const indices = new Map<string, Index>()
  const definitions = {
    ...generationIndices(PREFIX, { generation: FIRST_GENERATION }, { shards: 1 }),
    ...commonIndices(PREFIX),
  }
  for (const [name, definition] of Object.entries(definitions)) indices.set(name, new Index(name, definition))
  const put = (index: string, id: string, text: string): void => {
    indices.get(index)?.write({ _id: id }, 1, text, JSON.parse(text))
  }
  const control = (id: string, document: object): void => put(controlIndexOf(PREFIX), id, JSON.stringify(document))

  const project = async (stream: Stream, events: readonly Outgoing[]): Promise<void> => {
    const records = events.map(toRecord)
    for (let from = 0; from < records.length; from += BATCH) {
      const batch = records.slice(from, from + BATCH)
      const { changes, counts } = await projectBatch(
        batch,
        new Cache({ fromFirstRecord: true }),
        new Documents().read,
        { stream },
      )
      if (counts.applied !== batch.length) throw new Error(`applied ${counts.applied} of ${batch.length} events`)
      for (const { kind, id, line } of changes.map(serialize)) {
        if (kind === 'balances') throw new Error('no event makes a balance')
        put(kind === 'api-keys' ? apiKeysIndexOf(PREFIX) : indexOf(PREFIX, FIRST_GENERATION, kind), id, line.trimEnd())
      }
    }
    const generation = stream === 'events' ? FIRST_GENERATION : API_KEYS_GENERATION
    const position = { position: events.length, last: null, at: 0, time: BEGINNING, serve_from: 0 }
    control(positionId(generation, 0), { kind: 'position', body: position })
    const recorded = Object.fromEntries(Object.keys(definitions).map(name => [name, indexIdOf(name)]))
    const source = { topic: stream, cluster_id: 'simulated', partitions: 1, rules_version: 2, indices: recorded }
    control(generationId(generation), { kind: 'generation', body: { generation, ...source } })
  }

  const keys = orgNames.flatMap(org =>
    permissionSets.flatMap(permissions => lives.map(life => ({ org, permissions, ...life }))),
  )
  const probeKeys: ProbeKey[] = keys.map((key, place) => ({ ...key, text: `ck_probe_${`${place}`.padStart(12, '0')}` }))
  control(LIVE_ID, { kind: 'live', body: { generation: FIRST_GENERATION } })
  await project('events', [...recordsOf('a'), ...recordsOf('b')])
  await project('api-keys', probeKeys.flatMap(eventsOf))
  for (const index of indices.values()) for (let shard = 0; shard < index.shards; shard++) index.refresh(shard)
  return { indices, keys: probeKeys }
}

/** One rep, period and payment, and two payouts, of which one replaces the other. Ids have the organization's name. */
const recordsOf = (name: 'a' | 'b'): Outgoing[] => {
  const org_id = `org_${name}`
  const chain = { org_id, rep_id: `rep_${name}`, period_id: `period_${name}` }
  return [
    repRecorded({ org_id, id: `rep_${name}`, name: `rep of ${name}` }),
    periodRecorded({ org_id, id: `period_${name}` }),
    payoutCalculated({ ...chain, id: `payout_${name}1` }),
    payoutCalculated({ ...chain, id: `payout_${name}2`, supersedes_id: `payout_${name}1` }),
    payrollRecorded({ ...chain, id: `payroll_${name}`, payout_id: `payout_${name}2` }),
  ]
}

const eventsOf = ({ org, permissions, isRevoked, ends, networks, text }: ProbeKey, place: number): Outgoing[] => {
  const name = { org_id: `org_${org}`, id: `key_${place}` }
  const expiry = ends === NEVER ? {} : { expires_at: new Date(ends).toISOString() }
  const within = networks === undefined ? {} : { allowed_networks: networks }
  const created = keyCreated({ ...name, text, permissions: [...permissions], ...expiry, ...within })
  return isRevoked ? [created, keyRevoked(name)] : [created]
}

const toRecord = ({ key, headers, value }: Outgoing, offset: number): RawRecord =>
  record({
    offset,
    timestamp: BEGINNING - 1_000_000 + offset,
    key,
    value,
    headers: Object.entries(headers).map(([name, header]) => [name, String(header)]),
  })
