/**
 * Position and time of a partition as published: the point up to which readers may see. In: a searchable position, or a
 * time at which everything in the partition was published. Out: nothing, once Elasticsearch has stored it. The time of
 * a position that stands still goes to the document of all times (`createPublishedTimes`). Beside them: the document of
 * the last written record. Position, last record and time change together, while two owners may write for a moment.
 * Promises: a position and its time never go back, even with several owners. Each write is conditional on the version
 * that was read, and merges what another owner wrote. A stored position that went back is not merged: that would pass
 * over documents that a restored copy lacks. Only a time ahead of all clocks is taken back, which is counted.
 *
 * `isVisible` in `position.ts` defines which records a reader at a position sees.
 */
import {
  type PartitionTime,
  type PositionDocument,
  positionId,
  type TimesDocument,
  timesId,
  type WrittenDocument,
  writtenId,
} from '../../../schemas/stored/documents.ts'
import { type Address, controlAddress } from '../../../schemas/stored/layout.ts'
import { StopError } from '../../runtime/index.ts'
import type { DocumentAnswer, DocumentVersion } from '../elasticsearch/answers.ts'
import { type Ask, documentPath, ifVersion } from '../elasticsearch/client.ts'
import { isLaterTime, withTime } from './times-cache.ts'

export type PublishedState = PositionDocument['body']

type PositionSteps = {
  readonly index: string
  readonly generation: string
  readonly request: Ask
  /** Sends the conditional writes, which may be combined with those of other partitions. */
  readonly replace: Ask
  readonly times: PublishedTimes
}

/** The published position of one partition, as this process last saw it. */
export type PublishedPosition = {
  readonly current: () => PublishedState
  /** The last record whose documents are written, if it is at or after the position. */
  readonly written?: PublishedState['last']
  /**
   * The version of the document of written records is this and the offset that it has. Set when the partition is
   * opened (`openWritten`).
   */
  readonly writtenFrom?: number
  /**
   * Publishes a position, and a time that it has reached, if they are further than the stored ones. Writes run one by
   * one, each with all earlier calls.
   * @param isAhead the published time is ahead of all clocks: the new time replaces it, which is counted
   */
  readonly advance: (further: FurtherPosition, isAhead?: boolean) => Promise<void>
  /** Publishes the time of a position that stands still, in the document of all times. */
  readonly advanceTime: (time: number, isAhead?: boolean) => Promise<void>
  /** Reads the stored position, which another owner may have published. */
  readonly readAgain: () => Promise<void>
}

/** A position with its last record, and a time if one is reached. */
export type FurtherPosition = Pick<PublishedState, 'position' | 'last' | 'at'> & { readonly time?: number }

export const openPublishedPosition = async (partition: number, steps: PositionSteps): Promise<PublishedPosition> => {
  const path = documentPath(steps.index, positionId(steps.generation, partition))
  let stored = await readStored(path, steps)
  await steps.times.read()
  let wanted = stored.position
  const current = (): PublishedState => withTime(stored.position, steps.times.of(partition))
  let running: Promise<void> = Promise.resolve()

  const writeWantedPosition = async (): Promise<void> => {
    while (!isReached(stored.position, wanted)) {
      const target = mergePositions(stored.position, wanted)
      const { status, body } = await steps.replace<DocumentVersion>({
        method: 'PUT',
        path,
        query: ifVersion(stored.version),
        body: { kind: 'position', body: target } satisfies PositionDocument,
      })
      if (status === 200) stored = { position: target, version: body }
      // Another owner wrote first, or an earlier attempt of ours succeeded and its response was lost.
      else if (status === 409) await readAgain()
      else throw new StopError('index_missing', `${steps.index}, while publishing`, { status })
    }
  }

  const readAgain = async (): Promise<void> => {
    stored = assertMonotonic(stored, await readStored(path, steps), steps)
  }
  const inTurn = (step: () => Promise<void>): Promise<void> => {
    running = running.catch(() => undefined).then(step)
    return running
  }

  return {
    current,
    advance: (further, isAhead = false) => {
      const known = mergePositions(current(), wanted)
      wanted = mergePositions(known, { ...known, ...further, ...(isAhead && { taken_back: takenBack(known) + 1 }) })
      return inTurn(writeWantedPosition)
    },
    advanceTime: (time, isAhead = false) => {
      const { position } = stored.position
      const taken_back = takenBack(current()) + (isAhead ? 1 : 0)
      return steps.times.advance(partition, { position, time, ...(taken_back > 0 && { taken_back }) })
    },
    readAgain: () => inTurn(readAgain),
  }
}

