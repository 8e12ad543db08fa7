/**
 * In: an organization, and its documents that a request reads by name. Out: the position up to which the request may
 *   see, and these documents.
 * Promises: a document is read no earlier than the position. Within this process no position goes back. A time goes
 *   back only if the projector took it back.
 * Can go wrong: a control document is missing, or a position went back → `unavailable`, never an empty organization.
 *
 * Only this file defines which records a reader sees (`isVisible`), and which of them are replaced (`isReplaced`).
 * `seq` of a record is the offset of the event that made it; `until_seq` is the offset of the event that replaced it.
 * Everything at an offset below the position is searchable.
 *
 * If a swap came between the reads of a position and of the live document, this one names another generation, and the
 * request starts again with that one. Until then a document may be unreadable: the generation that this process read
 * last may be dropped, and its indices deleted.
 *
 * A request that reads at a position (`readAt`) has one of these outcomes after each multi-get:
 * - another generation is live → it starts again with that one, once; the second time it is refused;
 * - its generation is live, and behind the previous one, whose later positions readers may have seen → it reads again
 *   after SWAP_POLL_INTERVAL, up to SWAP_POLLS_MAX times; then it is refused;
 * - its generation is live, and not behind → it has its position. If the position has moved since this process last
 *   read it, its documents may be older than the position, and are read again.
 */

