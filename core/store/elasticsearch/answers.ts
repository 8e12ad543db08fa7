/** The bodies of answers of Elasticsearch, as far as they are read: of successful ones, and the reason of an error. */

/** The version of a document, for a write that is conditional on it. */
export type DocumentVersion = { readonly _seq_no: number; readonly _primary_term: number }

/** `GET /…/_doc/…`. With status 404, `found` is false if the index exists; without it the index is missing. */
export type DocumentAnswer<Document> = DocumentVersion & { readonly found: boolean; readonly _source: Document }

/** The shards that took part in an answer. Absent if Elasticsearch did not understand the request. */
export type Coverage = {
  readonly _shards?: { readonly total?: number; readonly successful?: number; readonly failed?: number }
  readonly timed_out?: boolean
}

/** `POST /…/_search`. */
export type SearchAnswer<Hit> = Coverage & { readonly hits: { readonly hits: readonly Hit[] } }
/** With `track_total_hits`. */
export type Total = { readonly hits: { readonly total: { readonly value: number } } }
/** With one aggregation of the type `terms`. */
export type TermsAnswer<Name extends string, Key> = Coverage & {
  readonly aggregations: Readonly<
    Record<Name, { readonly buckets: readonly { readonly key: Key; readonly doc_count: number }[] }>
  >
}

/** An item of `POST /_bulk`. Each part is checked before it is used. */
export type BulkItem = {
  readonly index?: {
    readonly _index?: unknown
    readonly _id?: unknown
    readonly status?: unknown
    readonly result?: unknown
    /** Only if the request asks for them. */
    readonly executed_pipelines?: unknown
  }
}

/** A reason can quote values: only forms that quote none may be read. */
export const reasonOf = (answer: unknown): string => {
  const { reason } = ((answer as { error?: unknown } | undefined)?.error ?? {}) as { reason?: unknown }
  return String(reason)
}
