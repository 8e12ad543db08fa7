/** Documents of two organizations, victim and attacker. They never change: each request has one correct answer. */

import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  controlIndexOf,
  FIRST_GENERATION,
  generationId,
  indexOf,
  LIVE_ID,
  positionId,
  recordId,
  versionId,
} from '../../../schemas/stored/documents.ts'
import { commonIndices, generationIndices } from '../../../schemas/stored/mappings.ts'
import { documentText, payoutBodies, sha256 } from '../../support/bodies.ts'
import { PREFIX } from '../promises.ts'
import { Index } from '../stored.ts'

export type Organization = {
  readonly name: string
  readonly key: string
  /** Body of the answer, by path. */
  readonly answers: ReadonlyMap<string, string>
}
export type Store = {
  readonly indices: Map<string, Index>
  readonly victim: Organization
  readonly attacker: Organization
}

/** Records per organization, and bytes per payout. */
const RECORDS = 24
const VICTIM_BYTES = 200
const ATTACKER_BYTES = 3_000

/** Returns the id that Elasticsearch gives an index at its creation. */
export const indexIdOf = (name: string): string => `id-of-${name}`

export const createStore = (): Store => {
  const indices = new Map<string, Index>()
  const definitions = {
    ...generationIndices(PREFIX, { generation: FIRST_GENERATION }, { shards: 1 }),
    ...commonIndices(PREFIX),
  }
  for (const [name, definition] of Object.entries(definitions)) indices.set(name, new Index(name, definition))
  const put = (index: string, id: string, text: string): void => {
    indices.get(index)?.write({ _id: id }, 1, text, JSON.parse(text))
  }
  const putPosition = (generation: string, position: number): void =>
    put(
      controlIndexOf(PREFIX),
      positionId(generation, 0),
      JSON.stringify({
        kind: 'position',
        body: { position, last: null, at: 0, time: 1_700_000_000_000, serve_from: 0 },
      }),
    )
  put(controlIndexOf(PREFIX), LIVE_ID, JSON.stringify({ kind: 'live', body: { generation: FIRST_GENERATION } }))
  const recorded = Object.fromEntries(Object.keys(definitions).map(name => [name, indexIdOf(name)]))
  const identity = {
    topic: 'commission.events',
    cluster_id: 'simulated',
    partitions: 1,
    rules_version: 1,
    indices: recorded,
  }
  for (const generation of [FIRST_GENERATION, API_KEYS_GENERATION]) {
    const text = JSON.stringify({ kind: 'generation', body: { generation, ...identity } })
    put(controlIndexOf(PREFIX), generationId(generation), text)
  }
  putPosition(FIRST_GENERATION, 4 * RECORDS)
  putPosition(API_KEYS_GENERATION, 0)
  const victim = putOrganization('org_victim', 0, VICTIM_BYTES, put)
  const attacker = putOrganization('org_attacker', 2 * RECORDS, ATTACKER_BYTES, put)
  for (const index of indices.values()) for (let shard = 0; shard < index.shards; shard++) index.refresh(shard)
  return { indices, victim, attacker }
}

type Put = (index: string, id: string, text: string) => void

const putOrganization = (org: string, from: number, bytes: number, put: Put): Organization => {
  const answers = new Map<string, string>()
  const key = `ck_${org}_0123456789`
  const permitted = { key_id: `key_${org.slice(4)}`, org_id: org, permissions: ['read'], revoked: false }
  put(apiKeysIndexOf(PREFIX), sha256(key), documentText(permitted, '{"created_seq":0}'))
  const shown: { readonly id: string; readonly text: string }[] = []
  for (let n = 0; n < RECORDS; n++) {
    const id = `payout_${org.slice(4)}${n}`
    const pair = { rep: `rep_${org.slice(4)}${n}`, period: 'period_1' }
    const description = `${org} ${'x'.repeat(bytes)}`
    const lines = [{ id: 'line_1', amount: `${n}.5`, description }]
    const { body, statement } = payoutBodies({
      id,
      ...pair,
      amount: `${n}.5`,
      lines,
      trace: [{ name: org, output_amount: '1' }],
    })
    const seq = from + 2 * n
    const fields = {
      org_id: org,
      seq,
      until_seq: UNTIL_FOREVER,
      superseded_by_id: null,
      at: seq,
      rep_id: pair.rep,
      period_id: pair.period,
      amount: `${n}.5`,
      currency: 'EUR',
      hash: sha256(body + statement),
    }
    put(indexOf(PREFIX, FIRST_GENERATION, 'payouts'), recordId(org, id), documentText(fields, body))
    put(
      indexOf(PREFIX, FIRST_GENERATION, 'statements'),
      recordId(org, id),
      documentText({ org_id: org, seq }, statement),
    )
    const text = `${body.slice(0, -1)},"superseded_by_id":null}`
    shown.push({ id, text })
    answers.set(`/payouts/${id}`, `{"data":${text}}`)
    answers.set(`/statements/${id}`, `{"data":${text.slice(0, -1)},${statement.slice(1)}}`)
    answers.set(
      `/payouts/${id}/history`,
      listText([{ id, text: `${text.slice(0, -1)},"difference":null}` }], 50, undefined),
    )
    putRep(org, pair.rep, seq + 1, put)
  }
  for (const limit of [1, 7, 50, 200]) {
    answers.set(`/payouts?limit=${limit}`, listText(shown, limit, undefined))
    answers.set(`/payouts?limit=${limit}&starting_after=${shown[4]?.id}`, listText(shown.slice(5), limit, undefined))
    answers.set(`/payouts?starting_after=${shown.at(-1)?.id}&limit=${limit}`, listText([], limit, shown.at(-1)?.id))
  }
  return { name: org, key, answers }
}

const putRep = (org: string, id: string, seq: number, put: Put): void => {
  const body = JSON.stringify({ id, name: org, email: null, status: 'active', started_on: null, departed_on: null })
  const fields = { org_id: org, first_seq: seq, seq, ordinal: 1, until_seq: UNTIL_FOREVER, at: seq, hash: sha256(body) }
  const index = indexOf(PREFIX, FIRST_GENERATION, 'reps')
  put(index, versionId(org, id, seq), documentText(fields, body))
  put(
    index,
    recordId(org, id),
    documentText({ org_id: org }, JSON.stringify({ versions: [{ seq, hash: sha256(body) }] })),
  )
}

const listText = (all: readonly { id: string; text: string }[], limit: number, after: string | undefined): string => {
  const page = all.slice(0, limit)
  const data = page.map(({ text }) => text).join()
  return `{"data":[${data}],"has_more":${all.length > limit},"next_cursor":"${page.at(-1)?.id ?? after ?? ''}"}`
}
