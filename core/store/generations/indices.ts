/**
 * Lists the indices under a prefix, all in one response. The same pattern also matches the indices of another
 * installation whose prefix begins with this one: their names tell them apart.
 */
import {
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  controlIndexOf,
  type GenerationDocument,
  kinds,
} from '../../../schemas/stored/documents.ts'
import { hiddenAmong } from '../../../schemas/stored/hiding-roles.ts'
import { INDEX_ID_FILTER, indexIdsIn } from '../../../schemas/stored/index-ids.ts'
import {
  lostAmong,
  missingAmong,
  recordableIds,
  type ShardIds,
  shardCountsRequest,
  shardIdsIn,
  shardIdsRequest,
} from '../../../schemas/stored/shard-ids.ts'
import { StopError, Unanswered } from '../../runtime/index.ts'
import type { Ask } from '../elasticsearch/client.ts'
import { isUnknownPath, type OwnRoles, readOwnRoles, type Told } from '../elasticsearch/own-roles.ts'

type Steps = { readonly request: Ask; readonly prefix: string }

/** Returns the id of every index whose name begins with the prefix and a dash, also of closed and hidden ones. */
export const listIndices = async ({ request, prefix }: Steps): Promise<Map<string, string>> => {
  const { status, body } = await request({
    method: 'GET',
    path: `/${prefix}-*/_settings`,
    query: { expand_wildcards: 'all', filter_path: INDEX_ID_FILTER },
  })
  if (status === 200) return indexIdsIn(body)
  throw new StopError('index_missing', `the indices ${prefix}-* cannot be listed`, { status })
}

/** Returns the generations in `{prefix}-{generation}-{kind}`. No generation has a dash in its name. */
export const generationsAmong = (prefix: string, names: readonly string[]): Set<string> =>
  new Set(names.flatMap(name => generationOf(prefix, name) ?? []))

/** Returns the indices that only a projection under this prefix creates, after the control index. */
export const projectedIn = (prefix: string, names: readonly string[]): string[] => {
  const ofKeys = [apiKeysIndexOf(prefix), apiKeysParkedIndexOf(prefix)]
  return names.filter(name => ofKeys.includes(name) || generationOf(prefix, name) !== undefined).sort()
}

const generationOf = (prefix: string, name: string): string | undefined => {
  if (!name.startsWith(`${prefix}-`)) return undefined
  const [generation, kind, ...others] = name.slice(prefix.length + 1).split('-')
  return others.length === 0 && kinds.some(known => known === kind) ? generation : undefined
}

/** Returns the ids of these and of the control index, which holds their positions. @throws StopError `index_missing` */
export const readIndexIds = async (names: readonly string[], steps: Steps): Promise<Record<string, string>> => {
  const ids = await listIndices(steps)
  const wanted = [controlIndexOf(steps.prefix), ...names].map(name => {
    const id = ids.get(name)
    if (id === undefined) throw new StopError('index_missing', name)
    return [name, id] as const
  })
  return Object.fromEntries(wanted)
}

/**
 * Returns the ids of the primary shards of these and of the control index; undefined without the right `monitor`. A 404
 * tells none, as an answer of Elasticsearch while nodes are away: perhaps the proxy that sent it only reloads.
 * @param isOptional false: a 404 of a proxy is an error, for a caller that takes a shard without an id for the same one
 */
export const readShardIds = async (
  names: readonly string[],
  { request, prefix }: Steps,
  isOptional = true,
): Promise<ShardIds | undefined> => {
  const answer = await withoutRight(request({ ...shardIdsRequest(`${prefix}-*`), isOptional }))
  if (answer === undefined) return undefined
  return answer.status === 200 ? shardIdsIn(answer.body, withControl(names, prefix)) : {}
}

/** As `readShardIds`. Also undefined while one of these shards has no id. */
export const readRecordableIds = async (
  names: readonly string[],
  steps: Steps,
  isOptional = true,
): Promise<ShardIds | undefined> => {
  const { request, prefix } = steps
  const ids = await readShardIds(names, steps, isOptional)
  if (ids === undefined) return undefined
  const { status, body } = await request(shardCountsRequest(prefix))
  return status === 200 ? recordableIds(ids, body, withControl(names, prefix)) : undefined
}

const withControl = (names: readonly string[], prefix: string): readonly string[] => [
  ...new Set([controlIndexOf(prefix), ...names]),
]

/** Returns undefined if the user has not the right, or Elasticsearch does not know the request. */
const withoutRight = <Result>(asked: Promise<Result>): Promise<Result | undefined> =>
  asked.catch((error: unknown) => {
    if (isWithoutRight(error)) return undefined
    throw error
  })

