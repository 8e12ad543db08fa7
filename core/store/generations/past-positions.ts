/**
 * Keeps the published positions of a generation, once a minute, in documents that are overwritten after two days.
 * After a restore, `commission projection rewind` goes back to positions that are older than the snapshot.
 * Promises: all documents before past positions were stored before `time`, in the indices that `copy` identifies. So
 * the positions are read first, then the ids of the indices, and then the clocks. `time` is the latest of the clocks of
 * Elasticsearch's nodes, of which one dates the snapshot, and of this machine: a date that is too late only lets
 * `rewind` go back further. At rest nothing is written.
 * Can go wrong: Elasticsearch does not answer, or not all of its nodes tell their clocks. Then nothing is kept;
 * projecting goes on.
 */
import { createHash } from 'node:crypto'
import {
  controlIndexOf,
  PAST_POSITIONS,
  type PastPositionsDocument,
  type PositionDocument,
  pastPositionsId,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { controlAddress } from '../../../schemas/stored/layout.ts'
import type { GenerationBody } from '../../log/index.ts'
import { type RetryOptions, StopError, Unanswered } from '../../runtime/index.ts'
import { documentPath, type Send } from '../elasticsearch/client.ts'
import { readElasticsearchClock } from '../elasticsearch/clocks.ts'
import { type FoundDocument, getEach, multiGet } from '../elasticsearch/primary-reads.ts'
import { KEEP_POSITIONS_LOOK_MS, KEEP_POSITIONS_MS } from '../limits.ts'
import { assertSameIndices } from './indices.ts'

export type PastPositions = PastPositionsDocument['body']
type KeptPositions = PastPositions['partitions']
type Steps = { readonly send: Send; readonly prefix: string }

/** Returns a digest of the index ids of a generation: a restored copy has another. Undefined without recorded ids. */
export const copyOf = ({ indices }: Pick<GenerationBody, 'indices'>): string | undefined => {
  if (indices === undefined) return undefined
  const names = Object.entries(indices).sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(names)).digest('hex')
}

/** Keeps the present positions unless `before` has the same ones. @returns the kept positions; undefined if none are */
export const keepPositions = async (
  identity: GenerationBody,
  before: KeptPositions | undefined,
  { send, prefix, now }: Steps & { readonly now: () => number },
): Promise<KeptPositions | undefined> => {
  const { generation } = identity
  const copy = copyOf(identity)
  const partitions = await readPositions(identity, { send, prefix })
  if (copy === undefined || partitions === undefined) return undefined
  if (partitions.every(({ position }, partition) => position === before?.[partition]?.position)) return before
  // If only the control index was restored, its positions may not fit the documents.
  await assertSameIndices(identity, { request: send, prefix })
  const theirs = await readElasticsearchClock(send, '_all')
  if (theirs === undefined) return undefined
  const time = Math.max(theirs, now())
  const id = pastPositionsId(generation, Math.floor(time / KEEP_POSITIONS_MS) % PAST_POSITIONS)
  const body = { kind: 'past', body: { time, clocks: 'all', copy, partitions } } satisfies PastPositionsDocument
  const { status } = await send({ method: 'PUT', path: documentPath(controlIndexOf(prefix), id), body })
  return status === 200 || status === 201 ? partitions : undefined
}

/** Keeps the positions of a stream until the signal, while this process owns its first partition. */
export const keepPositionsOf = async (
  { identity, prefix }: { readonly identity: GenerationBody; readonly prefix: string },
  { send, isOurs, now, elapsed, retryOptions, fail }: KeepContext,
  signal: AbortSignal,
): Promise<void> => {
  let kept: KeptPositions | undefined
  let keptAt = Number.NEGATIVE_INFINITY
  while (!signal.aborted) {
    if (isOurs() && elapsed() - keptAt >= KEEP_POSITIONS_MS) {
      const began = elapsed()
      try {
        const found = await keepPositions(identity, kept, { send: request => send(request, signal), prefix, now })
        if (found !== undefined) [kept, keptAt] = [found, began]
      } catch (error) {
        // Other checks of the stream report what is wrong.
        if (!(signal.aborted || error instanceof Unanswered || error instanceof StopError)) fail(error)
      }
    }
    await retryOptions.sleep(KEEP_POSITIONS_LOOK_MS, signal).catch(() => undefined)
  }
}

type KeepContext = {
  readonly send: Send
  /** Whether this process owns the first partition: one projector of an installation keeps the positions. */
  readonly isOurs: () => boolean
  /** This machine's clock. */
  readonly now: () => number
  /** Milliseconds on a monotonic clock. */
  readonly elapsed: () => number
  readonly retryOptions: Pick<RetryOptions, 'sleep'>
  readonly fail: (error: unknown) => void
}

/** Returns undefined if a position is missing: the generation was dropped. */
const readPositions = async (
  { generation, partitions }: GenerationBody,
  { send, prefix }: Steps,
): Promise<KeptPositions | undefined> => {
  const ids = Array.from({ length: partitions }, (_, partition) => positionId(generation, partition))
  const found = await readControlDocuments<PositionDocument>(ids, { send, prefix })
  const positions = found.flatMap(document => (document.found ? [document._source.body] : []))
  if (positions.length < partitions) return undefined
  return positions.map(({ position, last, at }) => ({ position, last, at }))
}

/**
 * Returns the newest positions that were kept at `until` or before, of the indices that the generation's document
 * names; undefined if there are none. Positions of 1.1.0 do not count: they may be newer than their time.
 */
export const readPastPositions = async (
  identity: GenerationBody,
  until: number,
  steps: Steps,
): Promise<PastPositions | undefined> => {
  const found = await readControlDocuments<PastPositionsDocument>(pastPositionsIds(identity.generation), steps)
  const copy = copyOf(identity)
  return found
    .flatMap(document => (document.found ? [document._source.body] : []))
    .filter(({ time, clocks, copy: of }) => clocks === 'all' && time <= until && of === copy)
    .reduce<PastPositions | undefined>((newest, one) => (newest && newest.time >= one.time ? newest : one), undefined)
}

/** Returns the ids of the documents of past positions that a generation has. @param after only those of later times */
export const listPastPositions = async (generation: string, steps: Steps, after?: number): Promise<string[]> => {
  const ids = pastPositionsIds(generation)
  const found = await readControlDocuments<PastPositionsDocument>(ids, steps)
  return ids.filter((_, index) => {
    const document = found[index]
    return document?.found && (after === undefined || document._source.body.time > after)
  })
}

const pastPositionsIds = (generation: string): string[] =>
  Array.from({ length: PAST_POSITIONS }, (_, slot) => pastPositionsId(generation, slot))

const readControlDocuments = async <Source>(
  ids: readonly string[],
  { send, prefix }: Steps,
): Promise<FoundDocument<Source>[]> => {
  const docs = ids.map(id => controlAddress(prefix, id))
  return getEach(docs, part => multiGet<Source>(send, part))
}
