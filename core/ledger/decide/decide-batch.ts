/**
 * Decides a batch: the one way from records to documents. The flow, the forecasts, the check of rules, the golden log
 * and the tests all call it, so that none of them decides otherwise.
 *
 *   `Queue`: batches of a good size → `assess` each record alone → `load` the documents that the rules may read →
 *   `project`: the rules decide, in order
 *
 * In: a batch, and the cache. Out: the documents to write, the outcomes, and the rest of the batch for later: the part
 * that the followed generation has not decided, and the part not loaded.
 * Promises: each decision sees all earlier ones. For this, the caller decides one batch after the other, and adds its
 * documents to the cache before the next. Documents that are not cached are read from the primaries of their shards. If
 * one answer cannot hold them, only the first events are loaded and decided.
 * Can go wrong: Elasticsearch is unavailable (retries); an index is gone (stops); `follow` fails.
 */
import type { ParkCode } from '../../../schemas/errors.ts'
import { type Batch, bytesOf, type RawRecord } from '../event/decode.ts'
import type { PartitionSource, ValidEvent } from '../event/validate.ts'
import { BATCH_BYTES, BATCH_RECORDS, DOCUMENTS_ASKED } from '../limits.ts'
import type { AnyRules } from '../rules/rules.ts'
import { type AnyNewDocument, type DocumentKey, type DocumentRef, type Reads, State } from '../rules/state.ts'
import { Cache } from './cache.ts'
import {
  type Assessed,
  type AssessSteps,
  assessOrSkip,
  type DecidedDocument,
  type ProjectedBatch,
  project,
  type Skipped,
  serialize,
} from './project.ts'

/** The code of each record that the followed generation parked, by offset. */
export type ParkedThere = ReadonlyMap<number, ParkCode>

/** `decidableTo` is the first offset that may not be decided yet. */
export type Followed = { readonly decidableTo: number; readonly parked: ParkedThere }

/** Where the records of a batch are, and by which rules they are decided. */
export type DecisionSteps = AssessSteps & {
  readonly source: PartitionSource & { readonly topic: string }
  /** For a generation that follows another: waits until the other has decided, and returns what it parked. */
  readonly follow?: ((batch: Batch) => Promise<Followed>) | undefined
}

/** A batch, or the part of one, that is decided. */
export type BatchOutcome = Omit<ProjectedBatch, 'changes'> & {
  readonly batch: Batch
  /** Undecided parts of the given batch, in the order of putting back: the last part first. */
  readonly rest: readonly Batch[]
  readonly documents: readonly DecidedDocument[]
  /** Each decided record, as `assess` saw it without the records before. */
  readonly assessed: readonly (Assessed | Skipped)[]
  /** How many events were loaded. */
  readonly loaded: number
  /** The documents that the rules could read, as they are after the last decision. */
  readonly state: State
}

export const decideBatch = async (
  given: Batch,
  steps: DecisionSteps,
  cache: Cache,
  read: ReadDocuments,
): Promise<BatchOutcome> => {
  const followed = await steps.follow?.(given)
  const [taken, notFollowed] = splitAtOffset(given, followed?.decidableTo ?? given.end)
  const assessed = taken.records.map(record => parkAsFollowed(assessOrSkip(record, steps), followed?.parked))
  const events = eventsOf(assessed)
  const { state, count: loaded } = await load(events, cache, read)
  // `events[loaded]` is the first event that was not loaded. Undefined: all were, and the whole batch is decided.
  const [batch, notLoaded] = splitAtOffset(taken, events[loaded]?.seq ?? taken.end)
  const decidable = assessed.slice(0, batch.records.length)
  const { changes, ...outcomes } = project(decidable, state, steps.source)
  const documents = changes.map(serialize)
  return { batch, rest: [notFollowed, notLoaded], documents, assessed: decidable, loaded, state, ...outcomes }
}

type Parts = {
  readonly steps: DecisionSteps
  /** Reads the documents that are not in the cache. */
  readonly read: ReadDocuments
  /** Limits throughput: waits after this many events were loaded. */
  readonly pace?: ((events: number) => Promise<void>) | undefined
  /** The offset of the first record to decide. From the first record on, a document that was not decided is absent. */
  readonly from: number
  /** The size of the cache, as a fraction of its full size: 0 to 1. */
  readonly share: number
}

/** `acknowledge` is called when the documents are written: they need not stay in the cache. */
export type DecidedBatch = Omit<BatchOutcome, 'assessed' | 'state'> & { readonly acknowledge: () => void }

/**
 * The ledger of one partition: decides its batches, and keeps the documents that the next decisions need. A decision
 * sees all earlier ones, written or not. A decided document stays in the cache until it is acknowledged as written.
 */
export class PartitionLedger {
  readonly source: DecisionSteps['source']
  readonly #parts: Parts
  readonly #cache: Cache

  constructor(parts: Parts) {
    this.source = parts.steps.source
    this.#parts = parts
    this.#cache = new Cache({ fromFirstRecord: parts.from === 0, share: parts.share })
  }

