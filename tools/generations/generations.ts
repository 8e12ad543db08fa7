/** The generations: names, roles, positions, deletion. */
import type { Admin } from 'kafkajs'
import { differingField, type Ends, endOfPartition, type GenerationBody, withRight } from '../../core/log/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import {
  assertSuitable,
  type DocumentAnswer,
  documentPath,
  formerTopicsIn,
  type Generations,
  getEach,
  ifVersion,
  isServed,
  listPastPositions,
  multiGet,
  type Request,
  readGeneration,
  readGenerations,
  withTime,
} from '../../core/store/index.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  generationId,
  type PositionDocument,
  positionId,
  type TimesDocument,
  timesId,
  writtenId,
} from '../../schemas/stored/documents.ts'
import { controlAddress, layoutOf } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import { assertOwnIndices } from '../documents/shards.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { carryOut } from '../leftovers/carry-out.ts'
import { findRemains, isWhole } from './remains.ts'

/** @throws CommandError if nothing was projected under this prefix */
export const readAll = async ({ send, prefix }: CommandContext): Promise<Generations> => {
  const generations = await readGenerations({ request: send, prefix })
  if (generations) return generations
  throw new CommandError(`nothing is projected under ELASTICSEARCH_INDEX_PREFIX=${prefix}`)
}

/**
 * Returns a generation whose indices are its own: commands answer from it.
 * @param refusal as of `assertOwnIndices`
 * @throws CommandError if there is no generation of this name; also as `assertOwnIndices`
 */
export const identityOf = async (
  name: string,
  refusal: string | undefined,
  context: CommandContext,
): Promise<GenerationBody> => {
  const identity = await recordedIdentityOf(name, context)
  await assertOwnIndices(identity, refusal, context)
  return identity
}

/** As `identityOf`, also if its indices were restored: for commands that read none of its documents. */
export const recordedIdentityOf = async (name: string, { send, prefix }: CommandContext): Promise<GenerationBody> => {
  const identity = await readGeneration(name, { request: send, prefix })
  if (identity) return identity
  throw new CommandError(`there is no generation ${name} (npx commission projection list)`)
}

/**
 * Checks a generation. A bad spare generation blocks nothing: it is named, and the operator can drop it.
 * @returns undefined for a spare generation that `check` refuses with a CommandError or a StopError
 */
export const skipBadSpare = async <Result>(
  name: string,
  live: string,
  check: () => Promise<Result>,
  { say }: Pick<CommandContext, 'say'>,
): Promise<Result | undefined> => {
  try {
    return await check()
  } catch (error) {
    if (name === API_KEYS_GENERATION || name === live) throw error
    if (!(error instanceof StopError || error instanceof CommandError)) throw error
    say(`${name} is skipped: ${error.message}`)
    return undefined
  }
}

/** Returns the generations whose indices take all writes. @throws StopError for API keys and the live generation */
export const writableOf = async (
  names: readonly string[],
  live: string,
  context: CommandContext,
): Promise<readonly string[]> => {
  const writable: string[] = []
  for (const name of names) {
    const check = async (): Promise<void> => {
      await assertSuitable(await recordedIdentityOf(name, context), { request: context.send, prefix: context.prefix })
      writable.push(name)
    }
    await skipBadSpare(name, live, check, context)
  }
  return writable
}

/** The next offset of every partition, in order: all before it are published. */
export const positionsOf = async (
  identity: Pick<GenerationBody, 'generation' | 'partitions'>,
  context: Pick<CommandContext, 'send' | 'prefix'>,
): Promise<number[]> => (await positionDocumentsOf(identity, context)).map(({ position }) => position)

/** As `positionsOf`, for commands that answer from documents. @throws as `servedDocumentsOf` */
export const servedPositionsOf = async (
  identity: Pick<GenerationBody, 'generation' | 'partitions' | 'topic'>,
  context: Pick<CommandContext, 'send' | 'prefix'>,
  only?: number,
): Promise<number[]> => (await servedDocumentsOf(identity, context, only)).map(({ position }) => position)

