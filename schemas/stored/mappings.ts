/** Mappings and settings of the indices. A field that no query searches has no index structure. */
import { listOrder } from '../lists.ts'
import {
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  balancesIndexOf,
  controlIndexOf,
  type GenerationDocument,
  indexOf,
  type Kind,
  kinds,
  recordsIndexOf,
} from './documents.ts'

const long = { type: 'long' } as const
const keyword = { type: 'keyword' } as const
/** Stored, never searched: no index structure. */
const stored = { type: 'keyword', index: false, doc_values: false } as const
const storedLong = { type: 'long', index: false, doc_values: false } as const
/** Read by totals, never searched. */
const counted = { type: 'keyword', index: false } as const
const body = { type: 'object', enabled: false } as const
/** Only the deals of a payout's lines are indexed: Elasticsearch reads over all other fields. */
const bodyWithDeals = {
  dynamic: 'false',
  properties: { line_items: { properties: { deal_id: { type: 'keyword', doc_values: false } } } },
} as const

const versions = {
  org_id: keyword,
  first_seq: long,
  seq: long,
  ordinal: storedLong,
  until_seq: long,
  at: long,
  hash: stored,
  body_bytes: storedLong,
  body,
}

const parked = {
  code: keyword,
  org_id: keyword,
  type: keyword,
  event_id: keyword,
  topic: keyword,
  partition: long,
  offset: long,
  at: long,
  body_bytes: storedLong,
  body,
}

const revoked = { type: 'boolean' } as const
const apiKeys = { key_id: keyword, org_id: keyword, permissions: keyword, revoked, body_bytes: storedLong, body }

const properties = {
  reps: versions,
  periods: versions,
  payouts: {
    org_id: keyword,
    seq: long,
    until_seq: long,
    superseded_by_id: stored,
    at: long,
    rep_id: keyword,
    period_id: keyword,
    amount: counted,
    currency: counted,
    hash: stored,
    body_bytes: storedLong,
    body,
  },
  statements: { org_id: keyword, seq: long, body_bytes: storedLong, body },
  payroll_files: {
    org_id: keyword,
    seq: long,
    at: long,
    rep_id: keyword,
    period_id: keyword,
    reverses_id: keyword,
    amount: counted,
    currency: counted,
    hash: stored,
    body_bytes: storedLong,
    body,
  },
  chains: { org_id: keyword, body_bytes: storedLong, body },
  parked,
} as const satisfies Record<Kind, object>

/** Layout 3 searches balances by the number of changes, too. */
const balances = (layout: 2 | 3) => ({
  org_id: keyword,
  seq: long,
  sequence: layout >= 3 ? long : storedLong,
  body_bytes: storedLong,
  body,
})

/** All kinds that lists search, with the fields of all of them. `body` is last, as in documents. */
const allRecords = (layout: 2 | 3) => ({
  kind: keyword,
  ...properties.reps,
  ...properties.payouts,
  ...properties.payroll_files,
  body_bytes: storedLong,
  body: layout >= 3 ? bodyWithDeals : body,
})

export type IndexDefinition = {
  mappings: { dynamic: 'strict'; _routing?: { required: true }; properties: Record<string, object> }
  settings: Record<string, unknown>
}

type Sort = { readonly field: readonly [string, string]; readonly order: readonly ['asc', 'asc'] }
const byOrganization = (field: string): Sort => ({ field: ['org_id', field], order: ['asc', 'asc'] })

const definition = (fields: Record<string, object>, replicas?: number, shards = 1, sort?: Sort): IndexDefinition => ({
  mappings: { dynamic: 'strict', properties: fields },
  settings: {
    number_of_shards: shards,
    // By default: one replica if a second node can hold it, else none, so that the index is green.
    ...(replicas === undefined ? { auto_expand_replicas: '0-1' } : { number_of_replicas: replicas }),
    // The projector refreshes before it publishes a position: a timer would only add work.
    refresh_interval: '-1',
    ...(sort === undefined ? {} : { sort }),
  },
})

/** The same index, whose documents are routed by their organization. A write or a read without a routing is refused. */
const routed = ({ mappings, settings }: IndexDefinition, partitionSize: number): IndexDefinition => ({
  mappings: { dynamic: mappings.dynamic, _routing: { required: true }, properties: mappings.properties },
  settings: { ...settings, ...(partitionSize > 1 && { routing_partition_size: partitionSize }) },
})

/** The shards and copies of new indices. */
export type IndexSizes = { readonly shards: number; readonly replicas?: number | undefined }

/** Returns the indices of one generation: name → mapping and settings. */
export const generationIndices = (
  prefix: string,
  {
    generation,
    layout,
    routing_partition_size = 1,
  }: Pick<GenerationDocument['body'], 'generation' | 'layout' | 'routing_partition_size'>,
  { shards, replicas }: IndexSizes,
): Record<string, IndexDefinition> => {
  if (layout === undefined) {
    return Object.fromEntries(
      kinds.map(kind => [
        indexOf(prefix, generation, kind),
        definition(properties[kind], replicas, shards, sortOf[kind]),
      ]),
    )
  }
  const routedBy = (fields: Record<string, object>, sort?: Sort) =>
    routed(definition(fields, replicas, shards, sort), routing_partition_size)
  return {
    // Nearly all records are payouts: in this order, both their list and the feed read neighbours.
    [recordsIndexOf(prefix, generation)]: routedBy(allRecords(layout), byOrganization('seq')),
    [indexOf(prefix, generation, 'statements')]: routedBy(properties.statements),
    [indexOf(prefix, generation, 'chains')]: routedBy(properties.chains),
    // Not every parked record has an organization.
    [indexOf(prefix, generation, 'parked')]: definition(properties.parked, replicas),
    // Few: one of some thousand documents.
    [balancesIndexOf(prefix, generation)]: definition(balances(layout), replicas),
  }
}

const sortOf: Partial<Record<Kind, Sort>> = Object.fromEntries(
  Object.entries(listOrder).map(([kind, field]) => [kind, byOrganization(field)]),
)

/** The indices that all generations share. The control index is created first, so no other index is older. */
export const commonIndices = (prefix: string, replicas?: number): Record<string, IndexDefinition> => ({
  [controlIndexOf(prefix)]: definition({ kind: keyword, body }, replicas),
  ...apiKeysIndices(prefix, replicas),
})

/** The indices of API keys and of their parked records. */
export const apiKeysIndices = (prefix: string, replicas?: number): Record<string, IndexDefinition> => ({
  [apiKeysIndexOf(prefix)]: definition(apiKeys, replicas),
  [apiKeysParkedIndexOf(prefix)]: definition(parked, replicas),
})
