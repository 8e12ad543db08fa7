/** Writes stored documents without a projector, for tests of the API. Every store has its own prefix. */
import { randomBytes } from 'node:crypto'
import { layoutOfNew } from '../../core/store/generations/prepare.ts'
import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import { partitionOf } from '../../schemas/partition.ts'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  controlIndexOf,
  FIRST_GENERATION,
  generationId,
  type Kind,
  LIVE_ID,
  positionId,
  recordId,
  versionId,
} from '../../schemas/stored/documents.ts'
import { INDEX_ID_FILTER, indexIdsIn } from '../../schemas/stored/index-ids.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import { commonIndices, generationIndices } from '../../schemas/stored/mappings.ts'
import { documentText, type Payout, payoutBodies, type Replaced, sha256 } from './bodies.ts'
import { fetchFromElasticsearch } from './elasticsearch-requests.ts'

export type Store = Awaited<ReturnType<typeof createStore>>

type Options = {
  partitions?: number
  shards?: number
  /** By default that of new generations. */
  layout?: 1 | 2
  /** The prefix of an existing store, to add another generation to it. */
  prefix?: string
  generation?: string
  /** The version of the rules of the generation. */
  rules?: number
  /** The time of offset 0, in milliseconds. Each later offset is a millisecond later. */
  timeOfFirst?: number
}

type KeyOptions = { permissions?: string[]; revoked?: boolean; text?: string }

