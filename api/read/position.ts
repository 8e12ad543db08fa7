/**
 * In: an organization, and its documents that a request reads by name. Out: the position up to which the request may
 *   see, and these documents.
 * Promises: a document is read no earlier than the position. Within this process no position goes back, and no time
 *   except one that the projector took back.
 * Can go wrong: a control document is missing, or a position went back → `unavailable`, never an empty organization.
 *
 * Only this file defines which records are visible. `seq` of a record is the offset of the event that made it;
 * `until_seq` is the offset of the event that replaced it. Everything at an offset below `publishedTo` is searchable.
 */

import { partitionOf } from '../../schemas/partition.ts'
import {
  controlIndexOf,
  type GenerationDocument,
  generationId,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
} from '../../schemas/stored/documents.ts'
import type { MultiGet } from '../elasticsearch/client.ts'
import {
  type DocumentName,
  type DocumentSlice,
  sliceMultiGet,
  smallDocument,
} from '../elasticsearch/slice-documents.ts'
import { Refusal, unavailable } from '../failures.ts'
import { SWAP_POLL_INTERVAL, SWAP_POLLS_MAX } from '../limits.ts'
import { type Schedule, waitOrAbort } from '../time-limits.ts'
import { createKeptTimes } from './kept-times.ts'

/** A partition's position when a request read it. `time`: milliseconds of the projector's clock. */
export type ReadPosition = {
  readonly generation: Generation
  readonly publishedTo: number
  readonly time: number
  /** How often a time of the partition was taken back. */
  readonly takenBack: number
}
export type Generation = {
  readonly name: string
  readonly source: string
  readonly partitions: number
  readonly rules: number
}

/**
 * The live document. `minPositions`: by partition, the positions up to which readers may have seen the previous
 * generation; undefined if there are none, null if they are not known yet.
 */
type Live = { readonly name: string; readonly minPositions: readonly number[] | null | undefined }

/** Whether a record was made before `publishedTo`, replaced since or not. */
export const isVisible = (seq: number, position: ReadPosition): boolean => seq < position.publishedTo

/** Whether a reader at this position may know that a record is replaced. */
export const isReplaced = (untilSeq: number, position: ReadPosition): boolean => untilSeq < position.publishedTo

/** The first rule as a range of `seq` in a search. */
export const visibleRange = (position: ReadPosition) => ({ lt: position.publishedTo })
/** The opposite of the second rule, as a range of `until_seq` in a search. */
export const notReplacedRange = (position: ReadPosition) => ({ gte: position.publishedTo })

/**
 * How documents are read with the position. `at-position`: no earlier than it. `known-before`: the client knows them
 * from an earlier answer, so they existed before this request began.
 */
type Freshness = 'at-position' | 'known-before'

export type PositionReader = {
  readonly readAt: (org: string, documents: DocumentsOf, freshness: Freshness, signal: AbortSignal) => Promise<ReadAt>
  /** Returns the oldest time of all partitions of the generation. */
  readonly oldestTime: (generation: Generation, signal: AbortSignal) => Promise<number>
  /** Rejects with `unavailable` unless a generation is live and has a position for every partition. */
  readonly readLivePositions: (signal: AbortSignal) => Promise<LivePositions>
  /** The same, without the positions of partitions that are not served. */
  readonly readServedPositions: (signal: AbortSignal) => Promise<ServedPositions>
}
/** The positions of the live generation, by partition. */
export type LivePositions = { readonly generation: Generation; readonly partitions: readonly PartitionPosition[] }
export type DocumentsOf = (generation: Generation) => readonly DocumentName[]
export type ServedPositions = {
  readonly generation: Generation
  readonly partitions: readonly (PartitionPosition | undefined)[]
}
type ReadAt = { readonly position: ReadPosition; readonly documents: readonly (DocumentSlice | undefined)[] }

type PartitionPosition = Pick<ReadPosition, 'publishedTo' | 'time' | 'takenBack'>
/** The furthest position and the latest time that this process has read of a partition, and the generation of each. */
type Furthest = PartitionPosition & { readonly generation: string; readonly timeGeneration: string }
const NOTHING_READ: Furthest = { publishedTo: -1, time: 0, takenBack: 0, generation: '', timeGeneration: '' }

/**
 * Creates the reader of positions.
 * @param prefix of all index names
 * @param later timers for the pauses while a new live generation catches up
 * @param only for commands: a generation to read in place of the live one
 */
