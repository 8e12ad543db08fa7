/**
 * Types of the rules: the event that they receive, the state that they read, and the decision that they return.
 *
 * The state for decisions: documents by `kind` (of their index) and id, after the events before.
 *
 * A document from Elasticsearch may already contain the effect of later offsets: after a redelivery, or from a late
 * write of another owner of the partition. Rules therefore read it through the functions here, as of an offset.
 */

import type { ParkCode } from '../../../schemas/errors.ts'
import type {
  ApiKeyDocument,
  ApiKeyHeadDocument,
  ChainBody,
  ChainDocument,
  HeadBody,
  HeadDocument,
  ParkedDocument,
  PayoutDocument,
  PayrollDocument,
  StatementDocument,
  VersionDocument,
} from '../../../schemas/stored/documents.ts'
import type { IndexKind } from '../../../schemas/stored/layout.ts'

/** A document before it is written: `body_bytes` is counted then. */
export type NewDocument<Document> = Document extends unknown ? Omit<Document, 'body_bytes'> : never
export type AnyNewDocument = NewDocument<AnyDocument>
export type AnyDocument =
  | VersionDocument
  | HeadDocument
  | PayoutDocument
  | StatementDocument
  | PayrollDocument
  | ChainDocument
  | ParkedDocument
  | ApiKeyDocument
  | ApiKeyHeadDocument

export type DocumentKey = `${IndexKind}/${string}`
/**
 * Refers to a document. The references of an event are made once and passed on. Each reference is looked up some five
 * times, and a lookup by a new string takes several times as long.
 */
export type DocumentRef = { readonly kind: IndexKind; readonly id: string; readonly key: DocumentKey }
export const refOf = (kind: IndexKind, id: string): DocumentRef => ({ kind, id, key: `${kind}/${id}` })

/** The whole document after a decision. `version` is the offset of the decided event. */
export type DocumentChange = DocumentRef & { readonly version: number; readonly draft: AnyNewDocument }
export const documentChangeOf = (
  { kind, id, key }: DocumentRef,
  version: number,
  draft: AnyNewDocument,
): DocumentChange => ({
  key,
  kind,
  id,
  version,
  draft,
})

/** The loaded documents. A getter returns null if the document does not exist, and throws if it was not loaded. */
export class State {
  readonly #documents = new Map<DocumentKey, AnyNewDocument | null>()

  set(key: DocumentKey, draft: AnyNewDocument | null): void {
    this.#documents.set(key, draft)
  }

  has(key: DocumentKey): boolean {
    return this.#documents.has(key)
  }

  apply(changes: readonly DocumentChange[]): void {
    for (const { key, draft } of changes) this.#documents.set(key, draft)
  }

  head(ref: DocumentRef): NewDocument<HeadDocument> | null {
    return this.#get(ref)
  }
  version(ref: DocumentRef): NewDocument<VersionDocument> | null {
    return this.#get(ref)
  }
  payout(ref: DocumentRef): NewDocument<PayoutDocument> | null {
    return this.#get(ref)
  }
  payroll(ref: DocumentRef): NewDocument<PayrollDocument> | null {
    return this.#get(ref)
  }
  chain(ref: DocumentRef): NewDocument<ChainDocument> | null {
    return this.#get(ref)
  }
  apiKeyHead(ref: DocumentRef): NewDocument<ApiKeyHeadDocument> | null {
    return this.#get(ref)
  }
  /** The key by the hash of its text. */
  apiKeyByHash(ref: DocumentRef): NewDocument<ApiKeyDocument> | null {
    return this.#get(ref)
  }

  /** A reference names a document of its getter: the rules make both. */
  #get<Draft extends AnyNewDocument>({ key }: DocumentRef): Draft | null {
    const draft = this.#documents.get(key)
    if (draft === undefined) throw new Error('a rule asked for a document that was not loaded')
    return draft as Draft | null
  }
}

/** The versions recorded before offset `seq`. */
export const versionsBefore = (head: NewDocument<HeadDocument> | null, seq: number): HeadBody['versions'] =>
  before(head?.body.versions ?? [], seq)

export const chainBefore = (chain: NewDocument<ChainDocument> | null, seq: number): ChainBody => ({
  payouts: before(chain?.body.payouts ?? [], seq),
  payroll: before(chain?.body.payroll ?? [], seq),
})

/** Whether a rep or period was recorded before offset `seq`. */
export const isKnown = (state: State, head: DocumentRef, seq: number): boolean =>
  versionsBefore(state.head(head), seq).length > 0

/** The record, if it was made before offset `seq`. */
export const recordBefore = <Record extends { seq: number }>(record: Record | null, seq: number): Record | null =>
  record !== null && record.seq < seq ? record : null

const before = <Item extends { seq: number }>(items: Item[], seq: number): Item[] => {
  const last = items.at(-1)
  return last === undefined || last.seq < seq ? items : items.filter(item => item.seq < seq)
}

export type Decision =
  | { readonly outcome: 'applied'; readonly changes: readonly DocumentChange[] }
  | { readonly outcome: 'duplicate' }
  | { readonly outcome: 'parked'; readonly code: ParkCode }

export const parked = (code: ParkCode): Decision => ({ outcome: 'parked', code })
export const duplicate: Decision = { outcome: 'duplicate' }

/** References to the documents that the data of an event names, by role. A decision may read these documents. */
export type Reads = Readonly<Record<string, DocumentRef | undefined>>

/** An event with its offset in the log (`seq`). Events before it may be undecided yet. */
export type EventToLoad<Data, Needed = Reads> = {
  readonly data: Data
  readonly reads: Needed
  readonly hash: string
  readonly seq: number
}

/** An event to decide. `at`: the time of its record, in milliseconds. It never decides anything. */
export type SequencedEvent<Data, Needed = Reads> = EventToLoad<Data, Needed> & { readonly at: number }

/**
 * The rules of one event type. All three functions are pure.
 * - `reads`: the documents that the event names
 * - `thenReads`: further documents, which are known only after the first ones are loaded
 * - `decide`: the effect of the event, given the records before it
 */
export type Rules<Data, Needed = Reads> = {
  readonly reads: (data: Data) => Needed
  readonly thenReads: (event: EventToLoad<Data, Needed>, state: State) => readonly DocumentRef[]
  readonly decide: (event: SequencedEvent<Data, Needed>, state: State) => Decision
}
