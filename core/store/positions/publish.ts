/**
 * Moves the published position of a partition: the point up to which readers may see. In: a searchable position, or a
 * time at which everything in the partition was published. Out: nothing, once Elasticsearch has stored it. The time of
 * a position that stands still goes to the document of all times (`publish-times.ts`). Beside it: the document of the
 * last written record. Position, last record and time change together, while two owners may write for a moment.
 * Promises: a position and its time never go back, even with several owners. Each write is conditional on the version
 * that was read, and merges what another owner wrote. A stored position that went back is not merged: that would pass
 * over documents that a restored copy lacks. Only a time ahead of all clocks is taken back, which is counted.
 */
import {
  type PositionDocument,
  positionId,
  type WrittenDocument,
  writtenId,
} from '../../../schemas/stored/documents.ts'
import { StopError } from '../../runtime/index.ts'
import type { DocumentAnswer, DocumentVersion } from '../elasticsearch/answers.ts'
import { type Ask, documentPath, ifVersion } from '../elasticsearch/client.ts'
import type { PublishedTimes } from './publish-times.ts'
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
  /** Publishes what is further than the stored position. Writes run one by one, each with all earlier calls. */
  readonly advance: (further: Partial<PublishedState>) => Promise<void>
  /** Like `advance`, but replaces a published time that is ahead of all clocks. */
  readonly takeBack: (further: Partial<PublishedState>) => Promise<void>
}

export const openPublishedPosition = async (partition: number, steps: PositionSteps): Promise<PublishedPosition> => {
  const path = documentPath(steps.index, positionId(steps.generation, partition))
  let stored = await readStored(path, steps)
  await steps.times.read()
  // A stored `serve_from` is left to those who set it: `adopt` and a start set it anew, also to a lower offset.
  let wanted = { ...stored.position, serve_from: 0 }
  const current = (): PublishedState => withTime(stored.position, steps.times.of(partition))
  let running: Promise<void> = Promise.resolve()

  const writeWanted = async (): Promise<void> => {
    while (!isReached(stored.position, wanted)) {
      const target = merge(stored.position, wanted)
      const { status, body } = await steps.replace<DocumentVersion>({
        method: 'PUT',
        path,
        query: ifVersion(stored.version),
        body: { kind: 'position', body: target } satisfies PositionDocument,
      })
      if (status === 200) stored = { position: target, version: body }
      // Another owner wrote first, or an earlier attempt of ours succeeded and its response was lost.
      else if (status === 409) stored = assertMonotonic(stored, await readStored(path, steps), steps)
      else throw new StopError('index_missing', `${steps.index}, while publishing`, { status })
    }
  }

  const want = (further: (known: PublishedState) => PublishedState): Promise<void> => {
    const known = { ...merge(current(), wanted), serve_from: wanted.serve_from }
    wanted = merge(known, further(known))
    running = running.catch(() => undefined).then(writeWanted)
    return running
  }

  const wantTime = (time: number, taken_back: number): Promise<void> =>
    steps.times.advance(partition, { position: stored.position.position, time, ...(taken_back > 0 && { taken_back }) })

  return {
    current,
    advance: further => {
      if (isTimeOnly(further)) return wantTime(further.time, takenBack(current()))
      return want(known => ({ ...known, ...further }))
    },
    takeBack: further => {
      if (isTimeOnly(further)) return wantTime(further.time, takenBack(current()) + 1)
      return want(known => ({ ...known, ...further, taken_back: takenBack(known) + 1 }))
    },
  }
}

const isTimeOnly = (further: Partial<PublishedState>): further is { time: number } =>
  further.time !== undefined && Object.keys(further).length === 1

type Stored = { readonly position: PublishedState; readonly version: DocumentVersion }

const readStored = async (path: string, { request, generation, index }: PositionSteps): Promise<Stored> => {
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
const assertMonotonic = (before: Stored, found: Stored, { generation, index }: PositionSteps): Stored => {
  if (found.position.position < before.position.position) {
    const where = { was: before.position.position, is: found.position.position }
    throw new StopError('position_went_back', `${generation} in ${index}`, where)
  }
  if (found.position.source === before.position.source) return found
  throw new StopError('source_changed', `${generation} was given another log as its source`, { generation })
}

/** How often a time was taken back because clocks had been ahead. Readers detect a stale read by it. */
const takenBack = ({ taken_back = 0 }: PublishedState): number => taken_back

/** Combines two views of one position. `at` and `last` (offset and hash of the last record) are of the further one. */
const merge = (a: PublishedState, b: PublishedState): PublishedState => {
  const further = b.position > a.position ? b : a
  const later = isLaterTime(b, a) ? b : a
  return {
    ...further,
    time: later.time,
    serve_from: Math.max(a.serve_from, b.serve_from),
    ...(later.taken_back !== undefined && { taken_back: later.taken_back }),
  }
}

const isReached = (stored: PublishedState, wanted: PublishedState): boolean => {
  const both = merge(stored, wanted)
  return (
    stored.position >= wanted.position &&
    stored.serve_from >= wanted.serve_from &&
    stored.time === both.time &&
    takenBack(stored) === takenBack(both)
  )
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