import { hash } from 'node:crypto'
import { partitionOf } from '../../../schemas/partition.ts'
import {
  type GenerationDocument,
  generationId,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { controlAddress, type GenerationLayout, layoutOf } from '../../../schemas/stored/layout.ts'
import { withPlainNames } from '../../../schemas/stored/live-names.ts'
import { Refusal, type Schedule, unavailable, waitOrAbort } from '../../runtime/index.ts'
import { SWAP_POLL_INTERVAL, SWAP_POLLS_MAX } from '../limits.ts'
import { type Reading, type ReadScope, readingOfProcess, type ScopedMultiGet } from '../read/scope.ts'
import {
  type DocumentName,
  type DocumentSlice,
  requireReadable,
  sliceEachOf,
  smallDocument,
} from '../read/slice-documents.ts'
import { createTimesCache } from './times-cache.ts'

/** A partition's position when a request read it. `time`: milliseconds of the projector's clock. */
export type ReadPosition = {
  readonly generation: Generation
  readonly publishedTo: number
  readonly time: number
  /** How often a time of the partition was taken back. */
  readonly takenBack: number
}
type AtPosition = Pick<ReadPosition, 'publishedTo'>

/** Whether a record was made before `publishedTo`, replaced since or not. */
export const isVisible = (seq: number, { publishedTo }: AtPosition): boolean => seq < publishedTo

/** Whether a reader at this position may know that a record is replaced. */
export const isReplaced = (untilSeq: number, { publishedTo }: AtPosition): boolean => untilSeq < publishedTo

/** `isVisible` as a range of `seq` in a search. */
export const visibleRange = ({ publishedTo }: AtPosition) => ({ lt: publishedTo })
/** The opposite of `isReplaced`, as a range of `until_seq` in a search. */
export const notReplacedRange = ({ publishedTo }: AtPosition) => ({ gte: publishedTo })

/**
 * `name` is part of the names of its indices, and of its documents in the control index. If all indices of the prefix
 * were deleted and made anew, the same name returns with another `id`. A process remembers what it read of a generation
 * by this id.
 */
export type Generation = {
  readonly name: string
  readonly id: string
  /** Identifies the log that it was made from. */
  readonly log: string
  readonly source: string
  readonly partitions: number
  readonly rules: number
  readonly layout: GenerationLayout
}

/**
 * The live document. `minPositions` (stored as `floor`): by partition, the positions up to which readers may have seen
 * the previous generation; undefined if there are none, null if they are not known yet. `building`: the generation that
 * a command makes now, if there is one.
 */
type Live = {
  readonly name: string
  readonly minPositions: readonly number[] | null | undefined
  readonly building: string | null
}

/**
 * How old the documents may be that are read with the position. `at-position`: no older than it. `may-be-older`: they
 * may be older than the position, but were read after the request began. This is only for documents that the client
 * knows from an earlier answer, and only for fields that never change.
 */
type Freshness = 'at-position' | 'may-be-older'

export type PositionReader = {
  readonly readAt: (scope: ReadScope, documents: DocumentsOf, freshness: Freshness) => Promise<ReadAt>
  /** Returns the oldest time of all partitions of the generation. */
  readonly oldestTime: (generation: Generation, reading: Reading) => Promise<number>
  /**
   * Reads the positions of the live generation. Empty if another generation is live by now.
   * Rejects with `unavailable` if no generation is live.
   */
  readonly readServedPositions: (signal: AbortSignal) => Promise<ServedPositions>
  /**
   * Returns the position with the latest time that this process has shown for it; undefined if it has shown a later
   * position of the organization, another generation, or a time that was taken back.
   */
  readonly latest: (org: string, position: ReadPosition) => ReadPosition | undefined
  /** Returns the generation that was live when this process read last. */
  readonly liveBefore: () => Generation | undefined
  /** Reads the document of this generation again before the next request: it may be another one of the same name. */
  readonly forget: (generation: Generation) => void
}
export type DocumentsOf = (generation: Generation) => readonly DocumentName[]
/** The positions of the live generation, and the name of the generation that is being built. */
export type ServedPositions = {
  readonly generation: Generation
  readonly building: string | null
  /** By partition; undefined if `readAt` would refuse it. */
  readonly partitions: readonly (PartitionPosition | undefined)[]
  /** Why a partition is refused: the reason of the refusal. */
  readonly notServed: ReadonlyMap<number, string>
}
type ReadAt = { readonly position: ReadPosition; readonly documents: readonly (DocumentSlice | undefined)[] }

type PartitionPosition = Pick<ReadPosition, 'publishedTo' | 'time' | 'takenBack'>
/** The highest position and the latest time that this process has read of a partition, and the generation of each. */
type Seen = PartitionPosition & { readonly positionFrom: string; readonly timeFrom: Pick<Generation, 'name' | 'id'> }
const NOTHING_SEEN: Seen = { publishedTo: -1, time: 0, takenBack: 0, positionFrom: '', timeFrom: { name: '', id: '' } }

/**
 * Creates the reader of positions.
 * @param prefix of all index names
 * @param later timers for the pauses while a new live generation catches up
 * @param only for commands: a generation to read in place of the live one
 */
export const createPositionReader = (prefix: string, multiGet: ScopedMultiGet, later: Schedule, only?: string) => {
  const control = (id: string): DocumentName => ({ ...controlAddress(prefix, id), form: 'small' })
  const generations = new Map<string, Generation>()
  const times = createTimesCache(later)
  const seen = new Map<string, Seen>()
  let live: Generation | undefined

  const read = async (names: readonly DocumentName[], reading: Reading) =>
    sliceEachOf(await multiGet(names, reading), names)

  /** Reads positions of a generation, the document of all times if it is due, and then other documents. */
  const readWithTimes = async (
    generation: Generation,
    partitions: readonly number[],
    names: readonly DocumentName[],
    reading: Reading,
  ) => {
    // The document of all times, at most every 250 ms: a position that stands still has its time there.
    const due = times.due(generation)
    const ids = [...partitions.map(partition => positionId(generation.name, partition)), ...(due ? [due.id] : [])]
    const each = await read([...ids.map(control), ...names], reading)
    const found = each.slice(0, ids.length).map(requireReadable)
    due?.remember(found[partitions.length])
    /** @throws Refusal if the position is missing, or documents before it may be */
    const positionOf = (partition: number): PartitionPosition =>
      asPosition(found[partitions.indexOf(partition)], position =>
        times.withLatestTime(generation, partition, position),
      )
    return { positionOf, others: each.slice(ids.length) }
  }

  const seenOf = (generation: Generation, partition: number): Seen =>
    seen.get(positionKeyOf(generation, partition)) ?? NOTHING_SEEN

  const generationNamed = async (name: string, reading: Reading): Promise<Generation> => {
    const known = generations.get(name)
    if (known) return known
    const [document] = await read([control(generationId(name))], reading)
    const generation = asGeneration(prefix, name, requireReadable(document))
    generations.set(name, generation)
    return generation
  }

  const readLive = async (reading: Reading): Promise<Live> => {
    const [document] = await read([control(LIVE_ID)], reading)
    return asLive(requireReadable(document), only)
  }

  const liveGeneration = async (reading: Reading): Promise<Generation> =>
    generationNamed((await readLive(reading)).name, reading)

  /**
   * Remembers a position that was read, and returns it with the time to show. Other requests may have read later
   * positions meanwhile. The latest one is remembered. The answer to this request has the position that it read.
   * @param seenBefore what this process had read when the request began
   * @throws Refusal if the position is behind it
   */
  const remember = (
    generation: Generation,
    partition: number,
    seenBefore: Seen,
    published: PartitionPosition,
  ): PartitionPosition => {
    if (published.publishedTo < seenBefore.publishedTo) throw unavailable('position_went_back')
    const timeToShow = laterTime(seenBefore, { ...published, timeFrom: generation })
    const seenNow = seenOf(generation, partition)
    const { time, takenBack, timeFrom } = laterTime(seenNow, timeToShow)
    const isFurther = published.publishedTo >= seenNow.publishedTo
    const { publishedTo, positionFrom } = isFurther ? { ...published, positionFrom: generation.id } : seenNow
    seen.set(positionKeyOf(generation, partition), { publishedTo, positionFrom, time, takenBack, timeFrom })
    return { publishedTo: published.publishedTo, time: timeToShow.time, takenBack: timeToShow.takenBack }
  }

  const readAt: PositionReader['readAt'] = async (scope, documents, freshness) => {
    let generation = live ?? (await liveGeneration(scope))
    for (let swaps = 0, polls = 0; ; ) {
      const partition = partitionOf(scope.org, generation.partitions)
      const seenBefore = seenOf(generation, partition)
      const names = documents(generation)

      // HAZARD: no document is older than the position, because of `mustReadAgain` and four places: the order of names
      // in this multi-get (position, live document, `names`); the one shard of the control index, which reads in this
      // order; `preference=published` in search-client.ts: no other copy of the shard answers; and `together` in
      // batch-multi-gets.ts, which keeps the order of each request.
      const { positionOf, others } = await readWithTimes(generation, [partition], [control(LIVE_ID), ...names], scope)
      const [liveDocument, ...found] = others
      const nowLive = asLive(requireReadable(liveDocument), only)
      if (nowLive.name !== generation.name) {
        if (swaps++ > 0) throw unavailable('live_generation_changes')
        generation = await generationNamed(nowLive.name, scope)
        continue
      }
      live = generation
      const published = positionOf(partition)
      const isBelowMinimum = published.publishedTo < minPositionOf(nowLive, partition)
      if ((isBelowMinimum || isLagging(generation, seenBefore, published)) && polls++ < SWAP_POLLS_MAX) {
        await pause(later, scope)
        continue
      }
      // Another process may have shown a later position of the previous generation.
      if (isBelowMinimum) throw unavailable('position_went_back')
      const position = { generation, ...remember(generation, partition, seenBefore, published) }
      // A multi-get reads different shards in any order. A document may be older than the position if the position has
      // moved since this process last read it, or belongs to another generation. Then the documents are read again.
      const hasMoved = published.publishedTo !== seenBefore.publishedTo || seenBefore.positionFrom !== generation.id
      const mustReadAgain = hasMoved && freshness === 'at-position' && names.length > 0
      return { position, documents: (mustReadAgain ? await read(names, scope) : found).map(requireReadable) }
    }
  }

  const readAll = async (generation: Generation, reading: Reading): Promise<PartitionPosition[]> => {
    const partitions = partitionsOf(generation)
    for (let polls = 0; ; polls++) {
      const allSeen = partitions.map(partition => seenOf(generation, partition))
      const { positionOf } = await readWithTimes(generation, partitions, [], reading)
      const positions = allSeen.map((before, partition) => ({ before, published: positionOf(partition) }))
      const isBehind = positions.some(({ before, published }) => isLagging(generation, before, published))
      if (!isBehind || polls >= SWAP_POLLS_MAX)
        return positions.map(({ before, published }, partition) => remember(generation, partition, before, published))
      await pause(later, reading)
    }
  }

  const oldestTime: PositionReader['oldestTime'] = async (generation, reading) =>
    Math.min(...(await readAll(generation, reading)).map(({ time }) => time))

  const readServedPositions: PositionReader['readServedPositions'] = async signal => {
    const reading = readingOfProcess(signal)
    const generation = live ?? (await liveGeneration(reading))
    const partitions = partitionsOf(generation)
    const allSeen = partitions.map(partition => seenOf(generation, partition))
    const { positionOf, others } = await readWithTimes(generation, partitions, [control(LIVE_ID)], reading)
    const nowLive = asLive(requireReadable(others[0]), only)
    // The positions of the new live generation are read next time.
    if (nowLive.name !== generation.name) {
      live = await generationNamed(nowLive.name, reading)
      return { generation: live, building: nowLive.building, partitions: [], notServed: new Map() }
    }
    live = generation
    const notServed = new Map<number, string>()
    const served = partitions.map(partition => {
      try {
        const published = positionOf(partition)
        if (published.publishedTo < minPositionOf(nowLive, partition)) throw unavailable('position_went_back')
        return remember(generation, partition, allSeen[partition] ?? NOTHING_SEEN, published)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        notServed.set(partition, error.reason ?? error.code)
        return undefined
      }
    })
    return { generation, building: nowLive.building, partitions: served, notServed }
  }

  const latest: PositionReader['latest'] = (org, position) => {
    const { generation, publishedTo } = position
    const seenNow = seenOf(generation, partitionOf(org, generation.partitions))
    const { time, takenBack } = laterTime(seenNow, { ...position, timeFrom: generation })
    const isSame = live?.id === generation.id && takenBack === position.takenBack
    return isSame && seenNow.publishedTo <= publishedTo ? { ...position, time } : undefined
  }

  const forget: PositionReader['forget'] = ({ id, name }) => {
    // A request that began before may have put it back since, beside the new one of its name.
    if (live?.id === id) live = undefined
    if (generations.get(name)?.id === id) generations.delete(name)
  }

  const reads = { readAt, oldestTime, readServedPositions }
  return { ...reads, latest, liveBefore: () => live, forget } satisfies PositionReader
}

type Time = Pick<Seen, 'time' | 'takenBack' | 'timeFrom'>

/**
 * Returns the later time. In one generation a higher `takenBack` wins: the projector took the other time back. A copy
 * that was adopted has the name of its generation, other indices and a higher `takenBack`. One that was made anew has a
 * lower one.
 */
const laterTime = (known: Time, read: Time): Time => {
  if (known.timeFrom.id === read.timeFrom.id && known.takenBack > read.takenBack) return known
  if (known.timeFrom.name === read.timeFrom.name && known.takenBack < read.takenBack) return read
  return { ...read, time: Math.max(known.time, read.time) }
}

/** Returns the least position of the live generation that may be shown. */
const minPositionOf = ({ minPositions }: Live, partition: number): number =>
  minPositions === null ? Number.POSITIVE_INFINITY : (minPositions?.[partition] ?? 0)

/** Whether a new live generation is still behind what was read of the previous one. That lasts milliseconds. */
const isLagging = ({ id }: Generation, seenBefore: Seen, published: PartitionPosition): boolean =>
  published.publishedTo < seenBefore.publishedTo && seenBefore.positionFrom !== id

const pause = (later: Schedule, { signal }: Reading): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const cancel = later(SWAP_POLL_INTERVAL, resolve)
  return waitOrAbort(promise, signal).finally(cancel)
}

