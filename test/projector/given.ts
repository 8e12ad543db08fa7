/**
 * Given events, when they are projected, then these outcomes and documents: the rules and their loading over documents
 * kept in memory, with the versions of Elasticsearch.
 */
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { textOf } from '../../projector/event/raw-json.ts'
import type { RawRecord } from '../../projector/event/raw-record.ts'
import { Cache } from '../../projector/flow/cache.ts'
import { load, type PlacedEvent, type ReadDocuments } from '../../projector/flow/load.ts'
import { type Projection, project } from '../../projector/flow/project.ts'
import { render } from '../../projector/flow/serialize.ts'
import type { AnyNewDocument, Change, Key } from '../../projector/rules/state.ts'
import type { Stream } from '../../schemas/events.ts'
import { assess, type Event, eventRecord } from './records.ts'

type Stored = { readonly version: number; readonly draft: AnyNewDocument }

/** Documents as Elasticsearch keeps them: a lower version changes nothing, the same one must be the same document. */
export class Documents {
  readonly #stored = new Map<Key, Stored>()

  write(changes: readonly Change[]): void {
    for (const { key, version, draft } of changes) {
      const stored = this.#stored.get(key)
      if (stored === undefined || stored.version < version) this.#stored.set(key, { version, draft: copy(draft) })
      else if (stored.version === version && !isDeepStrictEqual(stored.draft, copy(draft))) {
        expect(draft, `${key} at version ${version} has other content`).toEqual(stored.draft)
      }
    }
  }

  put(key: Key, version: number, draft: AnyNewDocument): void {
    this.#stored.set(key, { version, draft: copy(draft) })
  }

  readonly read: ReadDocuments = async keys =>
    new Map(
      keys.map(key => {
        const stored = this.#stored.get(key)
        return [key, stored === undefined ? null : copy(stored.draft)]
      }),
    )

  get(key: Key): AnyNewDocument | undefined {
    return this.#stored.get(key)?.draft
  }

  /** Everything, in an order that does not depend on when it was written. */
  all(): [Key, Stored][] {
    return [...this.#stored].sort(([a], [b]) => (a < b ? -1 : 1))
  }

  copy(): Documents {
    const documents = new Documents()
    for (const [key, { version, draft }] of this.#stored) documents.put(key, version, draft)
    return documents
  }
}

/** What went through JSON, as everything stored does: nobody can change it behind the store's back. */
const copy = (draft: AnyNewDocument): AnyNewDocument =>
  JSON.parse(JSON.stringify({ ...draft, body: JSON.parse(textOf(draft.body)) })) as AnyNewDocument

export const TOPIC = 'commission.events'

/** Projects one batch as the flow does, up to the write. */
export const projectBatch = async (
  records: readonly RawRecord[],
  cache: Cache,
  read: ReadDocuments,
  atBefore = 0,
  stream: Stream = 'events',
): Promise<Projection & { readonly acknowledged: () => void }> => {
  const assessed = records.map(record => assess(record, { stream, partition: 0, partitions: 1 }))
  const events = assessed.flatMap(({ record, verdict, names, rules }): PlacedEvent[] =>
    rules === undefined ? [] : [{ event: verdict, names, rules, seq: record.offset, at: record.timestamp }],
  )
  const loaded = await load(events, cache, read)
  if (loaded.events < events.length) throw new Error('these documents are too large to be loaded together')
  const projection = project(assessed, loaded.state, { topic: TOPIC, partition: 0 }, atBefore)
  return { ...projection, acknowledged: cache.decided(projection.changes.map(render)) }
}

export type Decided = { readonly outcome: string; readonly changes: readonly Change[]; readonly at: number }

/** Projects one record after the other, each written before the next: what became of each. */
export const decideOneByOne = async (
  records: readonly RawRecord[],
  documents: Documents,
  stream: Stream = 'events',
  atBefore = 0,
): Promise<Decided[]> => {
  const cache = new Cache(false)
  const decided: Decided[] = []
  for (const record of records) {
    const { changes, counts, parkedCodes, at, acknowledged } = await projectBatch(
      [record],
      cache,
      documents.read,
      decided.at(-1)?.at ?? atBefore,
      stream,
    )
    documents.write(changes)
    acknowledged()
    const outcome = parkedCodes[0] ?? (counts.applied === 1 ? 'applied' : 'duplicate')
    decided.push({ outcome, changes: changes.map(change => ({ ...change, draft: copy(change.draft) })), at })
  }
  return decided
}

export type Given = { readonly documents: Documents; readonly from: number; readonly stream?: Stream }

/**
 * Tells a story, each event with what is expected to become of it, and gives the documents in the end. Whatever it is,
 * the same is asked of one batch with all events, and of a redelivery from every offset over the final documents.
 */
export const tell = (...story: readonly [Event, outcome: string][]): Promise<Documents> =>
  tellAfter({ documents: new Documents(), from: 0 }, ...story)

export const tellAfter = async (
  { documents: given, from, stream = 'events' }: Given,
  ...story: readonly [Event, outcome: string][]
): Promise<Documents> => {
  const records = story.map(([event], at) => eventRecord(event, from + at, 1_000 + at))
  const documents = given.copy()
  const decided = await decideOneByOne(records, documents, stream)
  expect(story.map(([{ type }], at) => `${type}: ${decided[at]?.outcome}`)).toEqual(
    story.map(([{ type }, outcome]) => `${type}: ${outcome}`),
  )

  const together = given.copy()
  together.write((await projectBatch(records, new Cache(false), together.read, 0, stream)).changes)
  expect(together.all(), 'one batch with all events writes the same documents').toEqual(documents.all())

  for (let start = 0; start < records.length; start++) {
    const again = documents.copy()
    const redelivered = await decideOneByOne(records.slice(start), again, stream, decided[start - 1]?.at)
    expect(redelivered, `a redelivery from event ${start} decides the same`).toEqual(decided.slice(start))
    expect(again.all(), `a redelivery from event ${start} changes nothing`).toEqual(documents.all())
  }
  return documents
}
