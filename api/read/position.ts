/**
 * In: an organization, and its documents that a request reads by name. Out: the position up to which the request may
 *   see, and these documents.
 * Promises: a document is read no earlier than the position. Within this process no position goes back, and no time
 *   except one that the projector took back.
 * Can go wrong: a control document is missing, or a position went back → `unavailable`, never an empty organization.
 *
 * Only this file defines what is visible: a record's `seq` is the offset of the event that made it, `until_seq` that of
 * the event that replaced it, and everything at an offset below `publishedTo` is searchable.
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
import { unavailable } from '../failures.ts'
import { SWAP_POLL_INTERVAL, SWAP_POLLS_MAX } from '../limits.ts'
import { type Schedule, waitOrAbort } from '../time-limits.ts'

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

/** `floor`: the positions that readers may have seen of the previous generation; undefined: none, null: unknown yet. */
type Live = { readonly name: string; readonly floor: readonly number[] | null | undefined }

/** Whether a record was made before `publishedTo`, replaced since or not. */
export const isVisible = (seq: number, position: ReadPosition): boolean => seq < position.publishedTo

/** Whether a reader at this position may know that a record is replaced. */
export const isReplaced = (untilSeq: number, position: ReadPosition): boolean => untilSeq < position.publishedTo

/** The same two rules as ranges of a search. */
export const visibleRange = (position: ReadPosition) => ({ lt: position.publishedTo })
export const notReplacedRange = (position: ReadPosition) => ({ gte: position.publishedTo })

/**
 * How documents are read with the position. `at-position`: no earlier than it. `known-before`: the client knows them
 * from an earlier answer, so they existed before this request began.
 */
export type Freshness = 'at-position' | 'known-before'

export type PositionReader = {
  readonly readAt: (org: string, documents: DocumentsOf, freshness: Freshness, signal: AbortSignal) => Promise<ReadAt>
  /** Returns the oldest time of all partitions of the generation. */
  readonly oldestTime: (generation: Generation, signal: AbortSignal) => Promise<number>
  /** Rejects with `unavailable` unless a generation is live and has a position for every partition. */
  readonly readLivePositions: (signal: AbortSignal) => Promise<LivePositions>
}
/** The positions of the live generation, by partition. */
export type LivePositions = { readonly generation: Generation; readonly partitions: readonly Reached[] }
export type DocumentsOf = (generation: Generation) => readonly DocumentName[]
export type ReadAt = { readonly position: ReadPosition; readonly documents: readonly (DocumentSlice | undefined)[] }

export type Reached = Pick<ReadPosition, 'publishedTo' | 'time' | 'takenBack'>
/** The furthest position read of a partition. `by`: the generation of the position; `timeOf`: that of the time. */
type Furthest = Reached & { readonly by: string; readonly timeOf: string }
const NOTHING_REACHED: Furthest = { publishedTo: -1, time: 0, takenBack: 0, by: '', timeOf: '' }