/**
 * Generations of one topic share the same offsets, so their positions are compared. Those of other topics are not, also
 * of one with the same name that was made anew: its positions may never reach those of the former topic.
 */
const positionKeyOf = ({ source, log }: Generation, partition: number): string => `${source}/${log}/${partition}`

const asLive = (document: DocumentSlice | undefined, only: string | undefined): Live => {
  if (only !== undefined) return { name: only, minPositions: undefined, building: null }
  const body = document && smallDocument<LiveDocument>(document).body
  if (typeof body?.generation !== 'string') throw unavailable('no_live_generation')
  const { generation: name, floor: minPositions, building = null } = withPlainNames(body)
  return { name, minPositions, building }
}

const asGeneration = (prefix: string, name: string, document: DocumentSlice | undefined): Generation => {
  const body = document && smallDocument<GenerationDocument>(document).body
  if (!body || body.generation !== name || !(Number.isSafeInteger(body.partitions) && body.partitions > 0)) {
    throw unavailable('no_generation')
  }
  const { cluster_id, topic, topic_id = '', partitions, rules_version: rules } = body
  const source = `${cluster_id}/${topic}/${partitions}`
  const [id, log] = [generationIdOf(name, body.indices), `${cluster_id}/${topic_id}`]
  return { name, id, log, source, partitions, rules, layout: layoutOf(prefix, body) }
}