/**
 * As `positionDocumentsOf`, for commands that answer from documents: like the API, they answer nothing from a partition
 * that is read again after a restore, where records are missing and keys are in an earlier state.
 * @param only this partition counts; by default all do
 * @throws CommandError that names a partition that is not read again yet, or from which documents are being removed
 */
export const servedDocumentsOf = async (
  identity: Pick<GenerationBody, 'generation' | 'partitions' | 'topic'>,
  context: Pick<CommandContext, 'send' | 'prefix'>,
  only?: number,
): Promise<PositionDocument['body'][]> => {
  const { generation, topic } = identity
  const documents = await positionDocumentsOf(identity, context)
  for (const [partition, document] of documents.entries()) {
    if ((only ?? partition) !== partition || isServed(document)) continue
    const { position, serve_from = 0 } = document
    const risk = generation === API_KEYS_GENERATION ? 'a revoked key could look valid' : 'records could be missing'
    const where = `${generation} is at ${position} in partition ${partition} of ${topic}`
    if (position < serve_from)
      throw new CommandError(`${where}, and reads again up to ${serve_from}: ${risk}. Run the same command again then`)
    const what = `${where}, and adopt or rewind removes documents there: ${risk}`
    throw new CommandError(`${what}. Let it end; if it was interrupted, run it again`)
  }
  return documents
}

/**
 * The positions up to which readers may have seen a generation, in order. After a restore its positions are lower, and
 * the API does not serve it before these.
 */
export const seenPositionsOf = async (
  identity: Pick<GenerationBody, 'generation' | 'partitions'>,
  context: CommandContext,
): Promise<number[]> =>
  (await positionDocumentsOf(identity, context)).map(({ position, serve_from = 0 }) => Math.max(position, serve_from))

/** Says until when readers of a partition wait; undefined if they do not. @param end where its topic ends */
export const waitOf = (
  { position, serve_from = 0, removing }: Pick<PositionDocument['body'], 'position' | 'serve_from' | 'removing'>,
  end: number,
): string | undefined => {
  if (removing) return 'answers 503 until adopt or rewind, which removes documents, has ended: run it again'
  if (position >= serve_from) return undefined
  return `answers 503 until offset ${serve_from}${end < serve_from ? `: its topic ends at ${end}` : ''}`
}

/** Names the partitions of the live generation that wait for more records than their topic has. */
export const sayWaits = async (live: string, ends: Ends, context: CommandContext): Promise<void> => {
  const identity = await recordedIdentityOf(live, context)
  for (const [partition, position] of (await positionDocumentsOf(identity, context)).entries()) {
    const end = endOfPartition(partition, ends)
    const wait = end < (position.serve_from ?? 0) && !position.removing ? waitOf(position, end) : undefined
    if (wait !== undefined) context.say(`partition ${partition} of ${identity.topic} ${wait}. ${PUBLISH_AGAIN}`)
  }
}

const PUBLISH_AGAIN =
  'Readers may have seen the records that are missing: let publishers publish them again (docs/generations.md, "The topic ends before what readers have seen")'

/** The number of records before these positions. */
export const recordsBefore = (positions: readonly number[]): number =>
  positions.reduce((sum, position) => sum + position, 0)

/**
 * Returns the published position of every partition, in order. At rest only the document of times tells up to when
 * everything is included: its times count here too.
 */
export const positionDocumentsOf = async (
  { generation, partitions }: Pick<GenerationBody, 'generation' | 'partitions'>,
  { send, prefix }: Pick<CommandContext, 'send' | 'prefix'>,
): Promise<PositionDocument['body'][]> => {
  const docs = Array.from({ length: partitions }, (_, partition) =>
    controlAddress(prefix, positionId(generation, partition)),
  )
  const all = [...docs, controlAddress(prefix, timesId(generation))]
  const documents = await getEach(all, part => multiGet<PositionDocument | TimesDocument>(send, part))
  const times = documents.flatMap(found => (found.found && found._source.kind === 'times' ? [found._source.body] : []))
  return docs.map((_, partition) => {
    const found = documents[partition]
    if (found?.found && found._source.kind === 'position') {
      return withTime(found._source.body, times[0]?.partitions[partition])
    }
    throw new CommandError(`generation ${generation} has no position for partition ${partition}`)
  })
}

