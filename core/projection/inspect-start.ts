/**
 * The checks of a start without its changes, for `npm run doctor`. In: the topics, Kafka and Elasticsearch. Out: the
 * generations, and the settings of indices that a start would put back or tell.
 * Promises: nothing changes; the functions are those of a start (`start.ts`) and of a stream before its first record.
 * Can go wrong: each StopError with which a projector would end now.
 */
import type { Stream } from '../../schemas/events.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  FIRST_GENERATION,
  templateNameOf,
} from '../../schemas/stored/documents.ts'
import { RULES_VERSION } from '../ledger/index.ts'
import {
  assertNotTruncated,
  assertOnePartition,
  assertOwnGroup,
  describeSource,
  type Ends,
  fetchEnds,
  type GenerationBody,
  type SourceAdmin,
} from '../log/index.ts'
import {
  assertControlNotLost,
  assertLiveNotLost,
  controlDefinition,
  createPublishedTimes,
  type Generations,
  indicesOf,
  inspectGeneration,
  inspectIndices,
  installationOf,
  listIndices,
  openPublishedPosition,
  type PrepareSteps,
  putTemplate,
  readGeneration,
  readGenerations,
  rulesChanged,
  type Send,
  type ToldSetting,
} from '../store/index.ts'

export type InspectSteps = Pick<PrepareSteps, 'request' | 'prefix' | 'rulesVersion'> & {
  readonly send: Send
  readonly admin: SourceAdmin
  /** Names of the topics. */
  readonly topics: Readonly<Record<Stream, string>>
  /** `KAFKA_GROUP_ID`. */
  readonly groupId: string
}

/** `generations` is undefined if nothing is projected yet: then a start would be the first one. */
type Common = { readonly generations: Generations | undefined; readonly told: readonly ToldSetting[] }

/** Inspects what all generations share: template, control index, live generation. */
export const inspectCommon = async (steps: InspectSteps): Promise<Common> => {
  const { request, prefix } = steps
  await putTemplate({ method: 'POST', path: `/_index_template/_simulate/${templateNameOf(prefix)}` }, steps)
  const names = [...(await listIndices(steps)).keys()]
  const [control, definition] = controlDefinition(prefix)
  if (!names.includes(control)) {
    assertControlNotLost(names, prefix)
    return { generations: undefined, told: [] }
  }
  const told = await inspectIndices({ [control]: definition }, request)
  await assertLiveNotLost(names, steps)
  const generations = await readGenerations(steps)
  if (generations !== undefined) return { generations, told }
  // An earlier first start was interrupted, or an index of ours has been made by somebody else.
  const ofFirst = [
    ...Object.entries(indicesOf(FIRST_GENERATION, true, { prefix, shards: 1 })),
    ...Object.entries(indicesOf(API_KEYS_GENERATION, false, { prefix, shards: 1 })),
  ].filter(([name]) => names.includes(name))
  return { generations, told: [...told, ...(await inspectIndices(Object.fromEntries(ofFirst), request))] }
}

type Inspected = { readonly identity: GenerationBody; readonly told: readonly ToldSetting[] }

/**
 * Inspects one generation, of events or of API keys: its topic, its indices, its positions, its consumer group.
 * @returns undefined for a generation of other rules, which another program projects
 */
export const inspectStream = async (
  generation: string,
  stream: Stream,
  steps: InspectSteps,
): Promise<Inspected | undefined> => {
  const { admin, topics, prefix, rulesVersion = RULES_VERSION } = steps
  const source = await describeSource(admin, topics[stream])
  const ends = await fetchEnds(admin, topics[stream])
  if (stream === 'api-keys') assertOnePartition(topics[stream], source.partitions)
  else {
    const found = await readGeneration(generation, steps)
    if (found !== undefined && found.rules_version !== rulesVersion) return undefined
  }
  const inspected = await inspectGeneration(generation, source, stream === 'events', { ...steps, shards: 1 })
  await inspectPositions(inspected.identity, ends, steps)
  const ours = await installationOf(prefix, steps)
  await assertOwnGroup(admin, `${steps.groupId}-${generation}`, topics[stream], ours)
  return inspected
}

/** Without a generation of our rules there is nothing to do. @throws StopError `rules_changed` */
export const assertRulesKnown = async (
  { live }: Generations,
  steps: Pick<InspectSteps, 'request' | 'prefix' | 'rulesVersion'>,
): Promise<void> => {
  const found = await readGeneration(live, steps)
  if (found !== undefined) throw rulesChanged(found, steps.rulesVersion ?? RULES_VERSION)
}

/** @throws StopError `index_missing` without a position, `records_deleted` if the log ends before one */
const inspectPositions = async (
  { generation, topic, partitions }: GenerationBody,
  ends: Ends,
  { request, prefix }: InspectSteps,
): Promise<void> => {
  const index = controlIndexOf(prefix)
  const times = createPublishedTimes(index, generation, request)
  const replace = () => Promise.reject(new Error('an inspection writes nothing'))
  for (let partition = 0; partition < partitions; partition++) {
    const published = await openPublishedPosition(partition, { index, generation, request, replace, times })
    assertNotTruncated(topic, partition, published.current().position, ends)
  }
}
