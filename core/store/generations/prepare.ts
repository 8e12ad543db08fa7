/**
 * Startup checks: the indices exist and match this version, and a generation has a position for every partition.
 * Missing indices are created at a first start only. Later, a missing index is refused: an empty index must never look
 * like an empty organization. Two first starts at once agree: each creates or finds everything.
 */
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  FIRST_GENERATION,
  type GenerationDocument,
  generationId,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { controlAddress } from '../../../schemas/stored/layout.ts'
import { storedNameOf } from '../../../schemas/stored/live-names.ts'
import {
  apiKeysIndices,
  commonIndices,
  generationIndices,
  type IndexDefinition,
} from '../../../schemas/stored/mappings.ts'
import { KEY_RULES_VERSION, RULES_VERSION } from '../../ledger/index.ts'
import { assertSameSource, type Ends, type GenerationBody } from '../../log/index.ts'
import { StopError } from '../../runtime/index.ts'
import { type Ask, errorType } from '../elasticsearch/client.ts'
import { getEach, getFromPrimaries } from '../elasticsearch/primary-reads.ts'
import { checkIndex, inspectIndices, type TellSetting, type ToldSetting } from './check-index.ts'
import { assertNoAutoCreate, putTemplate, templatesThatApply } from './index-templates.ts'
import {
  assertSameIndices,
  assertSeesAll,
  generationsAmong,
  listIndices,
  projectedIn,
  readIndexIds,
  readRecordableIds,
} from './indices.ts'
import { knowsKeyRules } from './key-rules.ts'
import { generationMissing, keepIntact, readControl, readGeneration, type TellShards } from './recorded.ts'

export type PrepareSteps = {
  readonly request: Ask
  readonly prefix: string
  readonly shards: number
  /** Replicas of each shard. If absent, as many as the nodes allow, at most one. */
  readonly replicas?: number | undefined
  /** Of new generations (schemas/stored/layout.ts). By default 3. Tests also make older ones. */
  readonly layout?: 1 | 2 | 3 | undefined
  /** Of new generations, except of layout 1: the shards of each index that hold an organization. By default 1. */
  readonly routingPartitionSize?: number | undefined
  /** For tests with other rules. */
  readonly rulesVersion?: number | undefined
  /** Called with each setting of an index that is not as expected and does not stop the projector. */
  readonly tell?: TellSetting
} & TellShards

/** Creates the control index, and the template that keeps Elasticsearch from creating indices automatically. */
export const prepareCommon = async (steps: PrepareSteps): Promise<void> => {
  const { layout } = steps
  await putTemplate(steps)
  await assertNoAutoCreate(steps, layoutOfNew({ layout, shards: 1 }))
  await assertLiveNotLost(await prepareControl(steps), steps)
}

/** @throws StopError `index_missing` */
export const assertLiveNotLost = async (
  names: readonly string[],
  steps: Pick<PrepareSteps, 'request' | 'prefix'>,
): Promise<void> => {
  const { prefix } = steps
  // An interrupted first start can leave indices of the first generation only.
  const others = [...generationsAmong(prefix, names)].filter(generation => generation !== FIRST_GENERATION)
  if (others.length === 0 || (await readControl<LiveDocument>(LIVE_ID, steps)) !== undefined) return
  const lost = `document "${LIVE_ID}" of ${controlIndexOf(prefix)}`
  throw new StopError('index_missing', `${lost}, but there are indices of ${others.join(', ')}; ${adviceFor(lost)}`)
}

/**
 * Creates the control index alone. A sandbox shares nothing else: no API reads a sandbox, and it has no API keys.
 * @returns the indices that existed before
 * @throws StopError `index_missing` if it is gone: a new one would say that nothing was projected yet;
 *   `documents_hidden`
 */
export const prepareControl = async ({
  request,
  prefix,
  replicas,
  tell,
}: Pick<PrepareSteps, 'request' | 'prefix' | 'replicas' | 'tell'>): Promise<readonly string[]> => {
  const [name, definition] = controlDefinition(prefix, replicas)
  const names = [...(await listIndices({ request, prefix })).keys()]
  await assertSeesAll([name, ...projectedIn(prefix, names)], { request })
  if (!names.includes(name)) {
    assertControlNotLost(names, prefix)
    await create(name, definition, request)
  }
  await checkIndex(name, definition, request, tell)
  return names
}

export const controlDefinition = (prefix: string, replicas?: number): [name: string, definition: IndexDefinition] => {
  const name = controlIndexOf(prefix)
  const definition = commonIndices(prefix, replicas)[name]
  if (definition === undefined) throw new Error('the control index has no definition')
  return [name, definition]
}