type StoredPosition = { readonly position: PublishedState; readonly version: DocumentVersion }

const readStored = async (path: string, { request, generation, index }: PositionSteps): Promise<StoredPosition> => {
  const { status, body } = await request<DocumentAnswer<PositionDocument>>({ method: 'GET', path })
  if (status !== 200) throw new StopError('index_missing', `a position of ${generation} in ${index}`, { status })
  if (body._source.body.removing) {
    const what = `documents of ${generation} are being removed`
    throw new StopError('position_went_back', `${what}: let adopt or rewind end; if it was interrupted, run it again`)
  }
  return { position: body._source.body, version: body }
}

/**
 * Returns what was found.
 * @throws StopError if `adopt --archive` changed the source, or the position went back: an older snapshot was restored.
 * It lacks the documents between the two positions. Moving on would lose them. The next projector continues from the
 * snapshot.
 */
const assertMonotonic = (
  before: StoredPosition,
  found: StoredPosition,
  { generation, index }: PositionSteps,
): StoredPosition => {
  if (found.position.position < before.position.position) {
    const where = { was: before.position.position, is: found.position.position }
    throw new StopError('position_went_back', `${generation} in ${index}`, where)
  }
  if (found.position.source === before.position.source) return found
  throw new StopError('source_changed', `${generation} was given another log as its source`, { generation })
}

/** How often a time was taken back because clocks had been ahead. Readers detect a stale read by it. */
const takenBack = ({ taken_back = 0 }: PublishedState): number => taken_back

/**
 * Combines two views of one position. `at` and `last` (offset and hash of the last record) are of the further one.
 * `serve_from` is the known one: only `adopt` and a start of a projector set it, also to a lower offset.
 */
const mergePositions = (known: PublishedState, wanted: PublishedState): PublishedState => {
  const further = wanted.position > known.position ? wanted : known
  const later = isLaterTime(wanted, known) ? wanted : known
  return {
    ...further,
    time: later.time,
    serve_from: known.serve_from,
    ...(later.taken_back !== undefined && { taken_back: later.taken_back }),
  }
}

const isReached = (stored: PublishedState, wanted: PublishedState): boolean => {
  const both = mergePositions(stored, wanted)
  return stored.position >= wanted.position && stored.time === both.time && takenBack(stored) === takenBack(both)
}

export type PublishedTimes = {
  /** Reads the stored times of all partitions again. */
  readonly read: () => Promise<void>
  /** Returns the time of a partition as it was last seen; undefined if there is none. */
  readonly of: (partition: number) => PartitionTime | undefined
  /** Publishes a time. It resolves once it, or a later one, is stored. */
  readonly advance: (partition: number, time: PartitionTime) => Promise<void>
}

type Times = TimesDocument['body']['partitions']
/** Without a version the document does not exist yet. */
type StoredTimes = { readonly times: Times; readonly version?: DocumentVersion }

/**
 * Publishes the times of partitions whose position stands still. One document has the times of all partitions of a
 * generation. So a projection at rest writes once for each read of the ends. Times that come during a write are written
 * together.
 * @throws StopError `index_missing` if the document is gone: the generation was dropped, or the index was lost
 */
export const createPublishedTimes = (index: string, generation: string, request: Ask): PublishedTimes => {
  const id = timesId(generation)
  const path = documentPath(index, id)
  let stored: StoredTimes = { times: {} }
  let wanted: Times = {}
  let running: Promise<void> = Promise.resolve()

  const missing = (status: number): StopError => new StopError('index_missing', `${id} in ${index}`, { status })

  const read = async (): Promise<void> => {
    // Another partition may write the first times during this read.
    const existed = stored.version !== undefined
    const { status, body } = await request<DocumentAnswer<TimesDocument>>({ method: 'GET', path })
    if (status === 200) stored = { times: body._source.body.partitions, version: body }
    else if (existed) throw missing(status)
  }

  const write = (partitions: Times) => {
    const body: TimesDocument = { kind: 'times', body: { partitions } }
    const { version } = stored
    return version === undefined
      ? request<DocumentVersion>({ method: 'PUT', path: `/${index}/_create/${encodeURIComponent(id)}`, body })
      : request<DocumentVersion>({ method: 'PUT', path, query: ifVersion(version), body })
  }

  const writeWantedTimes = async (): Promise<void> => {
    for (
      let times = mergeTimes(stored.times, wanted);
      times !== stored.times;
      times = mergeTimes(stored.times, wanted)
    ) {
      const { status, body } = await write(times)
      if (status === 200 || status === 201) stored = { times, version: body }
      // Another process wrote first, or an earlier attempt of ours succeeded and its response was lost.
      else if (status === 409) await read()
      else throw missing(status)
    }
  }

  return {
    read,
    of: partition => stored.times[partition],
    advance: (partition, time) => {
      wanted = mergeTimes(wanted, { [partition]: time })
      running = running.catch(() => undefined).then(writeWantedTimes)
      return running
    },
  }
}

