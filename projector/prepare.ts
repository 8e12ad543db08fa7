/**
 * Before the first record: the indices are there and are what this version writes, and a projection exists with a position
 * for every partition. Creates what is missing at a first start only; what was there once and is gone is refused, because
 * an empty index must never pass for an empty organization. Two first starts at once agree: everything is created or found.
 */
import { isDeepStrictEqual } from 'node:util'
import {
  commonIndices,
  controlIndexOf,
  FIRST_GENERATION,
  type GenerationDocument,
  generationId,
  generationIndices,
  type IndexDefinition,
  indexOf,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
  templateNameOf,
} from '../schemas/documents.ts'
import type { Answer, Request } from './elasticsearch.ts'
import { StopError } from './failures.ts'
import { KEY_RULES_VERSION, RULES_VERSION } from './rules/rules.ts'
import { assertSameSource, type Ends, type Identity } from './source.ts'

export type PrepareSteps = {
  /** Sends a request until it is answered. */
  readonly request: (request: Request) => Promise<Answer>
  readonly prefix: string
  readonly shards: number
  /** Copies of each shard; without it as many as the nodes allow, at most one. */
  readonly replicas?: number | undefined
  /** Another than that of this program, where a test has other rules. */
  readonly rulesVersion?: number | undefined
}

/** The template that keeps Elasticsearch from creating an index by itself, and the indices all generations share. */
export const prepareCommon = async ({ request, prefix, replicas }: PrepareSteps): Promise<void> => {
  const { status } = await request({
    method: 'PUT',
    path: `/_index_template/${templateNameOf(prefix)}`,
    // A longer prefix is the more specific one: its template wins over that of a prefix it begins with.
    body: { index_patterns: [`${prefix}-*`], allow_auto_create: false, priority: 500 + prefix.length },
  })
  if (status !== 200) throw new StopError('index_unsuitable', `the index template is answered ${status}`)

  // Asked in this order: a generation has indices only after the control index was there.
  const wasProjected = await exists(indexOf(prefix, FIRST_GENERATION, 'reps'), request)
  const control = controlIndexOf(prefix)
  if (!(await exists(control, request))) {
    if (wasProjected) throw new StopError('index_missing', control)
    for (const [name, definition] of Object.entries(commonIndices(prefix, replicas)))
      await create(name, definition, request)
  }
  for (const [name, definition] of Object.entries(commonIndices(prefix))) await verify(name, definition, request)
}

/** The control index alone: for generations that no API reads, of no API keys. */
export const prepareControl = async ({
  request,
  prefix,
  replicas,
}: Pick<PrepareSteps, 'request' | 'prefix' | 'replicas'>): Promise<void> => {
  const name = controlIndexOf(prefix)
  const definition = commonIndices(prefix, replicas)[name]
  if (definition === undefined) throw new Error('the control index has no definition')
  if (!(await exists(name, request))) await create(name, definition, request)
  await verify(name, definition, request)
}

/** What a generation was projected from, and under which rules; undefined where there is none of that name. */
export const readGeneration = (
  generation: string,
  { request, prefix }: Pick<PrepareSteps, 'request' | 'prefix'>,
): Promise<Identity | undefined> => readControl<GenerationDocument>(generationId(generation), request, prefix)

type Source = Pick<Identity, 'topic' | 'cluster_id' | 'partitions' | 'sandbox'>

/**
 * A projection of a source under the present rules, with a position for every partition. One that is not there is made.
 * @param indexed whether it has indices of its own (the stream of API keys has not)
 * @param follows the one that is live, where that is under other rules
 * @throws StopError `source_changed`, `rules_changed`, `index_missing`, `index_unsuitable`
 */
export const prepareGeneration = async (
  generation: string,
  source: Source,
  ends: Ends,
  indexed: boolean,
  steps: PrepareSteps,
  follows?: string,
): Promise<Identity> => {
  const { request, prefix, shards, replicas } = steps
  const indices = indexed ? generationIndices(prefix, generation, shards, replicas) : {}
  if ((await readGeneration(generation, steps)) === undefined) {
    for (const [name, definition] of Object.entries(indices)) await create(name, definition, request)
    for (const { partition, end } of ends) {
      // API keys are served once the position is where the topic ended now: an older revocation must not be missed.
      const body = { position: 0, last: null, at: 0, time: 0, serve_from: indexed ? 0 : end }
      await createControl(
        positionId(generation, partition),
        { kind: 'position', body } satisfies PositionDocument,
        steps,
      )
    }
    // After its positions: a generation that is there has them all.
    const rules_version = versionOf(indexed, steps)
    const body = { generation, ...source, rules_version, ...(follows !== undefined && { follows }) }
    await createControl(generationId(generation), { kind: 'generation', body } satisfies GenerationDocument, steps)
  }
  return openGeneration(generation, source, indexed, steps)
}

