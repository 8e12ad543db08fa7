/** Elasticsearch responses as bytes, for tests that need no server. */
import type { DocumentName } from '../../core/store/read/slice-documents.ts'
import { documentText } from '../support/bodies.ts'

export type Stored = { readonly id: string; readonly text: string; readonly place?: number }

const head = (more: object = {}) => ({
  took: 1,
  timed_out: false,
  _shards: { total: 1, successful: 1, skipped: 0, failed: 0 },
  ...more,
})

export const searchAnswer = (index: string, found: readonly Stored[], more?: object): Buffer => {
  const hits = found.map(
    ({ id, text, place }) =>
      `{"_index":"${index}","_id":"${id}","_score":null,"_source":${text},"sort":[${place ?? 0}]}`,
  )
  return Buffer.from(`${JSON.stringify(head(more)).slice(0, -1)},"hits":{"max_score":null,"hits":[${hits.join()}]}}`)
}

/**
 * @param stored the text of each document by id; a document without a text is missing in the response
 * @param isDropped whether an index does not exist: its documents are errors in the response
 */
export const multiGetAnswer = (
  names: readonly DocumentName[],
  stored: Readonly<Record<string, string>>,
  isDropped: (index: string) => boolean = () => false,
): Buffer => {
  const docs = names.map(({ _index: index, _id: id }) => {
    const name = `"_index":"${index}","_id":"${id}"`
    if (isDropped(index)) return `{${name},"error":{"type":"index_not_found_exception","index":"${index}"}}`
    const text = stored[id]
    if (text === undefined) return `{${name},"found":false}`
    return `{${name},"_version":7,"_seq_no":3,"_primary_term":1,"found":true,"_source":${text}}`
  })
  return Buffer.from(`{"docs":[${docs.join()}]}`)
}

export const liveText = (generation: string): string => JSON.stringify({ kind: 'live', body: { generation } })
export const generationText = (generation: string, partitions = 1, more: object = {}): string =>
  JSON.stringify({
    kind: 'generation',
    body: { generation, topic: 'commission.events', cluster_id: 'c', partitions, rules_version: 1, ...more },
  })
export const positionText = (position: number, time: number, serveFrom = 0): string =>
  JSON.stringify({ kind: 'position', body: { position, last: null, at: 0, time, serve_from: serveFrom } })

export const recordText = (seq: number, body: object | string, more: object = {}): string =>
  documentText({ org_id: 'org_a', seq, ...more, hash: 'h' }, typeof body === 'string' ? body : JSON.stringify(body))

/** Builds the response to a search for the last offset of each organization. */
export const lastOffsetsAnswer = (last: Iterable<readonly [org: string, offset: number]>): Buffer => {
  const buckets = [...last].map(([key, value]) => ({ key, last: { value } }))
  return Buffer.from(
    JSON.stringify({
      timed_out: false,
      _shards: { total: 1, successful: 1, failed: 0 },
      hits: { hits: [] },
      aggregations: { organizations: { buckets } },
    }),
  )
}