/** @throws CommandError if their sources differ: they cannot be compared */
export const assertOfOneSource = (a: GenerationBody, b: GenerationBody): void => {
  const field = differingField(a, b)
  if (field === undefined) return
  const both = `${a.generation} and ${b.generation}`
  throw new CommandError(`${both} are of different sources: ${field} is ${a[field]} and ${b[field]}`)
}

/**
 * Deletes everything of a generation that no process reads or writes any more. One request deletes all indices, so that
 * nobody finds only some of them. Its own document goes last: until then `drop` can be repeated.
 */
export const deleteGeneration = async (
  generation: string,
  group: string,
  admin: Pick<Admin, 'deleteGroups'> | undefined,
  context: CommandContext,
): Promise<void> => {
  const { send, prefix } = context
  const { indices = [], positions = [] } = (await findRemains(context)).get(generation) ?? {}
  const remove = async (path: string, query?: Request['query']): Promise<void> => {
    const { status } = await send({ method: 'DELETE', path, ...(query && { query }) })
    if (status !== 200 && status !== 404) throw new CommandError(`${generation} cannot be deleted: ${status}`)
  }
  if (indices.length > 0) await remove(`/${indices.join()}`, { ignore_unavailable: true })
  if (admin !== undefined) await deleteGroup(group, admin, context)
  const past = await listPastPositions(generation, { send, prefix })
  // A position tells a repeated drop which partition is left, so it goes after what else the partition has.
  const ids = positions.flatMap(partition => [writtenId(generation, partition), positionId(generation, partition)])
  for (const id of [...past, timesId(generation), ...ids, generationId(generation)]) {
    await remove(documentPath(controlIndexOf(prefix), id))
  }
}

/** Deletes the past positions of a generation: no rewind goes back to them. @param after only those of later times */
export const forgetPastPositions = async (
  generation: string,
  context: CommandContext,
  after?: number,
): Promise<void> => {
  const addresses = (await listPastPositions(generation, context, after)).map(id => controlAddress(context.prefix, id))
  await carryOut(
    addresses.map(address => ({ ...address, lines: [{ delete: address }] })),
    context,
  )
}

/** A group that stays harms nothing: Kafka deletes one without members some days later. */
const deleteGroup = async (
  group: string,
  admin: Pick<Admin, 'deleteGroups'>,
  { say }: Pick<CommandContext, 'say'>,
): Promise<void> => {
  try {
    await withRight('Delete', `group ${group}`, admin.deleteGroups([group]))
  } catch (error) {
    if (error instanceof StopError) say(`${error.message}: it stays`)
  }
}

export const namesOf = ({ live, active, building, previous }: Generations): string[] => [
  ...new Set([live, ...active, ...(building === null ? [] : [building]), ...(previous === null ? [] : [previous])]),
]

/** @param topic of this generation: after `grow`, nobody goes back to those before */
export const rolesOf = (
  name: string,
  topic: string | null,
  { live, active, building, previous, compared, ...all }: Generations,
): string[] => [
  ...(name === live ? ['live'] : []),
  ...(name === building ? ['building'] : []),
  ...(formerTopicsIn(all).some(former => former.topic === topic)
    ? ['of the topic before']
    : [...(name === previous ? ['previous'] : []), ...(name !== live && active.includes(name) ? ['kept up'] : [])]),
  ...Object.entries(compared).flatMap(([pair, { found }]) => {
    const [a = '', b = ''] = pair.split(' ')
    if (name === live || (name !== a && name !== b)) return []
    return [`${found === 'equal' ? 'equal to' : 'different from'} ${name === a ? b : a}`]
  }),
]

