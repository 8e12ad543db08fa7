/**
 * Moves the published position of a partition: the point up to which readers may see.
 * In: a position that is searchable, or an instant at which the partition was seen to hold nothing more. Out: nothing,
 * once Elasticsearch has it. Promises: a position and its time never go back, even when several owners write: each
 * write is conditional on the version that was read, and merges what another owner wrote meanwhile. Only a time that
 * lies ahead of all clocks is taken back, and that is counted.
 */
import type { PositionDocument } from '../../schemas/stored/documents.ts'
import { positionId } from '../../schemas/stored/documents.ts'
import type { Answer, Request } from '../elasticsearch/client.ts'
import { StopError } from '../failures.ts'

export type Position = PositionDocument['body']

export type PositionSteps = {
  readonly index: string
  readonly generation: string
  /** Tries until it is answered. */
  readonly request: (request: Request) => Promise<Answer>
}

/** The published position of one partition, as this process last saw it. */
export type PublishedPosition = {
  readonly current: () => Position
  /** Publishes what is further than what is published. Calls are carried out one after the other, the latest whole. */
  readonly advance: (further: Partial<Position>) => Promise<void>
  /** The same, with a time that is over in the place of one that is not. */
  readonly takeBack: (further: Partial<Position>) => Promise<void>
}

export const readPosition = async (partition: number, steps: PositionSteps): Promise<PublishedPosition> => {
  const path = `/${steps.index}/_doc/${encodeURIComponent(positionId(steps.generation, partition))}`
  let stored = await readStored(path, steps)
  let wanted = stored.position
  let running: Promise<void> = Promise.resolve()

  const writeWanted = async (): Promise<void> => {
    while (!isReached(stored.position, wanted)) {
      const target = merge(stored.position, wanted)
      const { status, body } = await steps.request({
        method: 'PUT',
        path,
        query: { if_seq_no: stored.seqNo, if_primary_term: stored.primaryTerm },
        body: { kind: 'position', body: target } satisfies PositionDocument,
      })
      if (status === 200) stored = { position: target, ...versionOf(body as Versioned) }
      // Another owner was there first, or an earlier try of ours got through although its answer was lost.
      else if (status === 409) stored = notBehind(stored, await readStored(path, steps), steps)
      else throw new StopError('index_missing', `${steps.index}, while publishing`, { status })
    }
  }

  const want = (further: (known: Position) => Position): Promise<void> => {
    const known = merge(stored.position, wanted)
    wanted = merge(known, further(known))
    running = running.catch(() => undefined).then(writeWanted)
    return running
  }

  return {
    current: () => stored.position,
    advance: further => want(known => ({ ...known, ...further })),
    takeBack: further => want(known => ({ ...known, ...further, taken_back: takenBack(known) + 1 })),
  }
}

type Versioned = { readonly _seq_no: number; readonly _primary_term: number }
type Stored = { readonly position: Position; readonly seqNo: number; readonly primaryTerm: number }

const versionOf = ({ _seq_no, _primary_term }: Versioned) => ({ seqNo: _seq_no, primaryTerm: _primary_term })

const readStored = async (path: string, { request, generation, index }: PositionSteps): Promise<Stored> => {
  const { status, body } = await request({ method: 'GET', path })
  if (status !== 200) throw new StopError('index_missing', `a position of ${generation} in ${index}`, { status })
  const found = body as Versioned & { _source: PositionDocument }
  return { position: found._source.body, ...versionOf(found) }
}

/**
 * A position behind the one that was there before comes from an older copy of the index. The copy lacks the documents
 * between the two, and moving the position forward would lose them for ever. The next projector that starts goes on
 * from the copy.
 */
const notBehind = (before: Stored, found: Stored, { generation, index }: PositionSteps): Stored => {
  if (found.position.position >= before.position.position) return found
  const where = { was: before.position.position, is: found.position.position }
  throw new StopError('position_went_back', `${generation} in ${index}`, where)
}

/**
 * How many times a time of this partition was taken back, because clocks had been ahead. A reader tells a late read by
 * it.
 */
const takenBack = ({ taken_back = 0 }: Position): number => taken_back

/** Of two views of one partition, what both know. The last record and its time belong to the further position. */
const merge = (a: Position, b: Position): Position => {
  const further = b.position > a.position ? b : a
  // What was taken back since, and is still in one of them, counts no more.
  const later = takenBack(a) === takenBack(b) ? (b.time > a.time ? b : a) : takenBack(b) > takenBack(a) ? b : a
  return {
    ...further,
    time: later.time,
    serve_from: Math.max(a.serve_from, b.serve_from),
    ...(later.taken_back !== undefined && { taken_back: later.taken_back }),
  }
}

const isReached = (stored: Position, wanted: Position): boolean => {
  const both = merge(stored, wanted)
  return (
    stored.position >= wanted.position &&
    stored.serve_from >= wanted.serve_from &&
    stored.time === both.time &&
    takenBack(stored) === takenBack(both)
  )
}
