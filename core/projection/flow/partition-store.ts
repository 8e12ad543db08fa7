/**
 * The store side of one partition (`PartitionStore`), and the way to Elasticsearch that all partitions of a stream
 * share (`StreamStore`).
 *
 * `StreamStore`: small requests of several partitions go together. Bulk requests in flight have a bound, and wait for a
 * refresh that readers wait for.
 *
 * `PartitionStore`. In: decided documents, and the position to publish. Out: documents that decisions read; documents
 * that are written, searchable and visible, once each call resolves.
 * Promises: each request is repeated until it succeeds, for the life of the partition. The last record of a batch is
 * written with its documents, and never an earlier one in the place of a later one. The answer of a read that had to
 * wait counts only if the generation still has its indices and shards after it (`Doubts`). A process that stood still
 * writes only after it has looked whether they are still there, and whether its position is (`Proof`).
 * Can go wrong: as `write`, `refresh` and `published`; an index or a shard is another one (stops).
 *
 * Foreign parts: `readDocuments`, `pack` and `write` are in `core/store/documents/documents.ts`, `createRefresh` in
 * `refresh.ts` there. `createBatcher`, its kinds (`bulks`, `primaryReads`, `replacements`), `retryUntilAborted` and
 * `sendWhole` are in `core/store/elasticsearch/client.ts`, `getFromPrimaries` in `primary-reads.ts` there.
 * `PublishedPosition` and `writtenDocument` are in `core/store/positions/publish.ts`. `readGeneration`,
 * `assertIntactIndices` and `createSameIndices` compare indices and shards with those that were recorded: they are in
 * `core/store/generations/`. `createWeightedSemaphore` and `limitConcurrency` only bound what is under way.
 *
 * Retries: `retryUntilAborted` here repeats reads, the checks after them, refreshes and the requests of `request` as
 * a whole, by `keepTrying` (`core/runtime/keep-trying.ts`). `write` in `core/store/documents/documents.ts` repeats
 * bulk writes, whole or by document. `openPartition` in `core/projection/stream/assign.ts` repeats the conditional
 * write of a position (`replace`), and `publish.ts` merges a conflict of it. Everything below these, `createBatcher`
 * and `send` in `core/store/elasticsearch/client.ts`, tries once.
 */
import type { GenerationLayout, IndexKind } from '../../../schemas/stored/layout.ts'
import type { DecidedDocument, ReadDocuments } from '../../ledger/index.ts'
import type { GenerationBody } from '../../log/index.ts'
import {
  createWeightedSemaphore,
  limitConcurrency,
  pauseBefore,
  type Retrying,
  Unanswered,
} from '../../runtime/index.ts'
import {
  type Ask,
  assertIntactIndices,
  bulks,
  createBatcher,
  createRefresh,
  createSameIndices,
  ELASTICSEARCH_SLOW_MS,
  type Elasticsearch,
  type GetDocuments,
  getFromPrimaries,
  type PublishedPosition,
  type PublishedState,
  pack,
  primaryReads,
  type Refreshing,
  readDocuments,
  readGeneration,
  replacements,
  retryUntilAborted,
  type SameIndices,
  type Send,
  sendWhole,
  write,
  writtenDocument,
} from '../../store/index.ts'
import {
  BULKS_IN_FLIGHT,
  DECIDED_BYTES,
  DOUBTED_READ_MS,
  OVERLAP_MS,
  REFRESH_INTERVAL_MS,
  STOOD_STILL_MS,
} from '../limits.ts'
import type { StreamSide } from './stream-side.ts'

type StoreContext = Retrying & {
  readonly elasticsearch: Elasticsearch
  /** Milliseconds on a monotonic clock. */
  readonly elapsed: () => number
  /** Milliseconds between two refreshes. */
  readonly freshnessMs?: number
}

export class StreamStore {
  readonly context: StoreContext
  readonly refreshing: Refreshing
  readonly doubts: Doubts
  readonly sameIndices: SameIndices
  readonly #stored: Pick<StoredStream, 'identity' | 'prefix'>
  /** Limits the bytes of records that are decided or written, over all partitions. */
  readonly budget = createWeightedSemaphore(DECIDED_BYTES)
  readonly sendRead: Send
  readonly sendWrite: Send
  /** Sends the conditional writes of positions. */
  readonly replace: Send

