/**
 * Waits for changes. In: an organization, a cursor of its feed and perhaps a filter. Out: `undefined` as soon as there
 *   may be a change after the cursor: the caller reads the page. When the time is up: a position. There is no change
 *   between the cursor and it. The caller answers an empty page without a read, if `confirm` still permits this.
 * Promises: one look for all who wait, and none while nobody waits. A look reads the positions of all partitions once;
 *   only if one has moved, one search finds the organizations with a change since. One search for each of them serves
 *   all their filters. No change is overlooked: a waiter keeps the position up to which two searches found nothing,
 *   AGREED_AFTER apart, and the next search begins there: an old copy may answer one of them. Only the first search of
 *   a wait counts once: its cursor may be far back, and a common search from there would be slow for all. If an old
 *   copy answered it, a wait that begins after LAST_CURSOR_AGE_MAX finds the change. Few requests wait: a bounded
 *   number of each organization, and of the process. Above it, a request does not wait, and reads its page: a refusal
 *   would look like an error.
 * Can go wrong: a look fails → waiters wait on. A waiter whose time is up after failed looks reads the page itself, and
 *   its refusal says why. The live generation changes → its waiters read the page: new rules can change the past. A
 *   restored copy was adopted → the same: it may have lacked changes.
 *
 * A request waits from one look to the next. Only `move` changes how it stands:
 * - a read found nothing new → it waits on, with the later position and the time at which the read began;
 * - there may be a change → its wait ends, and it reads its page;
 * - there may be a change, but as many as WAKES_PER_LOOK woke at this look → it waits on as if nobody had looked, and
 *   the next look finds it again;
 * - its time is up → its wait ends, with its position if the read of it is recent. Otherwise it reads its page.
 * When its client leaves, its wait ends with a refusal, whatever the last look said.
 */
import { LRUCache } from 'lru-cache'
import { partitionOf } from '../../schemas/partition.ts'
import { listKinds } from '../../schemas/stored/documents.ts'
import { abortRefusal, lruOptions, type Schedule, type Semaphores, withTimeLimit } from '../runtime/index.ts'
import {
  type Generation,
  type PositionReader,
  READ_TIME_MAX,
  type ReadPosition,
  type ReadScope,
  readingOfProcess,
  type ScopedSearch,
  type ServedPositions,
  searchSmall,
  smallSearch,
} from '../store/index.ts'
import type { ChangesAsked, FindChange, FindLast } from './find-changes.ts'
import {
  AGREED_AFTER,
  FIND_INTERVAL,
  LAST_CURSOR_AGE_MAX,
  LAST_CURSORS_REMEMBERED,
  LOOK_AGE_MAX,
  LOOK_INTERVAL,
  LOOK_RETRY_INTERVAL,
  WAKES_PER_LOOK,
} from './limits.ts'
import type { ProjectionTime } from './pages/read-list.ts'
import { textOfName } from './pages/read-parameters.ts'

export type ChangeWatch = {
  /** Resolves with undefined if the page must be read; with a position if no change is between the cursor and it. */
  readonly wait: (
    scope: ReadScope,
    asked: ChangesAsked,
    milliseconds: number,
    events: WaitEvents,
  ) => Promise<ReadPosition | undefined>
  /**
   * Returns the position with which an empty page may be answered now; undefined if the page must be read: another
   * request has shown a later position since. The time of answers never goes back.
   */
  readonly confirm: (scope: ReadScope, asked: ChangesAsked, position: ReadPosition) => Promise<ReadPosition | undefined>
  /**
   * Remembers that a search just found no change between a cursor and a position. A wait soon after needs no read to
   * begin.
   */
  readonly remember: (org: string, asked: ChangesAsked, position: ReadPosition) => void
  /** Ends all waits at once, and all later ones. */
  readonly end: () => void
  /** Number of requests that wait. */
  readonly waiting: () => number
}

/** Runs a read with a read permit of its organization. @throws Refusal `unavailable` without a permit */
export type RunPermitted = <Result>(
  of: Pick<ReadScope, 'org' | 'signal'>,
  read: () => Promise<Result>,
) => Promise<Result>

/** The permits of the searches of a wait: the first one, which may queue for all of its time, and those for filters. */
export type WaitPermits = { readonly toBegin: RunPermitted; readonly toFind: RunPermitted }

