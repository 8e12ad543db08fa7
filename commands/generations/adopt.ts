/**
 * `npm run projection -- adopt`: takes indices that were restored from a snapshot. A snapshot may have been taken while
 * a projector wrote: a position may be there without its documents. So every position goes back to the first record;
 * projectors read the topics again, write what is missing, and stop where a document is another than the log says.
 * Until a partition is where its topic ended now, readers are answered 503. Can be cut short and done again: what is
 * taken is written last.
 */
import { StopError } from '../../projector/failures.ts'
import { readIndexIds } from '../../projector/generations/indices.ts'
import { readGeneration } from '../../projector/generations/prepare.ts'
import { assertSameSource, describeSource, fetchEnds, type Identity } from '../../projector/kafka/source.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  type GenerationDocument,
  generationId,
  type PositionDocument,
  positionId,
} from '../../schemas/stored/documents.ts'
import { apiKeysIndices, generationIndices } from '../../schemas/stored/mappings.ts'
import type { KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { connectAdmin } from '../kafka.ts'
import { identityOf, namesOf, readAll } from './generations.ts'

export const adopt = async ({ json }: { readonly json: boolean }, context: KafkaContext): Promise<ExitCode> => {
  const { topics, say, out } = context
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  const generations = await readAll(context)
  const names = [API_KEYS_GENERATION, ...namesOf(generations)]
  const replaced: { readonly identity: Identity; readonly ids: Record<string, string> }[] = []
  // All of it is looked at before anything is changed.
  for (const name of names) {
    const found = await lookAt(name, context).catch((error: unknown) => {
      // A spare one is in nobody's way: it can be dropped.
      if (name === API_KEYS_GENERATION || name === generations.live) throw error
      if (!(error instanceof StopError || error instanceof CommandError)) throw error
      say(`${name} is left as it is: ${error.message}`)
    })
    if (found?.isReplaced) replaced.push(found)
  }
  for (const { identity, ids } of replaced) {
    const topic = topics[identity.generation === API_KEYS_GENERATION ? 'api-keys' : 'events']
    assertSameSource(identity, await describeSource(admin, topic))
    for (const { partition, end } of await fetchEnds(admin, topic)) await readAgain(identity, partition, end, context)
    const body = { ...identity, indices: ids }
    await put(generationId(identity.generation), { kind: 'generation', body } satisfies GenerationDocument, context)
    say(`${identity.generation} is taken: it is read again from the first record, and served once that is done`)
  }
  if (replaced.length === 0) say('all indices are those that were projected into: nothing is changed')
  if (json) out(`${JSON.stringify({ adopted: replaced.map(({ identity }) => identity.generation) })}\n`)
  return exitCodes.done
}

const lookAt = async (name: string, context: KafkaContext) => {
  const { send: request, prefix } = context
  const identity = await identityOf(name, context)
  const ids = await readIndexIds(indicesOf(name, prefix), { request, prefix })
  const isReplaced = Object.entries(ids).some(([index, id]) => identity.indices?.[index] !== id)
  if (isReplaced) await refuseWithoutFollowed(identity, context)
  return { identity, ids, isReplaced }
}

const indicesOf = (name: string, prefix: string): string[] =>
  Object.keys(name === API_KEYS_GENERATION ? apiKeysIndices(prefix) : generationIndices(prefix, name, 1))

/**
 * Read again from the first record, a generation asks the one it followed what that one parked: it must be whole, or be
 * taken as well.
 */
const refuseWithoutFollowed = async ({ generation, follows }: Identity, context: KafkaContext): Promise<void> => {
  if (follows === undefined) return
  const steps = { request: context.send, prefix: context.prefix }
  if ((await readGeneration(follows, steps)) !== undefined) {
    await readIndexIds(indicesOf(follows, context.prefix), steps)
    context.say(`${generation} waits until ${follows}, which it followed, has read again what it parked`)
    return
  }
  const what = `${generation} took over what ${follows} parked, and ${follows} is gone`
  throw new CommandError(`${what}: it cannot be read again. Project again under another prefix`)
}

/** A projector that still runs finds that the position went back, and stops. */
const readAgain = async (
  { generation }: Identity,
  partition: number,
  end: number,
  context: KafkaContext,
): Promise<void> => {
  const id = positionId(generation, partition)
  const path = `/${controlIndexOf(context.prefix)}/_doc/${encodeURIComponent(id)}`
  const { status, body } = await context.send({ method: 'GET', path })
  const before = status === 200 ? (body as { _source: PositionDocument })._source.body : undefined
  const serve_from = Math.max(end, before?.position ?? 0, before?.serve_from ?? 0)
  // Processes that have seen a time taken back believe none that was told before.
  const taken_back = (before?.taken_back ?? 0) + 1
  const fresh = { position: 0, last: null, at: 0, time: 0, serve_from, taken_back }
  await put(id, { kind: 'position', body: fresh } satisfies PositionDocument, context)
}

const put = async (id: string, document: object, { send, prefix }: KafkaContext): Promise<void> => {
  const path = `/${controlIndexOf(prefix)}/_doc/${encodeURIComponent(id)}`
  const { status } = await send({ method: 'PUT', path, body: document })
  if (status !== 200 && status !== 201)
    throw new CommandError(`${id} cannot be written: Elasticsearch answers ${status}`)
}
