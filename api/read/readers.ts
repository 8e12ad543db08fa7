/** Creates the readers for the paths, one for each kind of answer. All share positions, cursors and moments. */

import type { Semaphores } from '../capacity/semaphore.ts'
import type { MultiGet, Search } from '../elasticsearch/client.ts'
import type { Schedule } from '../time-limits.ts'
import { createPositionAt } from './as-of.ts'
import { type CheckIndices, positionsChecked } from './check-indices.ts'
import { createCursorResolver } from './cursors.ts'
import { createPositionReader, type PositionReader } from './position.ts'
import { createProjectionTime } from './projection-time.ts'
import { createReadHistory, type ReadHistory } from './read-history.ts'
import { createReadList, type ReadList } from './read-list.ts'
import { createReadPage } from './read-page.ts'
import { createReadRecords, type ReadRecords } from './read-record.ts'
import { createReadTotals, type ReadTotals } from './read-totals.ts'
import {
  type ChangeWatch,
  createChangeWatch,
  createFindChange,
  createFindLast,
  type RunPermitted,
} from './watch-changes.ts'

export type Readers = {
  readonly list: ReadList
  readonly records: ReadRecords
  readonly history: ReadHistory
  readonly totals: ReadTotals
}

/** Creates the watch of changes. */
type CreateWatch = (
  permitted: RunPermitted,
  waits: Pick<Semaphores, 'tryAcquire'>,
  elapsed: () => number,
) => ChangeWatch

/** Creates all readers. All reject with a Refusal if Elasticsearch cannot answer. */
export const createReaders = (
  prefix: string,
  search: Search,
  multiGet: MultiGet,
  checkIndices: CheckIndices,
  /** Milliseconds since 1970. */
  now: () => number,
  later: Schedule,
  /** For commands: a generation to read in place of the live one. */
  only?: string,
): { readonly positions: PositionReader; readonly readers: Readers; readonly createWatch: CreateWatch } => {
  const positions = positionsChecked(createPositionReader(prefix, multiGet, later, only), checkIndices)
  const projectionTime = createProjectionTime(prefix, search, positions.oldestTime)
  const parts = {
    prefix,
    readAt: positions.readAt,
    readPage: createReadPage(search),
    projectionTime,
    cursors: createCursorResolver(prefix),
    positionAt: createPositionAt(prefix, search, projectionTime, now),
  }
  const readers = {
    list: createReadList(parts),
    records: createReadRecords(parts, multiGet),
    history: createReadHistory(parts),
    totals: createReadTotals(parts, search),
  }
  const createWatch: CreateWatch = (permitted, waits, elapsed) => {
    const findChange = createFindChange(parts, search)
    const findLast = createFindLast(prefix, search)
    const { readServedPositions, latest } = positions
    const reads = { search, findChange, findLast, readServedPositions, latest, projectionTime }
    return createChangeWatch({ prefix, ...reads, permitted, waits, later, elapsed })
  }
  return { positions, readers, createWatch }
}