  constructor(context: StoreContext, stored: Pick<StoredStream, 'identity' | 'prefix'>) {
    const { elasticsearch, health } = context
    const intact = new Proof(context.elapsed)
    const limitBulks = limitConcurrency(BULKS_IN_FLIGHT)
    this.context = context
    this.#stored = stored
    this.refreshing = createRefreshing(context)
    this.doubts = new Doubts(context.elapsed)
    this.sameIndices = createSameIndices(context.elapsed)
    this.replace = createBatcher(replacements, elasticsearch.send)
    this.sendRead = createBatcher(primaryReads, elasticsearch.send)
    const look = (signal?: AbortSignal) =>
      this.assertIntact(asked => sendWhole(elasticsearch.send, asked, signal)).catch((error: unknown) => {
        // Somebody blocks the metadata of an index: nobody may look, and records go on. `watchIndices` tells it.
        if (!(error instanceof Unanswered) || error.status !== 403) throw error
      })
    // A write: joined with others, after the refresh under way, one of BULKS_IN_FLIGHT, the indices are intact, nobody
    // else has published its batches, sent.
    const sendBulk: Send = (request, signal) =>
      limitBulks(async () => {
        // Not before: a request may wait here for long.
        await intact.renew(() => look(signal))
        await request.assertUnpublished?.()
        return health.during('elasticsearch write', () => elasticsearch.send(request, signal), ELASTICSEARCH_SLOW_MS)
      })
    this.sendWrite = createBatcher(bulks, sendBulk, this.refreshing.untilRefreshed)
  }

  /**
   * Shards whose ids were recorded after the start count, too. `adopt` does not excuse an answer from before it.
   * @param read the indices that were read
   */
  async assertIntact(request: Ask, read: readonly string[] = []): Promise<void> {
    const { identity, prefix } = this.#stored
    const steps = { request, prefix, read }
    const now = await readGeneration(identity.generation, steps)
    const shards = now?.shards && { shards: { ...now.shards, ...identity.shards } }
    await assertIntactIndices({ ...identity, ...shards, ...(now?.lost && { lost: now.lost }) }, steps)
  }
}

const createRefreshing = (context: StoreContext): Refreshing => {
  const { elapsed, retryOptions, elasticsearch } = context
  const lifetime = new AbortController().signal
  return createRefresh({
    keepTrying: attempt => retryUntilAborted('refresh', lifetime, context, attempt),
    send: request => elasticsearch.send(request),
    elapsed,
    sleep: milliseconds => retryOptions.sleep(milliseconds, lifetime),
    interval: context.freshnessMs ?? REFRESH_INTERVAL_MS,
  })
}

type Read = { readonly began: number; isUnanswered: boolean }

/**
 * Reads whose answers need a check before a decision rests on them. A shard without a primary answers no read. The
 * shard that comes in its place can be empty (`allocate_empty_primary`): it answers that no document is there.
 * Promises: a read is in doubt once an attempt was not answered, and once it takes DOUBTED_READ_MS, since Elasticsearch
 * holds a request while a shard has no primary. While a read of the stream is in doubt, the check follows each answer
 * before the caller gets it. Other reads cost no request.
 * Can go wrong: as the check; it is repeated while Elasticsearch does not tell the ids of the shards that were read.
 * Nobody reads while the shard has no primary: then only `watchIndices` finds the new one.
 */
class Doubts {
  readonly #elapsed: () => number
  /** The reads under way, and those whose answers are checked now. */
  readonly #reads = new Set<Read>()

  /** @param elapsed milliseconds on a monotonic clock */
  constructor(elapsed: () => number) {
    this.#elapsed = elapsed
  }

  /** @param read calls `doubt` after each attempt that was not answered */
  async resolve<Result>(read: (doubt: () => void) => Promise<Result>, check: () => Promise<unknown>): Promise<Result> {
    const own: Read = { began: this.#elapsed(), isUnanswered: false }
    this.#reads.add(own)
    try {
      const result = await read(() => {
        own.isUnanswered = true
      })
      if (this.#isOneInDoubt()) await check()
      return result
    } finally {
      this.#reads.delete(own)
    }
  }

  #isOneInDoubt(): boolean {
    const before = this.#elapsed() - DOUBTED_READ_MS
    return [...this.#reads].some(({ began, isUnanswered }) => isUnanswered || began <= before)
  }
}

/**
 * Remembers for STOOD_STILL_MS that a check succeeded. Callers during a check share it. A check that took longer than
 * that is made once more, since the process may have stood still during it: not for ever, as Elasticsearch may be slow.
 */
class Proof {
  readonly #elapsed: () => number
  #at: number
  #running: Promise<void> | undefined

  /** @param elapsed milliseconds on a monotonic clock. Its present time is that of the first check */
  constructor(elapsed: () => number) {
    this.#elapsed = elapsed
    this.#at = elapsed()
  }

  async renew(check: () => Promise<unknown>): Promise<void> {
    if (!this.#isOlderThan(this.#at)) return
    this.#running ??= this.#check(check).finally(() => {
      this.#running = undefined
    })
    await this.#running
  }

  async #check(check: () => Promise<unknown>): Promise<void> {
    const began = this.#elapsed()
    await check()
    if (this.#isOlderThan(began)) await check()
    this.#at = this.#elapsed()
  }

  #isOlderThan(time: number): boolean {
    return this.#elapsed() - time >= STOOD_STILL_MS
  }
}

/** All documents of a batch are published, by another owner of the partition. */
class PublishedByAnother extends Error {}

/** Where the documents of a stream are. */
export type StoredStream = {
  readonly identity: GenerationBody
  readonly prefix: string
  readonly layout: GenerationLayout
}