export const createPositionReader = (prefix: string, multiGet: MultiGet, later: Schedule, only?: string) => {
  const index = controlIndexOf(prefix)
  const control = (id: string): DocumentName => ({ index, id, form: 'small' })
  const generations = new Map<string, Generation>()
  const times = createKeptTimes(later)
  const furthestRead = new Map<string, Furthest>()
  let live: Generation | undefined

  const read = async (names: readonly DocumentName[], signal: AbortSignal) =>
    sliceMultiGet(await multiGet(names, signal), names)

  /** Reads positions of a generation, with the document of all times if it is due, and other documents. */
  const readWithTimes = async (
    generation: Generation,
    partitions: readonly number[],
    names: readonly DocumentName[],
    signal: AbortSignal,
  ) => {
    const due = times.due(generation.name)
    const ids = [...partitions.map(partition => positionId(generation.name, partition)), ...due]
    const found = await read([...ids.map(control), ...names], signal)
    if (due.length > 0) times.keep(generation.name, found[partitions.length])
    /** @throws Refusal if the position is missing, or documents before it may be */
    const positionOf = (partition: number): PartitionPosition =>
      asPosition(found[partitions.indexOf(partition)], position => times.complete(generation.name, partition, position))
    return { positionOf, others: found.slice(ids.length) }
  }

  const furthestOf = (generation: Generation, partition: number): Furthest =>
    furthestRead.get(positionKeyOf(generation, partition)) ?? NOTHING_READ

  const generationNamed = async (name: string, signal: AbortSignal): Promise<Generation> => {
    const known = generations.get(name)
    if (known) return known
    const [document] = await read([control(generationId(name))], signal)
    const generation = asGeneration(name, document)
    generations.set(name, generation)
    return generation
  }

  const liveGeneration = async (signal: AbortSignal): Promise<Generation> => {
    const [document] = await read([control(LIVE_ID)], signal)
    return generationNamed(asLive(document, only).name, signal)
  }

  /**
   * Remembers a position that was read, and returns it with the time to show.
   * @param seen the furthest position when the request began
   * @throws Refusal if the position is behind it
   */
  const remember = (
    generation: Generation,
    partition: number,
    seen: Furthest,
    published: PartitionPosition,
  ): PartitionPosition => {
    if (published.publishedTo < seen.publishedTo) throw unavailable('position_went_back')
    const furthest = furthestOf(generation, partition)
    const shown = laterTime(seen, { ...published, timeGeneration: generation.name })
    const latest = laterTime(furthest, shown)
    const isFurther = published.publishedTo >= furthest.publishedTo
    furthestRead.set(positionKeyOf(generation, partition), {
      publishedTo: Math.max(published.publishedTo, furthest.publishedTo),
      generation: isFurther ? generation.name : furthest.generation,
      time: latest.time,
      takenBack: latest.takenBack,
      timeGeneration: latest.timeGeneration,
    })
    return { publishedTo: published.publishedTo, time: shown.time, takenBack: shown.takenBack }
  }

  const readAt: PositionReader['readAt'] = async (org, documents, freshness, signal) => {
    let generation = live ?? (await liveGeneration(signal))
    let polls = 0
    for (let attempt = 0; attempt < 2; ) {
      const partition = partitionOf(org, generation.partitions)
      const seen = furthestOf(generation, partition)
      const names = documents(generation)
      // This order matters: documents of one shard are read one after the other. A generation that is live after its
      // position was read was also live before.
      const { positionOf, others } = await readWithTimes(generation, [partition], [control(LIVE_ID), ...names], signal)
      const [liveDocument, ...found] = others
      const nowLive = asLive(liveDocument, only)
      if (nowLive.name !== generation.name) {
        generation = await generationNamed(nowLive.name, signal)
        attempt++
        continue
      }
      live = generation
      const published = positionOf(partition)
      const isBelowMinimum = published.publishedTo < minPositionOf(nowLive, partition)
      if ((isBelowMinimum || isLagging(generation, seen, published)) && polls++ < SWAP_POLLS_MAX) {
        await pause(later, signal)
        continue
      }
      // Another process may have shown a later position of the previous generation.
      if (isBelowMinimum) throw unavailable('position_went_back')
      const position = { generation, ...remember(generation, partition, seen, published) }
      // A multi-get reads different shards in any order. A document may be older than the position if the position has
      // moved since this process last read it, or belongs to another generation. Then the documents are read again.
      const hasMoved = published.publishedTo !== seen.publishedTo || seen.generation !== generation.name
      const mustReadAgain = hasMoved && freshness === 'at-position' && names.length > 0
      return { position, documents: mustReadAgain ? await read(names, signal) : found }
    }
    throw unavailable('live_generation_changes')
  }

  const readAll = async (generation: Generation, signal: AbortSignal): Promise<PartitionPosition[]> => {
    const partitions = partitionsOf(generation)
    for (let polls = 0; ; polls++) {
      const seenBefore = partitions.map(partition => furthestOf(generation, partition))
      const { positionOf } = await readWithTimes(generation, partitions, [], signal)
      const positions = seenBefore.map((seen, partition) => ({ seen, published: positionOf(partition) }))
      const isBehind = positions.some(({ seen, published }) => isLagging(generation, seen, published))
      if (!isBehind || polls >= SWAP_POLLS_MAX)
        return positions.map(({ seen, published }, partition) => remember(generation, partition, seen, published))
      await pause(later, signal)
    }
  }

  const oldestTime: PositionReader['oldestTime'] = async (generation, signal) =>
    Math.min(...(await readAll(generation, signal)).map(({ time }) => time))

  const readLivePositions: PositionReader['readLivePositions'] = async signal => {
    const generation = await liveGeneration(signal)
    return { generation, partitions: await readAll(generation, signal) }
  }

  const readServedPositions: PositionReader['readServedPositions'] = async signal => {
    const generation = live ?? (await liveGeneration(signal))
    const partitions = partitionsOf(generation)
    const seen = partitions.map(partition => furthestOf(generation, partition))
    const { positionOf, others } = await readWithTimes(generation, partitions, [control(LIVE_ID)], signal)
    const { name } = asLive(others[0], only)
    // The positions of the new live generation are read next time.
    if (name !== generation.name) {
      live = await generationNamed(name, signal)
      return { generation: live, partitions: [] }
    }
    live = generation
    const served = partitions.map(partition => {
      try {
        return remember(generation, partition, seen[partition] ?? NOTHING_READ, positionOf(partition))
      } catch (error) {
        if (error instanceof Refusal) return undefined
        throw error
      }
    })
    return { generation, partitions: served }
  }

  return { readAt, oldestTime, readLivePositions, readServedPositions } satisfies PositionReader
}