export const listGenerations = async (
  { json }: { readonly json: boolean },
  context: CommandContext,
): Promise<ExitCode> => {
  const generations = await readAll(context)
  const remains = await findRemains(context)
  const { partitions: ofLive } = await recordedIdentityOf(generations.live, context)
  const named = namesOf(generations)
  for (const name of [...named, ...[...remains.keys()].filter(name => !named.includes(name))]) {
    const identity = await readGeneration(name, { request: context.send, prefix: context.prefix })
    const { topic = null, rules_version = null, follows, partitions = ofLive } = identity ?? {}
    const found = remains.get(name)
    const records = await recordsOf(name, found?.positions ?? [], context)
    const isFollowing = follows !== undefined && generations.independentFrom[name] === undefined
    const roles = [
      ...rolesOf(name, topic, generations),
      ...(isFollowing ? [`follows ${follows}`] : []),
      ...(named.includes(name) ? [] : ['left over']),
      ...(identity && found && isWhole(found, partitions, layoutOf(context.prefix, identity)) ? [] : ['not whole']),
    ]
    if (json) context.out(`${JSON.stringify({ generation: name, roles, rules_version, topic, records })}\n`)
    else {
      const projected = identity
        ? `rules version ${rules_version}; ${records} records of ${topic}`
        : adviceOf(name, generations)
      context.out(`${name}  ${roles.join(', ')}; ${projected}\n`)
    }
  }
  return exitCodes.done
}

/** Advice for a generation without its own document, which names its source. */
const adviceOf = (name: string, { building }: Generations): string =>
  `${name === building ? 'npx commission projection rebuild continues it, ' : ''}npx commission projection drop ${name} removes it`

/** Sums the published positions of these partitions. */
export const recordsOf = async (
  generation: string,
  partitions: readonly number[],
  { send, prefix }: CommandContext,
): Promise<number> => {
  if (partitions.length === 0) return 0
  const docs = partitions.map(partition => controlAddress(prefix, positionId(generation, partition)))
  const found = await getEach(docs, part => multiGet<PositionDocument>(send, part))
  return found.reduce((sum, document) => sum + (document.found ? document._source.body.position : 0), 0)
}

type Steps = Pick<CommandContext, 'send' | 'prefix'>

/** Reads a document of the control index. @returns undefined if there is none */
export const readStored = async <Document>(
  id: string,
  { send, prefix }: Steps,
): Promise<DocumentAnswer<Document> | undefined> => {
  const path = documentPath(controlIndexOf(prefix), id)
  const { status, body } = await send<DocumentAnswer<Document>>({ method: 'GET', path })
  if (status === 200) return body
  if (status === 404) return undefined
  throw new CommandError(`${id} cannot be read: Elasticsearch answers ${status}`)
}

/** As `readStored`. @throws CommandError if there is none */
export const expectStored = async <Document>(id: string, steps: Steps): Promise<DocumentAnswer<Document>> => {
  const stored = await readStored<Document>(id, steps)
  if (stored) return stored
  throw new CommandError(`${id} is not under ${steps.prefix}`)
}

/** Changes the present version of a document. @returns whether there is one */
export const changeStored = async <Document extends object>(
  id: string,
  make: (now: Document) => Document,
  steps: Steps,
): Promise<boolean> => {
  for (;;) {
    const stored = await readStored<Document>(id, steps)
    if (stored === undefined) return false
    if (await replaceStored(id, stored, make(stored._source), steps)) return true
  }
}

/** @returns whether the document still had the version that was read */
export const replaceStored = async (
  id: string,
  read: DocumentAnswer<unknown>,
  document: object,
  { send, prefix }: Steps,
): Promise<boolean> => {
  const path = documentPath(controlIndexOf(prefix), id)
  const { status } = await send({ method: 'PUT', path, query: ifVersion(read), body: document })
  if (status === 200) return true
  if (status === 409) return false
  throw new CommandError(`${id} cannot be written: Elasticsearch answers ${status}`)
}

/** As `replaceStored`. @throws CommandError if the document has another version by now */
export const replaceUnchanged = async (
  id: string,
  read: DocumentAnswer<unknown>,
  document: object,
  steps: Steps,
): Promise<void> => {
  if (await replaceStored(id, read, document, steps)) return
  throw new CommandError(`${id} was changed meanwhile: stop all projectors, and run the same again`)
}
