/**
 * What decisions are made on: documents by place (which index) and id, as they are after the events before.
 *
 * A document read back from Elasticsearch may already show what later offsets did (a redelivery, an owner that was late).
 * The rules therefore never use one as it is: the functions here show it as of an offset.
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
} from '../schemas/documents.ts'

/** Where a document lies: an index of the generation, or the one of API keys. */
export type Place = Kind | 'api-keys'

/** A document before it is written: its length is counted only then. */
export type Draft<Document> = Document extends unknown ? Omit<Document, 'body_bytes'> : never
export type AnyDraft = Draft<
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

export type Key = `${Place}/${string}`
export const keyOf = (place: Place, id: string): Key => `${place}/${id}`

/** A document as a decision leaves it, whole. `version` is the offset of the event that was decided. */
export type Change = {
  readonly key: Key
  readonly place: Place
  readonly id: string
  readonly version: number
  readonly draft: AnyDraft
}
export const changeOf = (place: Place, id: string, version: number, draft: AnyDraft): Change => ({
  key: keyOf(place, id),
  place,
  id,
  version,
  draft,
})

/** What was asked for: the draft, or null where there is no such document. Asking for what was not loaded is a defect. */
export class State {
  readonly #documents = new Map<Key, AnyDraft | null>()

  set(key: Key, draft: AnyDraft | null): void {
    this.#documents.set(key, draft)
  }

  has(key: Key): boolean {
    return this.#documents.has(key)
  }

  apply(changes: readonly Change[]): void {
    for (const { key, draft } of changes) this.#documents.set(key, draft)
  }

  entries(): IterableIterator<[Key, AnyDraft | null]> {
    return this.#documents.entries()
  }

  head(place: 'reps' | 'periods', id: string): Draft<HeadDocument> | null {
    return this.#get(keyOf(place, id)) as Draft<HeadDocument> | null
  }
  version(place: 'reps' | 'periods', id: string): Draft<VersionDocument> | null {
    return this.#get(keyOf(place, id)) as Draft<VersionDocument> | null
  }
  payout(id: string): Draft<PayoutDocument> | null {
    return this.#get(keyOf('payouts', id)) as Draft<PayoutDocument> | null
  }
  payroll(id: string): Draft<PayrollDocument> | null {
    return this.#get(keyOf('payroll_files', id)) as Draft<PayrollDocument> | null
  }
  chain(id: string): Draft<ChainDocument> | null {
    return this.#get(keyOf('chains', id)) as Draft<ChainDocument> | null
  }
  apiKey(id: string): Draft<ApiKeyHeadDocument> | null {
    return this.#get(keyOf('api-keys', id)) as Draft<ApiKeyHeadDocument> | null
  }
  apiKeySecret(sha256: string): Draft<ApiKeyDocument> | null {
    return this.#get(keyOf('api-keys', sha256)) as Draft<ApiKeyDocument> | null
  }

  #get(key: Key): AnyDraft | null {
    const draft = this.#documents.get(key)
    if (draft === undefined) throw new Error('a rule asked for a document that was not loaded')
    return draft
  }
}

/** The versions there were before an offset. */
export const versionsBefore = (head: Draft<HeadDocument> | null, seq: number): HeadBody['versions'] =>
  before(head?.body.versions ?? [], seq)

/** The chain as it was before an offset. */
export const chainBefore = (chain: Draft<ChainDocument> | null, seq: number): ChainBody => ({
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