/** `leaving` ends the wait. `onTurn`: the first search begins. `onWait`: it found no change, or was not needed. */
type WaitEvents = {
  readonly leaving: AbortSignal
  readonly onTurn: () => void
  readonly onWait: () => void
}

/** An event of a wait. */
type Move =
  | { readonly to: 'nothing new'; readonly position: ReadPosition; readonly seenAt: number }
  | { readonly to: 'page' }
  | { readonly to: 'next look' }
  | { readonly to: 'time is up' }

type Waiter = {
  readonly org: string
  readonly asked: ChangesAsked
  /** No change is between the cursor and this position. */
  position: ReadPosition
  /** When the last read of this waiter's position began; a remembered position has none. */
  seenAt: number
  /** The offset at which the next search begins, never before the first position of the wait. */
  from: number
  /** The end of the search that the next one repeats, and when it began. */
  searched: { readonly to: number; readonly at: number }
  /** Ends the wait. */
  readonly settle: (position: ReadPosition | undefined) => void
}

type WatchParts = {
  readonly search: ScopedSearch
  readonly findChange: FindChange
  readonly findLast: FindLast
  readonly readServedPositions: (signal: AbortSignal) => Promise<Pick<ServedPositions, 'generation' | 'partitions'>>
  readonly latest: PositionReader['latest']
  readonly projectionTime: ProjectionTime
  readonly permitted: WaitPermits
  /** Requests of each organization that may wait. */
  readonly waits: Pick<Semaphores, 'tryAcquire'>
  readonly later: Schedule
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
}