/** Returns the first times with what is later in the others; the same object if nothing is. */
const mergeTimes = (times: Times, others: Times): Times => {
  const later = Object.entries(others).filter(([partition, time]) => {
    const known = times[partition]
    return known === undefined || isLaterTime(time, known)
  })
  return later.length === 0 ? times : { ...times, ...Object.fromEntries(later) }
}

/**
 * Opens the document of the last written record. Bulk requests may arrive in another order than they were sent, so its
 * version grows with the offset, from `writtenFrom`. All owners of a partition count from the same version, that of the
 * stored document: the first owner creates it, without a record. The stored one can also be one of an older program,
 * without a relation to the offset.
 */
export const openWritten = async (
  partition: number,
  position: number,
  stored: StoredWritten,
): Promise<OpenedWritten> => {
  for (;;) {
    const found = await readWritten(partition, position, stored)
    if (found !== undefined) return found
    // Elasticsearch gives it a version above that of a deleted one. If another owner was first, this changes nothing.
    const id = writtenId(stored.identity.generation, partition)
    const path = `/${stored.controlIndex}/_create/${encodeURIComponent(id)}`
    const { status, body } = await stored.request<Versioned>({ method: 'PUT', path, body: NOTHING_WRITTEN })
    if (status === 201) return { written: null, writtenFrom: body._version - NOTHING_WRITTEN.body.offset }
    if (status !== 409) throw new StopError('index_missing', stored.controlIndex)
  }
}

/**
 * Returns the document of the last written record as it is written with the documents of a batch.
 * @param last of the batch. The document has the record of an opened partition instead if that is a later one
 */
export const writtenDocument = (
  last: LastWritten,
  { written, writtenFrom = 0 }: Pick<PublishedPosition, 'written' | 'writtenFrom'>,
  at: { readonly identity: { readonly generation: string }; readonly prefix: string; readonly partition: number },
): { readonly address: Address; readonly version: number; readonly document: WrittenDocument } => {
  const body = laterOf(written, last)
  const address = controlAddress(at.prefix, writtenId(at.identity.generation, at.partition))
  return { address, version: writtenFrom + body.offset, document: { kind: 'written', body } }
}

/**
 * Returns the later one of two written records. After a crash, documents of later records are there until they are
 * written again: an earlier record in their place would let a log that lost them go on.
 */
export const laterOf = (before: LastWritten | null | undefined, last: LastWritten): LastWritten =>
  before && before.offset > last.offset ? before : last

/** Returns the last record whose documents are written, if it is at or after the position; undefined: no document. */
export const readWritten = async (
  partition: number,
  position: number,
  { identity, controlIndex, request }: StoredWritten,
): Promise<OpenedWritten | undefined> => {
  const path = documentPath(controlIndex, writtenId(identity.generation, partition))
  const { status, body } = await request<DocumentAnswer<WrittenDocument> & Versioned>({ method: 'GET', path })
  if (status !== 200) return undefined
  const { body: written } = body._source
  const isAhead = written.offset >= Math.max(0, position)
  return { written: isAhead ? written : null, writtenFrom: body._version - written.offset }
}

type StoredWritten = {
  readonly identity: { readonly generation: string }
  readonly controlIndex: string
  readonly request: Ask
}
type Versioned = { readonly _version: number }
/** The last record whose documents are written. */
export type LastWritten = WrittenDocument['body']
type OpenedWritten = { readonly written: LastWritten | null; readonly writtenFrom: number }

/** The document before the first record. */
const NOTHING_WRITTEN: WrittenDocument = { kind: 'written', body: { offset: -1, sha256: '' } }