type Time = Pick<Furthest, 'time' | 'takenBack' | 'timeGeneration'>

/** Returns the later time. In one generation a higher `takenBack` wins: the projector took the other time back. */
const laterTime = (known: Time, read: Time): Time => {
  const isSameGeneration = known.timeGeneration === read.timeGeneration
  if (isSameGeneration && known.takenBack > read.takenBack) return known
  if (isSameGeneration && known.takenBack < read.takenBack) return read
  return { ...read, time: Math.max(known.time, read.time) }
}

/** Returns the least position of the live generation that may be shown. */
const minPositionOf = ({ minPositions }: Live, partition: number): number =>
  minPositions === null ? Number.POSITIVE_INFINITY : (minPositions?.[partition] ?? 0)

/** Whether a new live generation is still behind what was read of the previous one. That lasts milliseconds. */
const isLagging = ({ name }: Generation, seen: Furthest, published: PartitionPosition): boolean =>
  published.publishedTo < seen.publishedTo && seen.generation !== name

const pause = (later: Schedule, signal: AbortSignal): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const cancel = later(SWAP_POLL_INTERVAL, resolve)
  return waitOrAbort(promise, signal).finally(cancel)
}

/** Generations of one topic share the same offsets, so their positions are compared; those of other topics are not. */
const positionKeyOf = (generation: Generation, partition: number): string => `${generation.source}/${partition}`

const asLive = (document: DocumentSlice | undefined, only: string | undefined): Live => {
  if (only !== undefined) return { name: only, minPositions: undefined }
  const body = document && smallDocument<LiveDocument>(document).body
  if (typeof body?.generation !== 'string') throw unavailable('no_live_generation')
  return { name: body.generation, minPositions: body.floor }
}

const asGeneration = (name: string, document: DocumentSlice | undefined): Generation => {
  const body = document && smallDocument<GenerationDocument>(document).body
  if (!body || body.generation !== name || !(Number.isSafeInteger(body.partitions) && body.partitions > 0)) {
    throw unavailable('no_generation')
  }
  return {
    name,
    source: `${body.cluster_id}/${body.topic}/${body.partitions}`,
    partitions: body.partitions,
    rules: body.rules_version,
  }
}

const partitionsOf = ({ partitions }: Generation): number[] => Array.from({ length: partitions }, (_, index) => index)

/** @param complete returns the position with a later time, if one is known */
const asPosition = (
  document: DocumentSlice | undefined,
  complete: (position: PositionDocument['body']) => PositionDocument['body'],
): PartitionPosition => {
  const body = document && smallDocument<PositionDocument>(document).body
  if (!body || !Number.isSafeInteger(body.position) || body.position < 0 || !Number.isSafeInteger(body.time)) {
    throw unavailable('no_position')
  }
  // The projector reads restored indices again from the first record. Until then documents may be old or missing.
  if (body.position < (body.serve_from ?? 0)) throw unavailable('not_read_again_yet')
  const { position, time, taken_back = 0 } = complete(body)
  return { publishedTo: position, time, takenBack: taken_back }
}