/** Identifies a generation by the indices that were recorded for it. */
export const generationIdOf = (name: string, indices: GenerationDocument['body']['indices']): string => {
  const ids = Object.values(indices ?? {}).sort()
  return `${name}-${hash('sha256', ids.join(), 'base64url').slice(0, 16)}`
}

/**
 * After a restore the projector reads the topic again: until `serve_from` documents may be old or missing. While a
 * command removes documents that no log has, others are missing for a moment.
 */
export const isServed = ({ position, serve_from = 0, removing }: PositionDocument['body']): boolean =>
  position >= serve_from && !removing

const partitionsOf = ({ partitions }: Generation): number[] => Array.from({ length: partitions }, (_, index) => index)

/** @param withLatestTime returns the position with a later time, if one is known */
const asPosition = (
  document: DocumentSlice | undefined,
  withLatestTime: (position: PositionDocument['body']) => PositionDocument['body'],
): PartitionPosition => {
  const body = document && smallDocument<PositionDocument>(document).body
  if (!body || !Number.isSafeInteger(body.position) || body.position < 0 || !Number.isSafeInteger(body.time)) {
    throw unavailable('no_position')
  }
  if (!isServed(body)) throw unavailable('not_read_again_yet')
  const { position, time, taken_back = 0 } = withLatestTime(body)
  return { publishedTo: position, time, takenBack: taken_back }
}
