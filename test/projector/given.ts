/** The rules and the load stage over versioned documents in memory: given events, expected outcomes. */
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { Cache } from '../../core/ledger/decide/cache.ts'
import { decideBatch, type ReadDocuments } from '../../core/ledger/decide/decide-batch.ts'
import type { ProjectedBatch } from '../../core/ledger/decide/project.ts'
import { decode, type RawRecord } from '../../core/ledger/event/decode.ts'
import { textOf } from '../../core/ledger/event/json-text.ts'
import type { PartitionSource } from '../../core/ledger/event/validate.ts'
import { builtInRules } from '../../core/ledger/rules/rules.ts'
import type { AnyNewDocument, DocumentChange, DocumentKey } from '../../core/ledger/rules/state.ts'
import { type Event, eventRecord } from './records.ts'

type Stored = { readonly version: number; readonly draft: AnyNewDocument }

/** Documents versioned as in Elasticsearch: a lower version changes nothing, the same one must be equal. */
export class Documents {
  readonly #stored = new Map<DocumentKey, Stored>()

  write(changes: readonly DocumentChange[]): void {
    for (const { key, version, draft } of changes) {
      const stored = this.#stored.get(key)
      if (stored === undefined || stored.version < version) this.#stored.set(key, { version, draft: copy(draft) })
      else if (stored.version === version && !isDeepStrictEqual(stored.draft, copy(draft))) {
        expect(draft, `${key} at version ${version} has other content`).toEqual(stored.draft)
      }
    }
  }

  put(key: DocumentKey, version: number, draft: AnyNewDocument): void {
    this.#stored.set(key, { version, draft: copy(draft) })
  }

  readonly read: ReadDocuments = async keys =>
    new Map(
      keys.map(key => {
        const stored = this.#stored.get(key)
        return [key, stored === undefined ? null : copy(stored.draft)]
      }),
    )

  get(key: DocumentKey): AnyNewDocument | undefined {
    return this.#stored.get(key)?.draft
  }

  /** All documents, in an order that does not depend on the time of their writes. */
  all(): [DocumentKey, Stored][] {
    return [...this.#stored].sort(([a], [b]) => (a < b ? -1 : 1))
  }

  copy(): Documents {
    const documents = new Documents()
    for (const [key, { version, draft }] of this.#stored) documents.put(key, version, draft)
    return documents
  }
}

/** A copy through JSON, as in the store: later changes of the original do not reach it. */
const copy = (draft: AnyNewDocument): AnyNewDocument =>
  JSON.parse(JSON.stringify({ ...draft, body: JSON.parse(textOf(draft.body)) })) as AnyNewDocument

export const TOPIC = 'commission.events'

type StreamSource = Pick<PartitionSource, 'stream' | 'firstKeyRulesUntil'>

/** Projects one batch like the flow, up to the write. */
export const projectBatch = async (
  records: readonly RawRecord[],
  cache: Cache,
  read: ReadDocuments,
  source: StreamSource = { stream: 'events' },
): Promise<ProjectedBatch & { readonly acknowledged: () => void }> => {
  const batch = { from: records[0]?.offset ?? 0, end: (records.at(-1)?.offset ?? -1) + 1, records }
  const steps = {
    source: { ...source, topic: TOPIC, partition: 0, partitions: 1 },
    decode,
    rules: builtInRules,
  }
  const decided = await decideBatch(batch, steps, cache, read)
  if (decided.batch.end < batch.end) throw new Error('these documents are too large to be loaded together')
  const { documents, counts, parkedCodes } = decided
  const changes = documents.map(({ line: _, ...change }) => change)
  return { changes, counts, parkedCodes, acknowledged: cache.addDecided(documents) }
}

export type Decided = { readonly outcome: string; readonly changes: readonly DocumentChange[] }

/** Projects one record after the other, with a write after each. Returns the decision for each record. */
export const decideOneByOne = async (
  records: readonly RawRecord[],
  documents: Documents,
  source: StreamSource = { stream: 'events' },
): Promise<Decided[]> => {
  const cache = new Cache({ fromFirstRecord: false })
  const decided: Decided[] = []
  for (const record of records) {
    const { changes, counts, parkedCodes, acknowledged } = await projectBatch([record], cache, documents.read, source)
    documents.write(changes)
    acknowledged()
    const outcome = parkedCodes[0] ?? (counts.applied === 1 ? 'applied' : 'duplicate')
    decided.push({ outcome, changes: changes.map(change => ({ ...change, draft: copy(change.draft) })) })
  }
  return decided
}

export type Given = { readonly documents: Documents; readonly from: number } & Partial<StreamSource>

/**
 * Projects a story of events with their expected outcomes, and returns the final documents. Then checks that one batch
 * of all events, and a redelivery from every offset over the final documents, have the same result.
 */
export const tell = (...story: readonly [Event, outcome: string][]): Promise<Documents> =>
  tellAfter({ documents: new Documents(), from: 0 }, ...story)

export const tellAfter = async (
  { documents: given, from, stream = 'events', ...rules }: Given,
  ...story: readonly [Event, outcome: string][]
): Promise<Documents> => {
  const records = story.map(([event], at) => eventRecord(event, from + at, 1_000 + at))
  const source: StreamSource = { stream, ...rules }
  const documents = given.copy()
  const decided = await decideOneByOne(records, documents, source)
  expect(story.map(([{ type }], at) => `${type}: ${decided[at]?.outcome}`)).toEqual(
    story.map(([{ type }, outcome]) => `${type}: ${outcome}`),
  )

  const together = given.copy()
  together.write((await projectBatch(records, new Cache({ fromFirstRecord: false }), together.read, source)).changes)
  expect(together.all(), 'one batch with all events writes the same documents').toEqual(documents.all())

  for (let start = 0; start < records.length; start++) {
    const again = documents.copy()
    const redelivered = await decideOneByOne(records.slice(start), again, source)
    expect(redelivered, `a redelivery from event ${start} decides the same`).toEqual(decided.slice(start))
    expect(again.all(), `a redelivery from event ${start} changes nothing`).toEqual(documents.all())
  }
  return documents
}