/** Why no id of a recorded shard is told. */
export const MAY_NOT_ASK = 'this user lacks the privilege `monitor` on the indices'

const isWithoutRight = (error: unknown): error is StopError =>
  error instanceof StopError && ['access_refused', 'write_refused'].includes(error.code)

type Recorded = Pick<GenerationDocument['body'], 'generation' | 'indices' | 'shards' | 'lost'>
/** `read`: indices whose documents were read before. Each of their recorded shards must have an id now. */
export type CompareSteps = Steps & { readonly read?: readonly string[] }

/** In words: what the user sees. `no security`: all. */
export type Sight = 'all' | 'all of the roles of its key' | Extract<OwnRoles, string>

/**
 * Asks Elasticsearch whether the user sees all documents of these indices, with all fields.
 * @returns `not told` if it is not known: a proxy permits no such question, or perhaps the answer to an optional one is
 *   of a proxy. An API key with roles of its own sees all that these show
 * @param isOptional false: a 404 of a proxy is an error, for what cannot be taken back
 * @throws StopError `documents_hidden`; `write_refused` if its answer has another form
 */
export const assertSeesAll = async (
  indices: readonly string[],
  { request }: Pick<Steps, 'request'>,
  isOptional = true,
): Promise<Sight> => {
  const ask = async (path: string): Promise<Told> => {
    try {
      const { status, body } = await request({ method: 'GET', path, isOptional })
      if (status === 200) return { answer: body }
      return isUnknownPath(status) && !isOptional ? 'unknown' : 'refused'
    } catch (error) {
      if (!isWithoutRight(error)) throw error
      const { status, isOfElasticsearch } = error.where
      return isUnknownPath(Number(status)) && isOfElasticsearch ? 'unknown' : 'refused'
    }
  }
  const roles = await readOwnRoles(ask)
  if (typeof roles === 'string') return roles
  const index = hiddenIn(roles.privileges, indices)
  if (index === undefined) return roles.isAll ? 'all' : 'all of the roles of its key'
  const what = `a role of this ${roles.isAll ? 'user' : 'API key'} has query or field_security`
  throw new StopError('documents_hidden', `${index}: ${what}; give it only the role of deploy/access/`, { index })
}

const hiddenIn = (answer: unknown, indices: readonly string[]): string | undefined => {
  try {
    return hiddenAmong(answer, indices)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new StopError('write_refused', 'the privileges of this user have another form')
  }
}

/**
 * Elasticsearch leaves out the ids of a node that does not answer, with status 200. Such a shard counts as the same
 * one, unless its index is one of `read`. So do all recorded shards without the right to ask for ids.
 * @param tellLost called with a shard that is another one than recorded, before the error
 * @returns the ids of shards; undefined if none are recorded, or the user has no right to ask for them
 * @throws StopError `index_missing`, `index_replaced`: positions say nothing about documents of another copy;
 *   `documents_hidden`; Unanswered if a shard of `read` has no id now
 */
export const assertSameIndices = async (
  { generation, indices = {}, shards, lost: known }: Recorded,
  steps: CompareSteps,
  tellLost: (shard: string) => Promise<unknown> = async () => undefined,
): Promise<ShardIds | undefined> => {
  const names = Object.keys(indices)
  await assertSeesAll([controlIndexOf(steps.prefix), ...names], steps)
  const ids = await readIndexIds(names, steps)
  const replaced = names.find(name => ids[name] !== indices[name])
  if (replaced !== undefined) {
    const advice = 'to take it over: npx commission projection rewind, or npx commission projection adopt'
    throw new StopError('index_replaced', `${replaced}, an index of ${generation}; ${advice}`, { generation })
  }
  const found = known === undefined && shards ? await readShardIds(names, steps) : undefined
  const lost = known ?? lostAmong(shards, found)
  if (lost === undefined) return assertTold(found, shards, steps.read)
  await tellLost(lost)
  const what = `the shard ${lost} of ${generation} is another one than recorded, and documents may be missing`
  throw new StopError('index_replaced', `${what}; to read all again: npx commission projection adopt`, { generation })
}

const assertTold = (
  found: ShardIds | undefined,
  recorded: ShardIds | undefined,
  read: readonly string[] = [],
): ShardIds | undefined => {
  const [shard] = missingAmong(recorded, found, index => read.includes(index))
  if (shard === undefined) return found
  const why = found === undefined ? `: ${MAY_NOT_ASK}` : ''
  throw new Unanswered('elasticsearch', 503, `no id of the shard ${shard}${why}`)
}