type Parts = StoredStream & {
  readonly partition: number
  readonly published: PublishedPosition
  readonly shared: StreamStore
  readonly stream: Pick<StreamSide, 'onRead' | 'onWritten'>
  readonly signal: AbortSignal
}

export class PartitionStore {
  readonly published: PublishedPosition
  readonly #parts: Parts
  /** That the position was not set back. */
  readonly #notSetBack: Proof

  constructor(parts: Parts) {
    this.published = parts.published
    this.#parts = parts
    this.#notSetBack = new Proof(parts.shared.context.elapsed)
  }

  /** Reads documents from the primaries of their shards, since decisions rest on them. */
  readonly getDocuments: GetDocuments = async <Source>(docs: Parameters<GetDocuments>[0]) => {
    const found = await this.#get<Source>(docs)
    this.#parts.stream.onRead(found.length)
    return found
  }

  get read(): ReadDocuments {
    return readDocuments(this.getDocuments, this.#parts.layout)
  }

  /** Sends a request about the generation, until it is answered. */
  readonly request: Ask = asked => {
    const { shared, signal } = this.#parts
    const { send } = shared.context.elasticsearch
    return retryUntilAborted('publish', signal, shared.context, () => sendWhole(send, asked, signal))
  }

  /**
   * Packs documents during the call, and returns the function that writes them later. It resolves once Elasticsearch
   * has each document at its version or a later one, and retries without end. If it is published meanwhile by another
   * owner, nothing is written: the log may have lost these records, and has others at their offsets now.
   * @param last the last record of their batch, which is written with them
   */
  packBatch(decided: readonly DecidedDocument[], last: PublishedState['last']): () => Promise<void> {
    const { layout, shared, signal, stream } = this.#parts
    const { health, retryOptions } = shared.context
    const stored = pack(decided, layout, last ? writtenDocument(last, this.published, this.#parts) : undefined)
    const first = decided.reduce((lowest, { version }) => Math.min(lowest, version), Number.POSITIVE_INFINITY)
    const batch = { first, last: last?.offset ?? Number.POSITIVE_INFINITY, overlapsSince: undefined }
    return () =>
      health.during('elasticsearch write', report =>
        write(stored, {
          request: request =>
            shared.sendWrite({ ...request, assertUnpublished: () => this.#assertUnpublished(batch) }, signal),
          getDocuments: this.#get,
          pause: attempt => retryOptions.sleep(pauseBefore(attempt, retryOptions), signal),
          count: (outcome, items) => stream.onWritten(outcome, items),
          onRefused: report,
        }).catch((error: unknown) => {
          if (!(error instanceof PublishedByAnother)) throw error
        }),
      )
  }

  /**
   * Makes the written documents of these kinds searchable, if lists search them: not statements, chains and parked
   * records. All partitions share a refresh, and only one that began after this call counts.
   * @param delay in milliseconds since the last refresh
   */
  refresh(kinds: ReadonlySet<IndexKind>, delay: number): Promise<void> {
    const { layout, shared } = this.#parts
    return shared.refreshing.refresh(layout.searchedIndices(kinds), delay)
  }

  /**
   * Checks that no other owner of the partition has published a record of the batch. This process has published none.
   * @throws PublishedByAnother; Unanswered for OVERLAP_MS if another owner has published a part of it: it publishes the
   *   rest, or the group takes the partition from one of both
   */
  async #assertUnpublished(batch: { first: number; last: number; overlapsSince: number | undefined }): Promise<void> {
    const position = (): number => this.published.current().position
    await this.#notSetBack.renew(this.published.readAgain)
    if (position() > batch.first && position() <= batch.last) await this.published.readAgain()
    if (position() > batch.last) throw new PublishedByAnother()
    if (position() <= batch.first) return
    const now = this.#parts.shared.context.elapsed()
    batch.overlapsSince ??= now
    if (now - batch.overlapsSince >= OVERLAP_MS) return
    throw new Unanswered('elasticsearch', 409, 'another owner publishes these offsets')
  }

  readonly #get: GetDocuments = <Source>(docs: Parameters<GetDocuments>[0]) => {
    const { shared, signal, stream } = this.#parts
    const read = (doubt: () => void) =>
      retryUntilAborted('read', signal, shared.context, () =>
        getFromPrimaries<Source>(shared.sendRead, docs, signal).catch((error: unknown) => {
          if (!(error instanceof Unanswered)) throw error
          doubt()
          // An index that refuses writes refuses these reads, too. So they count as retried documents.
          if (error.status !== 0) stream.onWritten('retried', docs.length)
          throw error
        }),
      )
    return shared.doubts.resolve(read, () => {
      // The documents can be of a followed generation: `follow.ts` checks that one.
      shared.sameIndices.forget()
      const indices = docs.map(({ _index }) => _index)
      return retryUntilAborted('read', signal, shared.context, () => shared.assertIntact(this.request, indices))
    })
  }
}
