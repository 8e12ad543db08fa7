/**
 * The checks of a start without its changes, for `commission doctor`. In: the topics, Kafka and Elasticsearch. Out: the
 * generations, and the settings of indices that a start would put back or tell.
 * Promises: nothing changes; the functions are those of a start (`start.ts`) and of a stream before its first record.
 * Can go wrong: each StopError with which a projector would end now.
 */
import type { Stream } from '../../schemas/events.ts'
import { API_KEYS_GENERATION, controlIndexOf, FIRST_GENERATION } from '../../schemas/stored/documents.ts'
import { RULES_VERSION } from '../ledger/index.ts'
import {
  assertNotTruncated,
  assertOnePartition,
  assertOwnGroup,
  assertSameSource,
  createLastRecordReader,
  describeSource,
  fetchEnds,
  type GenerationBody,
  type OpenLog,
  type SourceAdmin,
} from '../log/index.ts'
import { StopError } from '../runtime/index.ts'
import {
  assertControlNotLost,
  assertLiveNotLost,
  assertNoAutoCreate,
  assertSeesAll,
  controlDefinition,
  createPublishedTimes,
  type Generations,
  indicesOf,
  inspectGeneration,
  inspectIndices,
  inspectTemplate,
  installationOf,
  layoutOfNew,
  listIndices,
  openPublishedPosition,
  type PrepareSteps,
  type PublishedState,
  putTemplate,
  readGeneration,
  readGenerations,
  readWritten,
  rulesChanged,
  type Send,
  type ToldSetting,
  type UnreadOfAutoCreate,
} from '../store/index.ts'
import { assertHasWritten, writtenChanged } from './stream/assign.ts'

export type InspectSteps = Pick<PrepareSteps, 'request' | 'prefix' | 'rulesVersion'> & {
  readonly send: Send
  readonly admin: SourceAdmin
  /** Names of the topics. */
  readonly topics: Readonly<Record<Stream, string>>
  /** `KAFKA_GROUP_ID`. */
  readonly groupId: string
  /** Opens connections for reads without a group. They end with the signal. */
  readonly openLog: OpenLog
  readonly signal: AbortSignal
}

/** `generations` is undefined if nothing is projected yet: then a start would be the first one. */
type Common = {
  readonly generations: Generations | undefined
  readonly told: readonly ToldSetting[]
  /** The check of index templates of others could not read this. */
  readonly unread: UnreadOfAutoCreate | undefined
  /** Why Elasticsearch could create an index of ours now. A start mends it. */
  readonly unguarded?: string | undefined
}

/** Inspects what all generations share: template, control index, live generation. */
export const inspectCommon = async (steps: InspectSteps): Promise<Common> => {
  const { request, prefix } = steps
  await putTemplate(steps, true)
  const ofNew = layoutOfNew({ shards: 1 })
  const unread = await assertNoAutoCreate(steps, ofNew)
  const names = [...(await listIndices(steps)).keys()]
  const [control, definition] = controlDefinition(prefix)
  await assertSeesAll([control], { request })
  if (!names.includes(control)) {
    assertControlNotLost(names, prefix)
    return { generations: undefined, told: [], unread }
  }
  const told = await inspectIndices({ [control]: definition }, request)
  await assertLiveNotLost(names, steps)
  const generations = await readGenerations(steps)
  const unguarded = await inspectTemplate(steps, ofNew)
  if (generations !== undefined) return { generations, told, unread, unguarded }
  // An earlier first start was interrupted, or an index of ours has been made by somebody else.
  const ofFirst = [
    ...Object.entries(indicesOf({ generation: FIRST_GENERATION, ...ofNew }, { prefix, shards: 1 })),
    ...Object.entries(indicesOf({ generation: API_KEYS_GENERATION }, { prefix, shards: 1 })),
  ].filter(([name]) => names.includes(name))
  const ofOthers = await inspectIndices(Object.fromEntries(ofFirst), request)
  return { generations, told: [...told, ...ofOthers], unread, unguarded }
}

type Inspected = { readonly identity: GenerationBody; readonly told: readonly ToldSetting[] }

/**
 * Inspects one generation, of events or of API keys: its topic, its indices, its positions, its consumer group.
 * @returns undefined for a generation of other rules or of another topic of events, which another projector projects
 */
export const inspectStream = async (
  generation: string,
  stream: Stream,
  steps: InspectSteps,
): Promise<Inspected | undefined> => {
  const { admin, topics, prefix, rulesVersion = RULES_VERSION } = steps
  const source = await describeSource(admin, topics[stream])
  await fetchEnds(admin, topics[stream])
  if (stream === 'api-keys') assertOnePartition(topics[stream], source.partitions)
  else {
    const found = await readGeneration(generation, steps)
    const isOurs = found?.rules_version === rulesVersion && found.topic === source.topic
    if (found !== undefined && !isOurs) return undefined
  }
  const inspected = await inspectGeneration(generation, source, { ...steps, shards: 1 })
  await inspectPositions(inspected.identity, steps)
  const ours = await installationOf(prefix, steps)
  await assertOwnGroup(admin, `${steps.groupId}-${generation}`, topics[stream], ours)
  return inspected
}

/** Without a generation of our rules there is nothing to do. @throws StopError `rules_changed`, `source_changed` */
export const assertRulesKnown = async (
  { live }: Generations,
  steps: Pick<InspectSteps, 'request' | 'prefix' | 'rulesVersion' | 'admin' | 'topics'>,
): Promise<void> => {
  const found = await readGeneration(live, steps)
  if (found !== undefined) assertSameSource(found, await describeSource(steps.admin, steps.topics.events))
  if (found !== undefined) throw rulesChanged(found, steps.rulesVersion ?? RULES_VERSION)
}

/**
 * Compares the last known record of each partition, and the last one whose documents are written, with the log.
 * @throws StopError `index_missing` without a position, `records_deleted` if the log ends before one, `source_changed`
 */
const inspectPositions = async (
  identity: GenerationBody,
  { request, prefix, admin, openLog, signal }: InspectSteps,
): Promise<void> => {
  const { generation, topic, partitions } = identity
  const index = controlIndexOf(prefix)
  const times = createPublishedTimes(index, generation, request)
  const replace = () => Promise.reject(new Error('an inspection writes nothing'))
  const known: Pick<PublishedState, 'position' | 'last'>[] = []
  const written: typeof known = []
  for (let partition = 0; partition < partitions; partition++) {
    const published = await openPublishedPosition(partition, { index, generation, request, replace, times })
    const { position, last } = published.current()
    known.push({ position, last })
    const found = await readWritten(partition, position, { identity, controlIndex: index, request })
    written.push({ position: 0, last: found?.written ?? null })
  }
  // After the positions: a projector may publish meanwhile.
  const ends = await fetchEnds(admin, topic)
  for (const [partition, { position }] of known.entries()) {
    assertNotTruncated(topic, partition, position, ends)
    const last = written[partition]?.last
    if (last) assertHasWritten(topic, partition, last.offset, ends)
  }
  const lastRecords = createLastRecordReader(identity, openLog, signal)
  try {
    await lastRecords.verify(known)
    await lastRecords.verify(written).catch(asWrittenChanged)
  } finally {
    await lastRecords.close()
  }
}

/** The same refusal, with the advice of a start. */
const asWrittenChanged = (error: unknown): never => {
  if (!(error instanceof StopError) || error.code !== 'source_changed') throw error
  const { topic, partition, offset } = error.where
  throw writtenChanged(String(topic), Number(partition), Number(offset))
}