/** Creates the watch of a process. */
export const createChangeWatch = (parts: WatchParts): ChangeWatch => {
  const { search, findChange, findLast, readServedPositions, permitted, waits, later, elapsed } = parts
  const waiters = new Set<Waiter>()
  /** Organizations whose filters are searched now, or were a short time ago. */
  const finding = new Set<string>()
  // A look searches from the oldest position of all waiters: one old position would make it slow for all of them.
  const lastCursors = new LRUCache<string, ReadPosition>({
    ...lruOptions(LAST_CURSORS_REMEMBERED),
    ttl: LAST_CURSOR_AGE_MAX,
    ttlResolution: 0,
    perf: { now: elapsed },
  })
  let isLooking = false
  let ended = false

  const wait: ChangeWatch['wait'] = async (scope, asked, milliseconds, events) => {
    const { org, signal } = scope
    const leave = waits.tryAcquire(org)
    if (leave === undefined) return undefined
    try {
      const begun = elapsed()
      const remembered = lastCursors.get(cursorKeyOf(org, asked))
      const known = remembered
        ? { found: false, position: remembered }
        : await findFirst(scope, asked, milliseconds, events)
      if (known === undefined || known.found || ended) return undefined
      const { position } = known
      if (!remembered) remember(org, asked, position)
      return await waitForLook(
        { org, asked, position, seenAt: remembered ? NEVER : begun },
        Math.max(0, milliseconds - (elapsed() - begun)),
        signal,
        events,
      )
    } finally {
      leave()
    }
  }

  /**
   * The first search of a wait may queue for long: its time begins when it has its turn. Undefined if the wait ends
   * before: its time is up, its client leaves, or the process stops.
   */
  const findFirst = (scope: ReadScope, asked: ChangesAsked, milliseconds: number, { leaving, onTurn }: WaitEvents) =>
    withTimeLimit(milliseconds, later, async timeIsUp => {
      const queueing = AbortSignal.any([scope.signal, leaving, timeIsUp])
      let hasTurn = false
      const find = async () => {
        hasTurn = true
        onTurn()
        if (ended) return undefined
        return await withTimeLimit(READ_TIME_MAX, later, searching =>
          findChange({ ...scope, signal: AbortSignal.any([scope.signal, searching]) }, asked),
        )
      }
      try {
        return ended ? undefined : await permitted.toBegin({ org: scope.org, signal: queueing }, find)
      } catch (error) {
        if (hasTurn || scope.signal.aborted || !queueing.aborted) throw error
        return undefined
      }
    })

  const confirm: ChangeWatch['confirm'] = async (scope, asked, position) => {
    const latest = parts.latest(scope.org, position)
    if (latest === undefined) return undefined
    // A cursor proves that the organization has records: then the time needs no read.
    const found = asked.startingAfter === undefined ? 'unknown' : 'records'
    return { ...latest, time: await parts.projectionTime(scope, latest, found) }
  }

  /** Resolves with undefined when there may be a change, or with a position when the time is up. */
  const waitForLook = (
    known: Pick<Waiter, 'org' | 'asked' | 'position' | 'seenAt'>,
    milliseconds: number,
    signal: AbortSignal,
    { leaving, onWait }: WaitEvents,
  ): Promise<ReadPosition | undefined> => {
    if (signal.aborted) throw abortRefusal(signal)
    const { promise, resolve, reject } = Promise.withResolvers<ReadPosition | undefined>()
    const leave = (): void => {
      stop()
      reject(abortRefusal(signal))
    }
    const stop = (): void => {
      cancel()
      signal.removeEventListener('abort', leave)
      leaving.removeEventListener('abort', end)
      waiters.delete(waiter)
    }
    const waiter: Waiter = {
      ...known,
      from: known.position.publishedTo,
      searched: { to: known.position.publishedTo, at: NEVER },
      settle: position => {
        stop()
        resolve(position)
      },
    }
    const end = (): void => move(waiter, { to: 'time is up' })
    const cancel = later(milliseconds, end)
    signal.addEventListener('abort', leave, { once: true })
    leaving.addEventListener('abort', end, { once: true })
    waiters.add(waiter)
    keepLooking()
    onWait()
    if (leaving.aborted) end()
    return promise
  }

  const remember: ChangeWatch['remember'] = (org, asked, position) => {
    lastCursors.set(cursorKeyOf(org, asked), position)
  }

  const move = (waiter: Waiter, by: Move): void => {
    switch (by.to) {
      case 'nothing new':
        waiter.position = by.position
        waiter.seenAt = by.seenAt
        if (!mustRepeat(waiter, by.position, by.seenAt)) return
        waiter.from = waiter.searched.to
        waiter.searched = { to: by.position.publishedTo, at: by.seenAt }
        return
      case 'next look':
        waiter.seenAt = NEVER
        return
      case 'page':
        waiter.settle(undefined)
        return
      case 'time is up':
        waiter.settle(elapsed() - waiter.seenAt <= LOOK_AGE_MAX ? waiter.position : undefined)
    }
  }

  const keepLooking = (pause = LOOK_INTERVAL): void => {
    if (isLooking || waiters.size === 0) return
    isLooking = true
    later(pause, () => {
      const looking = withTimeLimit(READ_TIME_MAX, later, look).catch(() => LOOK_RETRY_INTERVAL)
      void looking.then(next => {
        isLooking = false
        keepLooking(next)
      })
    })
  }

  /** Returns the milliseconds until the next look: the more requests this one sent, the later. */
  const look = async (signal: AbortSignal): Promise<number> => {
    const begun = elapsed()
    const looking = [...waiters]
    const { generation, partitions } = await readServedPositions(signal)
    const isSame = ({ position }: Waiter): boolean => position.generation.id === generation.id
    let wakes = WAKES_PER_LOOK
    /** Each wake causes the read of a page. The next look finds the waiters over the limit again. */
    const wake = (waiter: Waiter): void => move(waiter, { to: wakes-- > 0 ? 'page' : 'next look' })
    for (const waiter of looking) if (!isSame(waiter)) wake(waiter)

    const current = looking.filter(isSame).flatMap(waiter => {
      const partition = partitionOf(waiter.org, generation.partitions)
      const published = partitions[partition]
      const one = published && { waiter, partition, position: { generation, ...published } }
      return one === undefined || isFinding(one, begun) ? [] : [one]
    })
    const behind = current.filter(one => mustSearch(one, begun))
    const last = behind.length === 0 ? new Map<string, number>() : await lastChanges(generation, behind, signal)
    const filtered: Behind[] = []
    for (const one of current) {
      const { waiter, position } = one
      const hasChange = (last.get(waiter.org) ?? -1) >= waiter.from
      // The indices may be a restored copy that was read again since: there may be a change before the position.
      if (waiter.position.takenBack !== position.takenBack) wake(waiter)
      else if (!hasChange) move(waiter, { to: 'nothing new', position, seenAt: begun })
      else if (isFiltered(waiter.asked)) filtered.push(one)
      else wake(waiter)
    }
    for (const [org, some] of Map.groupBy(filtered, ({ waiter }) => waiter.org)) findForFilters(org, some, begun)
    return behind.length === 0 ? LOOK_INTERVAL : 2 * LOOK_INTERVAL
  }

  /** Whether a search for its filter runs, or ran a short time ago: looks leave it out until the next one may begin. */
  const isFinding = (one: Behind, at: number): boolean =>
    finding.has(one.waiter.org) &&
    isFiltered(one.waiter.asked) &&
    mustSearch(one, at) &&
    one.position.takenBack === one.waiter.position.takenBack

  /**
   * A change of the organization may be one that the filters leave out: one search finds out for all of them. No look
   * waits for it: it waits for a read permit of the organization, and would delay all others. If it fails, or another
   * change comes, a later look begins another one. While the organization changes often, it is searched only once in
   * FIND_INTERVAL, however many of its requests wait.
   */
  const findForFilters = (org: string, behind: readonly Behind[], begun: number): void => {
    const [first] = behind
    if (first === undefined || finding.has(org)) return
    finding.add(org)
    const byFilter = [...Map.groupBy(behind, ({ waiter }) => filterKeyOf(waiter.asked)).values()]
    const filters = byFilter.map(([one]) => one?.waiter.asked.filter ?? {})
    const from = Math.min(...behind.map(({ waiter }) => waiter.from))
    const searching = withTimeLimit(READ_TIME_MAX, later, signal => {
      const scope: ReadScope = { org, ...readingOfProcess(signal) }
      return permitted.toFind(scope, () => findLast(scope, filters, from, first.position))
    })
    void searching
      .then(last => {
        for (const [index, group] of byFilter.entries()) {
          for (const { waiter, position } of group) {
            if ((last[index] ?? -1) >= waiter.from) move(waiter, { to: 'page' })
            else move(waiter, { to: 'nothing new', position, seenAt: begun })
          }
        }
      })
      .catch(() => undefined)
      .finally(() => later(Math.max(0, begun + FIND_INTERVAL - elapsed()), () => void finding.delete(org)))
  }

  /** Returns the offset of the last change of each organization that has one since the position of a waiter. */
  const lastChanges = async (generation: Generation, behind: readonly Behind[], signal: AbortSignal) => {
    const byPartition = Map.groupBy(behind, ({ partition }) => partition)
    const where = generation.layout.searchOf(listKinds, undefined)
    const should = [...byPartition.values()].map(group => {
      const from = Math.min(...group.map(({ waiter }) => waiter.from))
      const to = Math.max(...group.map(({ position }) => position.publishedTo))
      const orgs = [...new Set(group.map(({ waiter }) => waiter.org))]
      return { bool: { filter: [{ terms: { org_id: orgs } }, { range: { seq: { gte: from, lt: to } } }] } }
    })
    const organizations = { terms: { field: 'org_id', size: behind.length }, aggs: { last: { max: { field: 'seq' } } } }
    const query = { bool: { filter: where.filters, should, minimum_should_match: 1 } }
    const body = { size: 0, query, aggs: { organizations } }
    const { aggregations } = smallSearch<LastChanges>(await searchSmall(search, where, body, readingOfProcess(signal)))
    return new Map(aggregations.organizations.buckets.map(({ key, last }) => [key, last.value]))
  }

  return {
    wait,
    confirm,
    remember,
    end: () => {
      ended = true
      for (const waiter of waiters) move(waiter, { to: 'time is up' })
    },
    waiting: () => waiters.size,
  }
}

type Behind = { readonly waiter: Waiter; readonly partition: number; readonly position: ReadPosition }

/** Whether the search is long enough ago to be repeated. */
const mustRepeat = ({ from, searched }: Waiter, { publishedTo }: ReadPosition, at: number): boolean =>
  from < publishedTo && at - searched.at >= AGREED_AFTER
const mustSearch = ({ waiter, position }: Behind, at: number): boolean =>
  position.publishedTo > waiter.position.publishedTo || mustRepeat(waiter, position, at)

type LastChanges = {
  readonly organizations: {
    readonly buckets: readonly { readonly key: string; readonly last: { readonly value: number } }[]
  }
}

const NEVER = Number.NEGATIVE_INFINITY

const isFiltered = ({ filter = {} }: ChangesAsked): boolean => Object.keys(filter).length > 0

/** Of all fields, so that a new one joins no waiters of different filters. */
const filterKeyOf = ({ filter = {} }: ChangesAsked): string => JSON.stringify(Object.entries(filter).sort())

const cursorKeyOf = (org: string, asked: ChangesAsked): string =>
  [org, asked.startingAfter && textOfName(asked.startingAfter), filterKeyOf(asked)].join(' ')