/** One that must be there. @throws StopError as `prepareGeneration` */
export const openGeneration = async (
  generation: string,
  source: Source,
  indexed: boolean,
  steps: PrepareSteps,
): Promise<Identity> => {
  const { request, prefix, shards } = steps
  const identity = await readGeneration(generation, steps)
  if (identity === undefined)
    throw new StopError('index_missing', `generation ${generation} in ${controlIndexOf(prefix)}`)
  assertSameSource(identity, source)
  const version = versionOf(indexed, steps)
  if (identity.rules_version !== version) throw rulesChanged(identity, version)
  const indices = indexed ? generationIndices(prefix, generation, shards) : {}
  for (const [name, definition] of Object.entries(indices)) await verify(name, definition, request)
  return identity
}

/** The version of the rules a program decides by: of API keys, or of commission events. */
const versionOf = (indexed: boolean, { rulesVersion = RULES_VERSION }: Pick<PrepareSteps, 'rulesVersion'>): number =>
  indexed ? rulesVersion : KEY_RULES_VERSION

export const rulesChanged = ({ generation, rules_version }: Identity, ours: number): StopError => {
  const versions = `generation ${generation} has version ${rules_version}, this program ${ours}`
  return new StopError('rules_changed', `${versions}; make one of this version: npm run projection -- rebuild`)
}

/** Makes a generation the live one, if none is. */
export const makeFirstLive = async (generation: string, steps: PrepareSteps): Promise<void> =>
  createControl(LIVE_ID, { kind: 'live', body: { generation } } satisfies LiveDocument, steps)

const readControl = async <Document extends { body: unknown }>(
  id: string,
  request: PrepareSteps['request'],
  prefix: string,
): Promise<Document['body'] | undefined> => {
  const { status, body } = await request({
    method: 'GET',
    path: `/${controlIndexOf(prefix)}/_doc/${encodeURIComponent(id)}`,
  })
  if (status === 200) return (body as { _source: Document })._source.body
  if (status === 404 && (body as { found?: boolean }).found === false) return undefined
  throw new StopError('index_missing', `${controlIndexOf(prefix)}, while reading`, { status })
}

const createControl = async (id: string, document: object, { request, prefix }: PrepareSteps): Promise<void> => {
  const path = `/${controlIndexOf(prefix)}/_create/${encodeURIComponent(id)}`
  const { status } = await request({ method: 'PUT', path, body: document })
  if (status !== 201 && status !== 409)
    throw new StopError('index_missing', `${controlIndexOf(prefix)}, while creating`, { status })
}

const exists = async (name: string, request: PrepareSteps['request']): Promise<boolean> =>
  (await request({ method: 'HEAD', path: `/${name}` })).status === 200

const create = async (
  name: string,
  { mappings, settings }: IndexDefinition,
  request: PrepareSteps['request'],
): Promise<void> => {
  const { status } = await request({
    method: 'PUT',
    path: `/${name}`,
    query: { wait_for_active_shards: 1 },
    body: { mappings, settings: { index: settings } },
  })
  // 400: it exists already; whether it is the right one is verified next.
  if (status !== 200 && status !== 400)
    throw new StopError('index_unsuitable', `creating ${name} is answered ${status}`)
}

/** The settings that decisions and order stand on; the number of copies is the operator's. */
const verified = ['refresh_interval', 'sort'] as const

const verify = async (
  name: string,
  { mappings, settings }: IndexDefinition,
  request: PrepareSteps['request'],
): Promise<void> => {
  const { status, body } = await request({ method: 'GET', path: `/${name}`, query: { flat_settings: false } })
  if (status !== 200) throw new StopError('index_missing', name, { status })
  const got = (body as Record<string, { mappings: unknown; settings: { index: Record<string, unknown> } }>)[name]
  if (got === undefined || !isDeepStrictEqual(got.mappings, mappings))
    throw new StopError('index_unsuitable', `${name}: another mapping`)
  for (const setting of verified) {
    if (isDeepStrictEqual(got.settings.index[setting], settings[setting])) continue
    throw new StopError('index_unsuitable', `${name}: another ${setting}`)
  }
}
