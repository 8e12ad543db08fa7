/** Creates the readers for the paths, one for each kind of answer. All share positions, cursors and moments. */

import type { Schedule, Semaphores, SigningKey } from '../runtime/index.ts'
import { createPositionReader, type PositionReader, type ScopedReads } from '../store/index.ts'
import { type IndexChecks, positionsChecked } from './check-indices.ts'
import { createReadCheckpoint, type ReadCheckpoint } from './checkpoint/read-checkpoint.ts'
import { createFindChange, createFindLast } from './find-changes.ts'
import { createPositionAsOf, type ReaderClocks } from './pages/as-of.ts'
import { createCursors } from './pages/cursors.ts'
import { createHasChange } from './pages/has-change.ts'
import { createReadByIds, type ReadByIds } from './pages/read-by-ids.ts'
import { createReadHistory, type ReadHistory } from './pages/read-history.ts'
import { createProjectionTime, createReadList, createReadPage, type ReadList } from './pages/read-list.ts'
import { createReadRecords, type ReadRecords } from './pages/read-record.ts'
import { createReadTotals, type ReadTotals } from './pages/read-totals.ts'
import { createSequences } from './pages/sequences.ts'
import { type ChangeWatch, createChangeWatch, type WaitPermits } from './watch-changes.ts'

export type Readers = {
  readonly list: ReadList
  readonly byIds: ReadByIds
  readonly records: ReadRecords
  readonly history: ReadHistory
  readonly totals: ReadTotals
  readonly checkpoint: ReadCheckpoint
}

/** Creates the watch of changes. */
type CreateWatch = (permitted: WaitPermits, waits: Pick<Semaphores, 'tryAcquire'>) => ChangeWatch

type Parts = ReaderClocks & {
  readonly prefix: string
  readonly reads: ScopedReads
  readonly indexChecks: IndexChecks
  readonly later: Schedule
  /** For commands: a generation to read in place of the live one. */
  readonly only?: string | undefined
  /** Without a key, there are no checkpoints. */
  readonly checkpointKey?: SigningKey | undefined
  /** Times and ages of checkpoints, if by another clock than `now`. */
  readonly checkpointNow?: () => number
}

/** Creates all readers. All reject with a Refusal if Elasticsearch cannot answer. */
export const createReaders = ({
  prefix,
  reads: { search, multiGet },
  indexChecks: { check, checkNow, proofs },
  now,
  elapsed,
  later,
  only,
  checkpointKey,
  checkpointNow = now,
}: Parts): { readonly positions: PositionReader; readonly readers: Readers; readonly createWatch: CreateWatch } => {
  const positions = positionsChecked(createPositionReader(prefix, multiGet, later, only), check)
  const projectionTime = createProjectionTime(search, positions.oldestTime)
  const parts = {
    readAt: positions.readAt,
    readPage: createReadPage(search),
    projectionTime,
    cursors: createCursors(),
    positionAsOf: createPositionAsOf(search, projectionTime, { now, elapsed }, proofs),
    sequences: createSequences(search, elapsed, proofs),
  }
  const totals = createReadTotals(parts, search, parts.sequences, elapsed, proofs)
  const hasChange = createHasChange(search)
  const readers = {
    list: createReadList(parts),
    byIds: createReadByIds(parts, multiGet),
    records: createReadRecords(parts, multiGet),
    history: createReadHistory(parts),
    totals,
    checkpoint: createReadCheckpoint(parts, totals, {
      key: checkpointKey,
      now: checkpointNow,
      later,
      checkNow: ({ name, id }) => checkNow(name, id, true),
      hasChange,
    }),
  }
  const createWatch: CreateWatch = (permitted, waits) => {
    const findChange = createFindChange(parts, hasChange)
    const findLast = createFindLast(search)
    const { readServedPositions, latest } = positions
    const reads = { search, findChange, findLast, readServedPositions, latest, projectionTime }
    return createChangeWatch({ ...reads, permitted, waits, later, elapsed })
  }
  return { positions, readers, createWatch }
}
