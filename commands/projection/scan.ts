/** Goes through all documents of an index, of one organization (of none, where that is empty) or of all, however many there are, as they are at one moment. */
import type { Elasticsearch } from '../../projector/elasticsearch.ts'
import { CommandError } from '../failures.ts'
import { SCAN_DOCUMENTS } from '../limits.ts'
import type { Document } from './as-of.ts'

const KEEP_ALIVE = '2m'

type Hit = { readonly _id: string; readonly _source: Document['source']; readonly sort: readonly unknown[] }
type Page = {
  readonly pit_id: string
  readonly timed_out: boolean
  readonly _shards: { readonly failed: number }
  readonly hits: { readonly hits: readonly Hit[] }
}

/** @throws CommandError where a part of the index does not answer: what is missing must not pass for what is not there */
export async function* scan(
  index: string,
  org: string | undefined,
  send: Elasticsearch['send'],
): AsyncGenerator<Document> {
  // What lists do not search is refreshed by nobody.
  await send({ method: 'POST', path: `/${index}/_refresh` })
  const opened = await send({ method: 'POST', path: `/${index}/_pit`, query: { keep_alive: KEEP_ALIVE } })
  if (opened.status !== 200) throw new CommandError(`${index} cannot be read: ${opened.status}`)
  let pit = (opened.body as { id: string }).id
  try {
    for (let after: readonly unknown[] | undefined; ; ) {
      const { status, body } = await send({
        method: 'POST',
        path: '/_search',
        body: {
          size: SCAN_DOCUMENTS,
          track_total_hits: false,
          pit: { id: pit, keep_alive: KEEP_ALIVE },
          query: queryOf(org),
          sort: [{ _shard_doc: 'asc' }],
          ...(after && { search_after: after }),
        },
      })
      const page = body as Page
      if (status !== 200 || page.timed_out || page._shards.failed > 0) {
        throw new CommandError(`${index} cannot be read whole: ${status}`)
      }
      pit = page.pit_id
      for (const { _id: id, _source: source } of page.hits.hits) yield { id, source }
      after = page.hits.hits.at(-1)?.sort
      if (page.hits.hits.length < SCAN_DOCUMENTS) return
    }
  } finally {
    // Left open it would hold what it saw for minutes. Where that fails, the failure before it is the one to know of.
    await send({ method: 'DELETE', path: '/_pit', body: { id: pit } }).catch(() => undefined)
  }
}

/** What was parked may be of no organization. */
const queryOf = (org: string | undefined): object => {
  if (org === undefined) return { match_all: {} }
  return org === '' ? { bool: { must_not: { exists: { field: 'org_id' } } } } : { term: { org_id: org } }
}