export const createPositionReader = (prefix: string, multiGet: MultiGet, later: Schedule): PositionReader => {
  const index = controlIndexOf(prefix)
  const control = (id: string): DocumentName => ({ index, id, form: 'small' })
  const generations = new Map<string, Generation>()
  const reached = new Map<string, Furthest>()
  let live: Generation | undefined

  const read = async (names: readonly DocumentName[], signal: AbortSignal) =>
    sliceMultiGet(await multiGet(names, signal), names)

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
    return generationNamed(asLive(document).name, signal)
  }

  /** Records and returns what was read. @throws Refusal if this process had read a later position before the request */
  const reach = (generation: Generation, partition: number, before: Furthest, now: Reached): Reached => {
    if (now.publishedTo < before.publishedTo) throw unavailable('position_went_back')
    const positionKey = positionKeyOf(generation, partition)
    const highest = reached.get(positionKey) ?? NOTHING_REACHED
    const shown = laterTime(before, { ...now, timeOf: generation.name })
    const isFurther = now.publishedTo >= highest.publishedTo
    reached.set(positionKey, {
      publishedTo: isFurther ? now.publishedTo : highest.publishedTo,
      ...laterTime(highest, shown),
      by: isFurther ? generation.name : highest.by,
    })
    return { publishedTo: now.publishedTo, time: shown.time, takenBack: shown.takenBack }
  }

  const readAt: PositionReader['readAt'] = async (org, documents, freshness, signal) => {
    let generation = live ?? (await liveGeneration(signal))
    let waits = 0
    for (let attempt = 0; attempt < 2; ) {
      const partition = partitionOf(org, generation.partitions)
      const before = reached.get(positionKeyOf(generation, partition)) ?? NOTHING_REACHED
      const names = documents(generation)
      // This order matters: documents of one shard are read one after the other. A generation that is live after its
      // position was read was also live before.
      const [positionNow, liveNow, ...found] = await read(
        [control(positionId(generation.name, partition)), control(LIVE_ID), ...names],
        signal,
      )
      const { name, floor } = asLive(liveNow)
      if (name !== generation.name) {
        generation = await generationNamed(name, signal)
        attempt++
        continue
      }
      live = generation
      const published = asPosition(positionNow)
      const isBelowFloor =
        published.publishedTo < (floor === null ? Number.POSITIVE_INFINITY : (floor?.[partition] ?? 0))
      if ((isBelowFloor || isLagging(generation, before, published)) && waits++ < SWAP_POLLS_MAX) {
        await pause(later, signal)
        continue
      }
      // Another process may have shown a later position of the previous generation.
      if (isBelowFloor) throw unavailable('position_went_back')
      const now = reach(generation, partition, before, published)
      const position = { generation, ...now }
      // A multi-get reads different shards in any order. If the position has moved since this process last read it, or
      // is another generation's, a document may be older than the position: it is read again.
      const moved = now.publishedTo !== before.publishedTo || before.by !== generation.name
      const again = moved && freshness === 'at-position' && names.length > 0
      return { position, documents: again ? await read(names, signal) : found }
    }
    throw unavailable('live_generation_changes')
  }

  const readAll = async (generation: Generation, signal: AbortSignal): Promise<Reached[]> => {
    const partitions = Array.from({ length: generation.partitions }, (_, partition) => partition)
    const names = partitions.map(partition => control(positionId(generation.name, partition)))
    for (let waits = 0; ; waits++) {
      const before = partitions.map(partition => reached.get(positionKeyOf(generation, partition)) ?? NOTHING_REACHED)
      const published = (await read(names, signal)).map(asPosition)
      const pairs = partitions.map(partition => {
        return [before[partition] ?? NOTHING_REACHED, published[partition] ?? NOTHING_REACHED] as const
      })
      if (waits < SWAP_POLLS_MAX && pairs.some(([was, now]) => isLagging(generation, was, now)))
        await pause(later, signal)
      else return pairs.map(([was, now], partition) => reach(generation, partition, was, now))
    }
  }

  const oldestTime: PositionReader['oldestTime'] = async (generation, signal) =>
    Math.min(...(await readAll(generation, signal)).map(({ time }) => time))

  const readLivePositions: PositionReader['readLivePositions'] = async signal => {
    const generation = await liveGeneration(signal)
    return { generation, partitions: await readAll(generation, signal) }
  }

  return { readAt, oldestTime, readLivePositions }
}

type Time = Pick<Furthest, 'time' | 'takenBack' | 'timeOf'>

/** Returns the later time. In one generation a higher `takenBack` wins: the projector took the other time back. */
const laterTime = (a: Time, b: Time): Time => {
  const later = b.time > a.time ? b : a
  const { time } = a.timeOf !== b.timeOf || a.takenBack === b.takenBack ? later : b.takenBack > a.takenBack ? b : a
  const { takenBack, timeOf } = a.timeOf === b.timeOf && a.takenBack > b.takenBack ? a : b
  return { time, takenBack, timeOf }
}

/** Whether a new live generation is still behind what was read of the previous one. That lasts milliseconds. */
const isLagging = ({ name }: Generation, before: Furthest, now: Reached): boolean =>
  now.publishedTo < before.publishedTo && before.by !== name

const pause = (later: Schedule, signal: AbortSignal): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const cancel = later(SWAP_POLL_INTERVAL, resolve)
  return waitOrAbort(promise, signal).finally(cancel)
}

/** Generations of one topic share the same offsets, so their positions are compared; those of other topics are not. */
const positionKeyOf = (generation: Generation, partition: number): string => `${generation.source}/${partition}`

const asLive = (document: DocumentSlice | undefined): Live => {
  const body = document && smallDocument<LiveDocument>(document).body
  if (typeof body?.generation !== 'string') throw unavailable('no_live_generation')
  return { name: body.generation, floor: body.floor }
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

const asPosition = (document: DocumentSlice | undefined): Reached => {
  const body = document && smallDocument<PositionDocument>(document).body
  if (!body || !Number.isSafeInteger(body.position) || body.position < 0 || !Number.isSafeInteger(body.time)) {
    throw unavailable('no_position')
  }
  // The projector reads restored indices again from the first record. Until then documents may be old or missing.
  if (body.position < (body.serve_from ?? 0)) throw unavailable('not_read_again_yet')
  return { publishedTo: body.position, time: body.time, takenBack: body.taken_back ?? 0 }
}