  /** The caller waits for the last decision before it asks for the next one. */
  async decideNext(given: Batch): Promise<DecidedBatch> {
    const { steps, read, pace } = this.#parts
    // Without what only the decision needed: that would take memory until the documents are written.
    const { assessed: _, state: __, ...decided } = await decideBatch(given, steps, this.#cache, read)
    await pace?.(decided.loaded)
    return { ...decided, acknowledge: this.#cache.addDecided(decided.documents) }
  }
}

/** There is nothing to read for decisions from the first record on: the cache has every document. */
export const readNothing: ReadDocuments = async keys => new Map(keys.map(key => [key, null]))

/** A record as a batch of its own. */
export const batchOfOne = (record: RawRecord): Batch => ({
  from: record.offset,
  end: record.offset + 1,
  records: [record],
})

/** The outcome of the only record of a batch: `applied`, `duplicate` or the code under which it is parked. */
export const outcomeOf = ({ counts, parkedCodes }: Pick<BatchOutcome, 'counts' | 'parkedCodes'>) =>
  parkedCodes[0] ?? (counts.duplicate > 0 ? 'duplicate' : 'applied')

/** Parks a record that the followed generation parked, with the same code, whatever these rules decide. */
export const parkAsFollowed = (assessed: Assessed | Skipped, parked: ParkedThere | undefined): Assessed | Skipped => {
  const code = parked?.get(assessed.record.offset)
  if (code === undefined || 'skipped' in assessed) return assessed
  return { ...assessed, verdict: code, reads: {}, rules: undefined }
}

/** Reads the documents of the first keys, as many as one answer holds, at least one. Null: no such document. */
export type ReadDocuments = (keys: readonly DocumentKey[]) => Promise<Map<DocumentKey, AnyNewDocument | null>>

export type PendingEvent = {
  readonly event: ValidEvent
  readonly reads: Reads
  readonly rules: AnyRules
  readonly seq: number
}

const eventsOf = (assessed: readonly (Assessed | Skipped)[]): PendingEvent[] =>
  assessed.flatMap((item): PendingEvent[] => {
    if (item.rules === undefined) return []
    const { record, verdict, reads, rules } = item
    return [{ event: verdict, reads, rules, seq: record.offset }]
  })

/** `count`: for how many of the events, from the first, the state is complete. At least one, if any were given. */
type Loaded = { readonly state: State; readonly count: number }

/** Returns the complete state of the first events: each document that a rule may read, or null. */
export const load = async (events: readonly PendingEvent[], cache: Cache, read: ReadDocuments): Promise<Loaded> => {
  const state = new State()
  const needs = events.map(({ reads }) => keysOf(Object.values(reads)))
  const first = await fill(state, needs, cache, read)
  const next = events.slice(0, first).map(({ event, reads, rules, seq }) => {
    const { data, hash } = event
    return keysOf(rules.thenReads({ data, reads, hash, seq }, state))
  })
  return { state, count: await fill(state, next, cache, read) }
}

const keysOf = (refs: readonly (DocumentRef | undefined)[]): DocumentKey[] => {
  const keys: DocumentKey[] = []
  for (const ref of refs) if (ref !== undefined) keys.push(ref.key)
  return keys
}

/** Returns for how many of the events, from the first, the state is complete. */
const fill = async (
  state: State,
  needs: readonly DocumentKey[][],
  cache: Cache,
  read: ReadDocuments,
): Promise<number> => {
  const missing = new Set<DocumentKey>()
  for (const key of needs.flat()) {
    if (state.has(key)) continue
    const cached = cache.get(key)
    if (cached === undefined) missing.add(key)
    else state.set(key, cached)
  }
  let waiting = [...missing]
  while (waiting.length > 0) {
    const asked = waiting.slice(0, DOCUMENTS_ASKED)
    const found = await read(asked)
    for (const [key, draft] of found) {
      state.set(key, draft)
      if (draft !== null) cache.keep(key, draft)
    }
    waiting = waiting.slice(found.size)
    // One answer did not hold all documents, so they are many. Decide the complete events first.
    const complete = found.size < asked.length ? completeOf(state, needs) : 0
    if (complete > 0) return complete
  }
  return needs.length
}

const completeOf = (state: State, needs: readonly DocumentKey[][]): number => {
  const first = needs.findIndex(keys => keys.some(key => !state.has(key)))
  return first === -1 ? needs.length : first
}

/**
 * The records of one partition that were read and are not yet decided, in order. In: batches as they were read. Out:
 * batches to decide: small ones combined, large ones split by BATCH_RECORDS and BATCH_BYTES. A record larger than
 * BATCH_BYTES comes alone.
 */
export class Queue {
  #batches: Batch[] = []

  get isEmpty(): boolean {
    return this.#batches.length === 0
  }

  add(batch: Batch): void {
    this.#batches.push(batch)
  }

  /** Puts back the unused rest of the last batch. It must start where the used part ends. */
  putBack(batch: Batch): void {
    if (batch.end > batch.from) this.#batches.unshift(batch)
  }

  clear(): void {
    this.#batches = []
  }

  next(): Batch | undefined {
    const first = this.#batches.shift()
    if (first === undefined) return undefined
    const records: RawRecord[] = []
    let bytes = 0
    let end = first.from
    for (let batch: Batch | undefined = first; batch; batch = this.#batches.shift()) {
      for (const record of batch.records) {
        const length = bytesOf(record)
        if (records.length > 0 && (records.length === BATCH_RECORDS || bytes + length > BATCH_BYTES)) {
          const [, rest] = splitAtOffset(batch, record.offset)
          this.putBack(rest)
          return { from: first.from, end: rest.from, records }
        }
        records.push(record)
        bytes += length
      }
      end = batch.end
    }
    return { from: first.from, end, records }
  }
}

/** Splits a batch at an offset, which goes to the second part. */
export const splitAtOffset = ({ from, end, records }: Batch, offset: number): [Batch, Batch] => [
  { from, end: offset, records: records.filter(record => record.offset < offset) },
  { from: offset, end, records: records.filter(record => record.offset >= offset) },
]

/** Estimated bytes of records in memory. */
export const bytesOfAll = (records: readonly RawRecord[]): number => {
  let bytes = 0
  for (const record of records) bytes += bytesOf(record)
  return bytes
}