/** @param names all indices, without the control index. @throws StopError `index_missing` */
export const assertControlNotLost = (names: readonly string[], prefix: string): void => {
  const name = controlIndexOf(prefix)
  const projected = projectedIn(prefix, names)
  if (projected.length === 0) return
  const there = `${projected.slice(0, 3).join(', ')}${projected.length > 3 ? `, … (${projected.length} in all)` : ''}`
  throw new StopError('index_missing', `${name}, but there are ${there}; ${adviceFor(name)}`)
}

const adviceFor = (lost: string): string =>
  `restore ${lost} from a snapshot, or delete these indices (or take another prefix) to project again from the first record: not after a change of the rules without docs/generations.md, "Snapshots"`

/** Returns the stored position of each partition of a generation. @throws StopError `index_missing` */
export const readPositions = async (
  { generation, partitions }: Pick<GenerationBody, 'generation' | 'partitions'>,
  { request, prefix }: Pick<PrepareSteps, 'request' | 'prefix'>,
): Promise<readonly PositionDocument['body'][]> => {
  const docs = Array.from({ length: partitions }, (_, partition) =>
    controlAddress(prefix, positionId(generation, partition)),
  )
  // An old copy may lack a position that was just created.
  const found = await getEach(docs, part => getFromPrimaries<PositionDocument>(request, part))
  return found.map(document => {
    if (document.found) return document._source.body
    throw new StopError('index_missing', `a position of ${generation} in ${controlIndexOf(prefix)}`)
  })
}

type Source = Pick<GenerationBody, 'topic' | 'cluster_id' | 'partitions' | 'topic_id' | 'sandbox'>

/** API keys have one generation, whose indices are always the same. */
const isOfEvents = (generation: string): boolean => generation !== API_KEYS_GENERATION

/**
 * Opens a generation of a source under the present rules, with a position for every partition. Creates it if it is
 * missing.
 * @param follows the live generation, if that has other rules
 */
export const prepareGeneration = async (
  generation: string,
  source: Source,
  ends: Ends,
  steps: PrepareSteps,
  follows?: string,
): Promise<GenerationBody> => {
  const { request } = steps
  if ((await readGeneration(generation, steps)) === undefined) {
    const layout = isOfEvents(generation) ? layoutOfNew(steps) : {}
    const indices = indicesOf({ generation, ...layout }, steps)
    for (const [name, definition] of Object.entries(indices)) await create(name, definition, request)
    for (const { partition, end } of ends) {
      // Serve API keys only after the present end of the topic is reached: an older revocation must not be missed.
      const body = { position: 0, last: null, at: 0, time: 0, serve_from: isOfEvents(generation) ? 0 : end }
      await createControl(
        positionId(generation, partition),
        { kind: 'position', body } satisfies PositionDocument,
        steps,
      )
    }
    // Written after its positions: a generation that exists has them all.
    const rules_version = versionOf(generation, steps)
    const ids = await readIndexIds(Object.keys(indices), steps)
    const made = { generation, ...source, rules_version, ...layout }
    const shards = await readRecordableIds(Object.keys(indices), steps)
    const body = { ...made, ...(follows !== undefined && { follows }), indices: ids, ...(shards && { shards }) }
    await createControl(generationId(generation), { kind: 'generation', body } satisfies GenerationDocument, steps)
  }
  return openGeneration(generation, source, steps)
}

/** Opens a generation that must exist. @throws StopError as `prepareGeneration` */
export const openGeneration = async (
  generation: string,
  source: Source,
  steps: PrepareSteps,
): Promise<GenerationBody> => {
  const { request } = steps
  const identity = await readKnown(generation, source, steps)
  const indices = indicesOf(identity, steps)
  for (const [name, definition] of Object.entries(indices)) await checkIndex(name, definition, request, steps.tell)
  return keepIntact(identity, Object.keys(indices), steps)
}

/** The checks of `openGeneration` without its changes. @returns also the settings of its indices that it would tell */
export const inspectGeneration = async (
  generation: string,
  source: Source,
  steps: PrepareSteps,
): Promise<{ readonly identity: GenerationBody; readonly told: readonly ToldSetting[] }> => {
  const identity = await readKnown(generation, source, steps)
  const told = await inspectIndices(indicesOf(identity, steps), steps.request)
  await assertSameIndices(identity, steps)
  return { identity, told }
}

/**
 * Inspects the indices that a command writes: those of a generation, and the control index.
 * @throws StopError `index_missing`; `index_unsuitable`, for example if one has an ingest pipeline
 */