export const createStore = async (url: string, options: Options = {}) => {
  const prefix = options.prefix ?? `test-${randomBytes(6).toString('hex')}`
  const partitions = options.partitions ?? 6
  const generation = options.generation ?? FIRST_GENERATION
  const timeOfFirst = options.timeOfFirst ?? 0
  const taken = new Set<number>()
  const lines: string[] = []
  const written = new Set<string>()

  const call = async (method: string, path: string, body?: string, type = 'application/json'): Promise<string> => {
    const answer = await fetchFromElasticsearch(`${url}${path}`, {
      method,
      headers: { 'content-type': type },
      ...(body === undefined ? {} : { body }),
    })
    const text = await answer.text()
    if (!answer.ok && answer.status !== 404) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text
  }
  const put = (index: string, id: string, text: string, routing?: string) => {
    written.add(index)
    lines.push(`${JSON.stringify({ index: { _index: index, _id: id, routing } })}\n${text}\n`)
  }
  const layoutFields = layoutOfNew({ shards: 1, layout: options.layout })
  const layout = layoutOf(prefix, { generation, topic: '', ...layoutFields })
  const putIn = (kind: Kind, id: string, fields: object, body: string) => {
    const { _index, _id, routing } = layout.addressOf(kind, id)
    put(_index, _id, `{${layout.storedWith(kind)}${documentText(fields, body).slice(1)}`, routing)
  }

  /** Writes the documents that were put, and refreshes their indices. */
  const flush = async () => {
    while (lines.length > 0) {
      const text = await call(
        'POST',
        '/_bulk?filter_path=errors',
        lines.splice(0, 1_000).join(''),
        'application/x-ndjson',
      )
      if (!text.includes('"errors":false')) throw new Error(`bulk: ${text}`)
    }
    const refreshed = [...written].join()
    written.clear()
    if (refreshed !== '') await call('POST', `/${refreshed}/_refresh`)
  }

  const first = options.generation === undefined
  const indices = {
    ...generationIndices(prefix, { generation, ...layoutFields }, { shards: options.shards ?? 1 }),
    ...(first ? commonIndices(prefix) : {}),
  }
  for (const [name, definition] of Object.entries(indices)) await call('PUT', `/${name}`, JSON.stringify(definition))

  const control = controlIndexOf(prefix)
  const generationBody = (name: string, ofPartitions: number, ids: ReadonlyMap<string, string>) =>
    JSON.stringify({
      kind: 'generation',
      body: {
        generation: name,
        topic: 'commission.events',
        cluster_id: 'test',
        partitions: ofPartitions,
        rules_version: options.rules ?? 1,
        ...(name === API_KEYS_GENERATION ? {} : layoutFields),
        indices: Object.fromEntries(ids),
      },
    })
  const putPosition = (name: string, partition: number, position: number, time: number, serveFrom = 0) =>
    put(
      control,
      positionId(name, partition),
      JSON.stringify({ kind: 'position', body: { position, last: null, at: 0, time, serve_from: serveFrom } }),
    )

  const makeLive = async () => {
    put(control, LIVE_ID, JSON.stringify({ kind: 'live', body: { generation } }))
    await flush()
  }
  /** Records the ids of the indices, like a projector. Call it again after a test has created an index again. */
  const recordIndices = async () => {
    const ids = indexIdsIn(JSON.parse(await call('GET', `/${prefix}-*/_settings?filter_path=${INDEX_ID_FILTER}`)))
    put(control, generationId(generation), generationBody(generation, partitions, ids))
    if (first) put(control, generationId(API_KEYS_GENERATION), generationBody(API_KEYS_GENERATION, 1, ids))
    await flush()
  }
  await recordIndices()
  for (let partition = 0; partition < partitions; partition++) putPosition(generation, partition, 0, 1_700_000_000_000)
  if (first) {
    putPosition(API_KEYS_GENERATION, 0, 0, 1_700_000_000_000)
    await makeLive()
  }
  await flush()

  return {
    url,
    prefix,
    generation,
    call,
    recordIndices,
    put,
    putIn,
    flush,

    /** Moves the published position of an organization's partition. */
    publish: async (org: string, position: number, time = 1_700_000_000_000 + position) => {
      putPosition(generation, partitionOf(org, partitions), position, time)
      await flush()
    },

    putPosition,
    makeLive,

    /**
     * Writes the documents whose shard is available, without a refresh, which a missing shard would block. Returns how
     * many payouts were written.
     */
    writable: async (): Promise<number> => {
      const answer = await call('POST', '/_bulk?timeout=100ms', lines.splice(0).join(''), 'application/x-ndjson')
      written.clear()
      const { items } = JSON.parse(answer) as { items: { index: { status: number; _index: string } }[] }
      return items.filter(({ index }) => index.status < 300 && index._index.endsWith('-payouts')).length
    },

    /** Returns an organization alone in its partition: tests must not move each other's position. */
    newOrg: (): string => {
      for (let n = 0; ; n++) {
        const org = `org_${n}`
        const partition = partitionOf(org, partitions)
        if (taken.has(partition)) continue
        if (taken.size === partitions - 1) throw new Error('more organizations than partitions')
        taken.add(partition)
        return org
      }
    },

    /** Creates an API key. Returns the text that a client sends. */
    key: async (org: string, more: KeyOptions = {}): Promise<string> => {
      const text = putKey(org, more)
      await flush()
      return text
    },
    /** The same, written with the next flush. */
    putKey,

    /** Puts the versions of a rep, each with its offset. The last one is current. */
    rep: (org: string, id: string, versions: readonly { seq: number; name: string; status?: string }[]) => {
      const bodies = versions.map(({ name, status }) =>
        JSON.stringify({ id, name, email: null, status: status ?? 'active', started_on: null, departed_on: null }),
      )
      putVersions(
        'reps',
        org,
        id,
        versions.map(({ seq }) => seq),
        bodies,
      )
    },

    period: (org: string, id: string, versions: readonly { seq: number; name: string }[]) => {
      const bodies = versions.map(({ name }) =>
        JSON.stringify({
          id,
          kind: 'month',
          name,
          timezone: 'Europe/Berlin',
          starts_at: '2026-01-01T00:00:00+01:00',
          ends_at: '2026-02-01T00:00:00+01:00',
        }),
      )
      putVersions(
        'periods',
        org,
        id,
        versions.map(({ seq }) => seq),
        bodies,
      )
    },

    payout: (org: string, seq: number, payout: Payout, replaced?: Replaced) => {
      const { body, statement } = payoutBodies(payout)
      const fields = {
        org_id: org,
        seq,
        until_seq: replaced?.until ?? UNTIL_FOREVER,
        superseded_by_id: replaced?.by ?? null,
        at: timeOfFirst + seq,
        rep_id: payout.rep ?? 'rep_1',
        period_id: payout.period ?? 'period_1',
        amount: payout.amount ?? '0',
        currency: payout.currency ?? 'EUR',
        hash: sha256(body + statement),
      }
      putIn('payouts', recordId(org, payout.id), fields, body)
      putIn('statements', recordId(org, payout.id), { org_id: org, seq }, statement)
    },

    payroll: (org: string, seq: number, id: string, amount: string, reverses: string | null = null) => {
      const body = JSON.stringify({
        id,
        rep_id: 'rep_1',
        period_id: 'period_1',
        payout_id: null,
        reverses_id: reverses,
        amount,
        currency: 'EUR',
        destination: { type: 'other', label: '' },
        recorded_at: '2026-02-01T08:30:00Z',
      })
      const fields = {
        org_id: org,
        seq,
        at: timeOfFirst + seq,
        rep_id: 'rep_1',
        period_id: 'period_1',
        reverses_id: reverses,
        amount,
        currency: 'EUR',
        hash: sha256(body),
      }
      putIn('payroll_files', recordId(org, id), fields, body)
    },

    remove: () => call('DELETE', `/${Object.keys(indices).join()}?ignore_unavailable=true`),
  }

  function putKey(org: string, more: KeyOptions = {}): string {
    const text = more.text ?? `ck_${randomBytes(24).toString('hex')}`
    const fields = {
      key_id: `key_${sha256(text).slice(0, 12)}`,
      org_id: org,
      permissions: more.permissions ?? ['read'],
      revoked: more.revoked ?? false,
    }
    put(apiKeysIndexOf(prefix), sha256(text), documentText(fields, '{"created_seq":0}'))
    return text
  }

  function putVersions(
    kind: 'reps' | 'periods',
    org: string,
    id: string,
    seqs: readonly number[],
    bodies: readonly string[],
  ) {
    const first = seqs[0] ?? 0
    for (const [place, body] of bodies.entries()) {
      const seq = seqs[place] ?? 0
      const fields = {
        org_id: org,
        first_seq: first,
        seq,
        ordinal: place + 1,
        until_seq: seqs[place + 1] ?? UNTIL_FOREVER,
        at: timeOfFirst + seq,
        hash: sha256(body),
      }
      putIn(kind, versionId(org, id, seq), fields, body)
    }
    const head = { versions: seqs.map((seq, place) => ({ seq, hash: sha256(bodies[place] ?? '') })) }
    putIn(kind, recordId(org, id), { org_id: org }, JSON.stringify(head))
  }
}
