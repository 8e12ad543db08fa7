/**
 * The document of a generation: its source, its rules, and the ids of its indices and shards. In: a generation. Out:
 * its document; fields that are added to it.
 * Promises: a value that is there stays, whoever wrote it. The document of a dropped generation does not come back.
 * Can go wrong: `index_missing`, `index_replaced`.
 */
import { controlIndexOf, type GenerationDocument, generationId } from '../../../schemas/stored/documents.ts'
import { missingAmong, type ShardIds } from '../../../schemas/stored/shard-ids.ts'
import type { GenerationBody } from '../../log/index.ts'
import { StopError } from '../../runtime/index.ts'
import type { DocumentAnswer } from '../elasticsearch/answers.ts'
import { type Ask, documentPath, ifVersion } from '../elasticsearch/client.ts'
import { assertSameIndices, type CompareSteps, readIndexIds, readRecordableIds } from './indices.ts'

type Steps = { readonly request: Ask; readonly prefix: string }
export type TellShards = {
  /** Called with shards that were not compared until now. */
  readonly tellShards?: (generation: string, shards: string) => void
  /**
   * Called with the recorded shards whose ids Elasticsearch does not tell now: none, if it tells all.
   * @param mayAsk false: it tells none, since this user has no right to ask
   */
  readonly tellMissing?: (shards: readonly string[], mayAsk: boolean) => void
}

/** Returns the source and the rules version of a generation; undefined if it does not exist. */
export const readGeneration = async (generation: string, steps: Steps): Promise<GenerationBody | undefined> =>
  (await readControl<GenerationDocument>(generationId(generation), steps))?._source.body

/**
 * Records the ids of a generation's indices and shards if they are absent: older versions did not record them, so the
 * first projector that does records those that it finds.
 */
export const recordIndices = async (
  identity: GenerationBody,
  names: readonly string[],
  steps: Steps,
): Promise<GenerationBody> => {
  const indices = async (now: GenerationBody) => (now.indices ? undefined : readIndexIds(names, steps))
  const shards = async (now: GenerationBody) => (now.shards ? undefined : readRecordableIds(names, steps))
  const known = identity.indices ? identity : await record(identity, 'indices', indices, steps)
  return known.shards ? known : record(known, 'shards', shards, steps)
}

/**
 * Records the ids that are absent, and asserts the recorded ones. A shard that still started when the list was recorded
 * may lack in it, and was not compared since then: the list is completed with the id that is found now.
 */
export const keepIntact = async (
  identity: GenerationBody,
  names: readonly string[],
  steps: Steps & TellShards,
): Promise<GenerationBody> => {
  const known = await recordIndices(identity, names, steps)
  const found = await assertIntactIndices(known, steps)
  steps.tellMissing?.(missingAmong(known.shards, found), found !== undefined)
  const added = Object.entries(found ?? {}).filter(([shard]) => known.shards?.[shard] === undefined)
  if (added.length === 0) return known
  steps.tellShards?.(known.generation, added.map(([shard]) => shard).join())
  const completed = async ({ shards }: GenerationBody) => shards && { ...Object.fromEntries(added), ...shards }
  return record(known, 'shards', completed, steps)
}

/**
 * As `assertSameIndices`. Also tells readers that a shard was lost, unless `adopt` has taken it over: the API asks for
 * ids of shards only before it signs.
 */
export const assertIntactIndices = (identity: GenerationBody, steps: CompareSteps): Promise<ShardIds | undefined> =>
  assertSameIndices(identity, steps, shard => {
    const isRecorded = (now: GenerationBody): boolean => now.shards?.[shard] === identity.shards?.[shard]
    return record(identity, 'lost', async now => (!now.lost && isRecorded(now) ? shard : undefined), steps)
  })

/**
 * Records the id of the topic that a generation was made from, if it is absent: older versions did not record it, and
 * old brokers tell none.
 * @param verify called before: the topic must have the last known record of every partition
 */
export const recordTopicId = async (
  identity: GenerationBody,
  { topic_id }: Pick<GenerationBody, 'topic_id'>,
  verify: (identity: GenerationBody) => Promise<void>,
  steps: Steps,
): Promise<GenerationBody> => {
  if (identity.topic_id !== undefined || topic_id === undefined) return identity
  await verify({ ...identity, topic_id })
  return record(identity, 'topic_id', async now => (now.topic_id ? undefined : topic_id), steps)
}

/** @param read returns the value of a field for the document as it is now; undefined: it stays as it is */
const record = async <Field extends 'indices' | 'shards' | 'lost' | 'topic_id'>(
  identity: GenerationBody,
  field: Field,
  read: (now: GenerationBody) => Promise<GenerationBody[Field]>,
  { request, prefix }: Steps,
): Promise<GenerationBody> => {
  const { generation } = identity
  const found = await readControl<GenerationDocument>(generationId(generation), { request, prefix })
  // Without its document the generation was dropped. A write without a version would bring the document back.
  if (found === undefined) throw generationMissing(generation, prefix)
  const { body } = found._source
  const value = await read(body)
  if (value === undefined) return body
  const recorded = { ...body, [field]: value }
  const { status } = await request({
    method: 'PUT',
    path: documentPath(controlIndexOf(prefix), generationId(generation)),
    query: ifVersion(found),
    body: { kind: 'generation', body: recorded } satisfies GenerationDocument,
  })
  if (status === 200) return recorded
  // 409: another projector wrote first, or our earlier attempt succeeded and its response was lost.
  const written = status === 409 ? await readGeneration(generation, { request, prefix }) : undefined
  if (written !== undefined) return written
  throw generationMissing(generation, prefix, status)
}

export const generationMissing = (generation: string, prefix: string, status?: number): StopError =>
  new StopError('index_missing', `generation ${generation} in ${controlIndexOf(prefix)}`, status ? { status } : {})

/** Returns a document of the control index, with its version; undefined if there is none. */
export const readControl = async <Document>(
  id: string,
  { request, prefix }: Steps,
): Promise<DocumentAnswer<Document> | undefined> => {
  const path = documentPath(controlIndexOf(prefix), id)
  const { status, body } = await request<DocumentAnswer<Document>>({ method: 'GET', path })
  if (status === 200) return body
  if (status === 404 && body.found === false) return undefined
  throw new StopError('index_missing', `${controlIndexOf(prefix)}, while reading`, { status })
}
