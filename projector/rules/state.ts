/**
 * The state that decisions are made on: documents by `place` (which index) and id, as they are after the events before.
 *
 * A document read back from Elasticsearch may already show the effect of later offsets (a redelivery, an owner that was
 * late). The rules therefore never use one as it is: the functions here show it as of an offset.
 */
import type {
  ApiKeyDocument,
  ApiKeyHeadDocument,
  ChainBody,
  ChainDocument,
  HeadBody,
  HeadDocument,
  Kind,
  ParkedDocument,
  PayoutDocument,
  PayrollDocument,
  StatementDocument,
  VersionDocument,
} from '../../schemas/stored/documents.ts'

/** Where a document lies: an index of the generation, or the one of API keys. */
export type IndexKind = Kind | 'api-keys'

/** A document before it is written: its length is counted only then. */
export type NewDocument<Document> = Document extends unknown ? Omit<Document, 'body_bytes'> : never
export type AnyNewDocument = NewDocument<
  | VersionDocument
  | HeadDocument
  | PayoutDocument
  | StatementDocument
  | PayrollDocument
  | ChainDocument
  | ParkedDocument
  | ApiKeyDocument
  | ApiKeyHeadDocument
>

export type Key = `${IndexKind}/${string}`
/**
 * What a document is called. An event's names are made once and handed on: to look one up by a string made anew costs
 * several times as much, and each is looked up some five times.
 */
export type DocumentRef = { readonly place: IndexKind; readonly id: string; readonly key: Key }
export const refOf = (place: IndexKind, id: string): DocumentRef => ({ place, id, key: `${place}/${id}` })

/** A document as a decision leaves it, whole. `version` is the offset of the event that was decided. */
export type Change = DocumentRef & { readonly version: number; readonly draft: AnyNewDocument }
export const changeOf = ({ place, id, key }: DocumentRef, version: number, draft: AnyNewDocument): Change => ({
  key,
  place,
  id,
  version,
  draft,
})

/**
 * What was asked for: the draft, or null where there is no such document. Asking for what was not loaded is a defect.
 */
export class State {
  readonly #documents = new Map<Key, AnyNewDocument | null>()

  set(key: Key, draft: AnyNewDocument | null): void {
    this.#documents.set(key, draft)
  }

  has(key: Key): boolean {
    return this.#documents.has(key)
  }

  apply(changes: readonly Change[]): void {
    for (const { key, draft } of changes) this.#documents.set(key, draft)
  }

  entries(): IterableIterator<[Key, AnyNewDocument | null]> {
    return this.#documents.entries()
  }

  head(name: DocumentRef): NewDocument<HeadDocument> | null {
    return this.#get(name) as NewDocument<HeadDocument> | null
  }
  version(name: DocumentRef): NewDocument<VersionDocument> | null {
    return this.#get(name) as NewDocument<VersionDocument> | null
  }
  payout(name: DocumentRef): NewDocument<PayoutDocument> | null {
    return this.#get(name) as NewDocument<PayoutDocument> | null
  }
  payroll(name: DocumentRef): NewDocument<PayrollDocument> | null {
    return this.#get(name) as NewDocument<PayrollDocument> | null
  }
  chain(name: DocumentRef): NewDocument<ChainDocument> | null {
    return this.#get(name) as NewDocument<ChainDocument> | null
  }
  apiKey(name: DocumentRef): NewDocument<ApiKeyHeadDocument> | null {
    return this.#get(name) as NewDocument<ApiKeyHeadDocument> | null
  }
  apiKeySecret(name: DocumentRef): NewDocument<ApiKeyDocument> | null {
    return this.#get(name) as NewDocument<ApiKeyDocument> | null
  }

  #get({ key }: DocumentRef): AnyNewDocument | null {
    const draft = this.#documents.get(key)
    if (draft === undefined) throw new Error('a rule asked for a document that was not loaded')
    return draft
  }
}

/** The versions there were before an offset. */
export const versionsBefore = (head: NewDocument<HeadDocument> | null, seq: number): HeadBody['versions'] =>
  before(head?.body.versions ?? [], seq)

/** The chain as it was before an offset. */
export const chainBefore = (chain: NewDocument<ChainDocument> | null, seq: number): ChainBody => ({
  payouts: before(chain?.body.payouts ?? [], seq),
  payroll: before(chain?.body.payroll ?? [], seq),
})

/** The record, if it was made before an offset. */
export const recordBefore = <Record extends { seq: number }>(record: Record | null, seq: number): Record | null =>
  record !== null && record.seq < seq ? record : null

const before = <Item extends { seq: number }>(items: Item[], seq: number): Item[] => {
  const last = items.at(-1)
  return last === undefined || last.seq < seq ? items : items.filter(item => item.seq < seq)
}
