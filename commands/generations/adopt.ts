/**
 * `npm run projection -- adopt`: takes over indices that were restored from a snapshot.
 *
 * A snapshot may hold a position without its documents, because projectors wrote while it was taken. So `adopt` sets
 * every position back to the first record. Projectors then read the topics again, write missing documents, and stop if
 * a document contradicts the log. Readers get 503 until a partition has reached the end that its topic has now. `adopt`
 * can be interrupted and repeated: it writes the ids of the indices last.
 */

import {
  API_KEYS_GENERATION,
  controlIndexOf,
  type GenerationDocument,
  generationId,
  type PositionDocument,
  positionId,
  type TimesDocument,
  timesId,
} from '../../schemas/stored/documents.ts'
import { apiKeysIndices, generationIndices } from '../../schemas/stored/mappings.ts'
import type { KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { connectAdmin } from '../kafka.ts'
import {
  assertSameSource,
  type DocumentAnswer,
  describeSource,
  documentPath,
  type Ends,
  fetchEnds,
  type Identity,
  type PastPositions,
  readGeneration,
  readIndexIds,
  StopError,
} from '../projector.ts'
import { identityOf, namesOf, readAll } from './generations.ts'

export const adopt = async ({ json }: { readonly json: boolean }, context: KafkaContext): Promise<ExitCode> => {
  const adopted = await takeOver(fromFirstRecord, context)
  if (json) context.out(`${JSON.stringify({ adopted: adopted.map(({ generation }) => generation) })}\n`)
  return exitCodes.done
}

/** Where a generation is read again from. `positions` by partition; without them from the first record. */
export type Restart = { readonly said: string; readonly positions?: PastPositions['partitions'] }

const fromFirstRecord = async (): Promise<Restart> => ({ said: 'from the first record' })

export type TakenOver = Restart & { readonly generation: string }

/**
 * Takes over all generations whose indices were replaced, and the API keys.
 * @param restartOf called before anything is changed. If it throws a CommandError for the live generation, nothing is;
 *   a spare one is skipped
 */
export const takeOver = async (
  restartOf: (identity: Identity) => Promise<Restart>,
  context: KafkaContext,
): Promise<readonly TakenOver[]> => {
  const { topics, say } = context
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  const generations = await readAll(context)
  const names = [API_KEYS_GENERATION, ...namesOf(generations)]
  const replaced: Replaced[] = []
  // Checks everything before it changes anything.
  for (const name of names) {
    const found = await checkIndices(name, restartOf, context).catch((error: unknown) => {
      // A bad spare generation blocks nothing: the operator can drop it.
      if (name === API_KEYS_GENERATION || name === generations.live) throw error
      if (!(error instanceof StopError || error instanceof CommandError)) throw error
      say(`${name} is skipped: ${error.message}`)
    })
    if (found !== undefined) replaced.push(found)
  }
  const topicOf = ({ generation }: Identity): string =>
    topics[generation === API_KEYS_GENERATION ? 'api-keys' : 'events']
  for (const { identity, restart } of replaced) {
    assertSameSource(identity, await describeSource(admin, topicOf(identity)))
    assertReached(identity, restart, await fetchEnds(admin, topicOf(identity)))
  }
  for (const { identity, ids, restart } of replaced) {
    const times = await readTimes(identity, context)
    for (const { partition, end } of await fetchEnds(admin, topicOf(identity))) {
      const from = restart.positions?.[partition] ?? FIRST_RECORD
      await readAgain(identity, partition, from, end, times[partition]?.taken_back ?? 0, context)
    }
    if (Object.keys(times).length > 0) {
      const none: TimesDocument = { kind: 'times', body: { partitions: {} } }
      await put(timesId(identity.generation), none, context)
    }
    const body = { ...identity, indices: ids }
    await put(generationId(identity.generation), { kind: 'generation', body } satisfies GenerationDocument, context)
    say(`${identity.generation} is adopted: projectors read it again ${restart.said}, and the API serves it after that`)
  }
  if (replaced.length === 0) say('no index was replaced: nothing is changed')
  return replaced.map(({ identity: { generation }, restart }) => ({ generation, ...restart }))
}

type Replaced = {
  readonly identity: Identity
  readonly ids: Record<string, string>
  readonly restart: Restart
}

const FIRST_RECORD = { position: 0, last: null, at: 0 }

/** Returns undefined if no index of the generation was replaced. */
const checkIndices = async (
  name: string,
  restartOf: (identity: Identity) => Promise<Restart>,
  context: KafkaContext,
): Promise<Replaced | undefined> => {
  const { send: request, prefix } = context
  const identity = await identityOf(name, context)
  const ids = await readIndexIds(indicesOf(name, prefix), { request, prefix })
  const isReplaced = Object.entries(ids).some(([index, id]) => identity.indices?.[index] !== id)
  if (!isReplaced) return undefined
  await refuseWithoutFollowed(identity, context)
  return { identity, ids, restart: name === API_KEYS_GENERATION ? await fromFirstRecord() : await restartOf(identity) }
}

/** @throws CommandError if the topic ends before a position: it is not the projected one, or has lost records */
const assertReached = ({ generation, topic }: Identity, { positions = [] }: Restart, ends: Ends): void => {
  for (const { partition, end } of ends) {
    const { position } = positions[partition] ?? FIRST_RECORD
    if (position <= end) continue
    throw new CommandError(`partition ${partition} of ${topic} ends at ${end}, before ${position} of ${generation}`)
  }
}

const indicesOf = (name: string, prefix: string): string[] =>
  Object.keys(name === API_KEYS_GENERATION ? apiKeysIndices(prefix) : generationIndices(prefix, name, 1))

/** A followed generation must be whole, or adopted too: its follower is read again, and asks what it parked. */
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

const readTimes = async ({ generation }: Identity, { send, prefix }: KafkaContext) => {
  const path = documentPath(controlIndexOf(prefix), timesId(generation))
  const { status, body } = await send<DocumentAnswer<TimesDocument>>({ method: 'GET', path })
  return status === 200 ? body._source.body.partitions : {}
}

/** A running projector notices that the position went back, and stops. */
const readAgain = async (
  { generation }: Identity,
  partition: number,
  from: PastPositions['partitions'][number],
  end: number,
  timesTakenBack: number,
  context: KafkaContext,
): Promise<void> => {
  const id = positionId(generation, partition)
  const path = documentPath(controlIndexOf(context.prefix), id)
  const { status, body } = await context.send<DocumentAnswer<PositionDocument>>({ method: 'GET', path })
  const before = status === 200 ? body._source.body : undefined
  const serve_from = Math.max(end, before?.position ?? 0, before?.serve_from ?? 0)
  // A higher count makes API processes discard the times that they read before.
  const taken_back = Math.max(before?.taken_back ?? 0, timesTakenBack) + 1
  const { position, last, at } = from
  const fresh = { position, last, at, time: 0, serve_from, taken_back }
  await put(id, { kind: 'position', body: fresh } satisfies PositionDocument, context)
}

const put = async (id: string, document: object, { send, prefix }: KafkaContext): Promise<void> => {
  const path = documentPath(controlIndexOf(prefix), id)
  const { status } = await send({ method: 'PUT', path, body: document })
  if (status !== 200 && status !== 201)
    throw new CommandError(`${id} cannot be written: Elasticsearch answers ${status}`)
}