export const assertSuitable = async (
  identity: Layout & Pick<GenerationBody, 'generation'>,
  { request, prefix }: Pick<PrepareSteps, 'request' | 'prefix'>,
): Promise<void> => {
  const [control, definition] = controlDefinition(prefix)
  // The number of shards is not compared.
  const own = indicesOf(identity, { prefix, shards: 1 })
  await inspectIndices({ [control]: definition, ...own }, request)
}

/** @throws StopError `index_missing`, `source_changed`, `rules_changed` */
const readKnown = async (generation: string, source: Source, steps: PrepareSteps): Promise<GenerationBody> => {
  const identity = await readGeneration(generation, steps)
  if (identity === undefined) throw generationMissing(generation, steps.prefix)
  assertSameSource(identity, source)
  const version = versionOf(generation, steps)
  const isKnown = isOfEvents(generation) ? identity.rules_version === version : knowsKeyRules(identity)
  if (!isKnown) throw rulesChanged(identity, version)
  return identity
}

type Layout = Pick<GenerationBody, 'layout' | 'routing_partition_size'>

/** Returns the layout of a new generation. @throws StopError if its indices cannot be made */
export const layoutOfNew = ({
  layout = 3,
  routingPartitionSize = 1,
  shards,
}: Pick<PrepareSteps, 'layout' | 'routingPartitionSize' | 'shards'>): Layout => {
  if (layout === 1) return {}
  if (routingPartitionSize === 1) return { layout }
  if (routingPartitionSize < shards) return { layout, routing_partition_size: routingPartitionSize }
  const settings = `ELASTICSEARCH_ROUTING_PARTITION_SIZE is ${routingPartitionSize}, ELASTICSEARCH_SHARDS is ${shards}`
  throw new StopError('index_unsuitable', `${settings}: an organization must have fewer shards than there are`)
}

export const indicesOf = (
  identity: Layout & Pick<GenerationBody, 'generation'>,
  { prefix, shards, replicas }: Pick<PrepareSteps, 'prefix' | 'shards' | 'replicas'>,
): Record<string, IndexDefinition> =>
  isOfEvents(identity.generation)
    ? generationIndices(prefix, identity, { shards, replicas })
    : apiKeysIndices(prefix, replicas)

/** Returns this program's rules version, for commission events or API keys. */
const versionOf = (generation: string, { rulesVersion = RULES_VERSION }: Pick<PrepareSteps, 'rulesVersion'>): number =>
  isOfEvents(generation) ? rulesVersion : KEY_RULES_VERSION

export const rulesChanged = ({ generation, rules_version }: GenerationBody, ours: number): StopError => {
  const versions = `generation ${generation} has version ${rules_version}, this program ${ours}`
  return new StopError(
    'rules_changed',
    `${versions}; make a generation of this version: npx commission projection rebuild`,
  )
}

/** Makes a generation the live one, if none is. */
export const makeFirstLive = async (generation: string, steps: PrepareSteps): Promise<void> => {
  const stored = storedNameOf({ ...(await readGeneration(generation, steps)), generation })
  await createControl(LIVE_ID, { kind: 'live', body: { generation: stored } } satisfies LiveDocument, steps)
}

const createControl = async (id: string, document: object, { request, prefix }: PrepareSteps): Promise<void> => {
  const path = `/${controlIndexOf(prefix)}/_create/${encodeURIComponent(id)}`
  const { status } = await request({ method: 'PUT', path, body: document })
  if (status !== 201 && status !== 409)
    throw new StopError('index_missing', `${controlIndexOf(prefix)}, while creating`, { status })
}

/** Errors of Elasticsearch if an index, or an alias, has the name of a new index. */
const namesTaken = new Set(['resource_already_exists_exception', 'invalid_index_name_exception'])

const create = async (name: string, { mappings, settings }: IndexDefinition, request: Ask): Promise<void> => {
  const { status, body } = await request({
    method: 'PUT',
    path: `/${name}`,
    query: { wait_for_active_shards: 1 },
    body: { mappings, settings: { index: settings } },
  })
  const type = errorType(body)
  // Next, `checkIndex` checks the index of this name. 400 has other causes too: the cluster may allow no more shards.
  if (status === 200 || (type !== undefined && namesTaken.has(type))) return
  const why =
    type === 'validation_exception' ? '; the cluster may allow no more shards: cluster.max_shards_per_node' : ''
  const others = await templatesThatApply(name, request)
  const answer = `Elasticsearch answers ${status}, ${type ?? 'no type'}`
  throw new StopError('write_refused', `creating ${name}: ${answer}${why}${others}`)
}
