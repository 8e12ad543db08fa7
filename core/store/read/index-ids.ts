/**
 * In: names of indices. Out: their ids, so that a caller notices other indices of the same names.
 * Promises: no document is read. The user sees all documents of these indices, as far as Elasticsearch tells it.
 * Can go wrong: an obstacle for reads, a role that hides documents, an answer of another form → `unavailable`.
 */
import { hiddenAmong } from '../../../schemas/stored/hiding-roles.ts'
import { INDEX_ID_FILTER, indexIdsIn, OBSTACLES_FILTER, obstacleIn } from '../../../schemas/stored/index-ids.ts'
import { shardIdsIn, shardIdsRequest } from '../../../schemas/stored/shard-ids.ts'
import { unavailable } from '../../runtime/index.ts'
import { isUnknownPath, type OwnRoles, readOwnRoles, type Told } from '../elasticsearch/own-roles.ts'
import { MASTER_WAIT } from '../limits.ts'
import { requireAnswer, type TooMuch } from './answer-budget.ts'
import type { Otherwise } from './transport.ts'

/**
 * Returns the ids of these indices by name, from the cluster state: no shard is read. Indices that are missing, or
 * that no role shows to this user, are left out.
 * @param withShards also returns the ids of their primary shards, as `ShardIds`. This needs the right `monitor`
 * @throws Refusal `runtime_fields`; `index_closed`; `reads_blocked`; `documents_hidden` if a role hides a part of one
 *   from this user; `roles_unknown` if no answer tells that, and one did before, or it is asked `withShards`
 */
export type IndexIds = (
  names: readonly string[],
  signal: AbortSignal,
  withShards?: boolean,
) => Promise<ReadonlyMap<string, string>>

/** Sends a GET. */
type Get = <Said extends string = never>(
  path: string,
  signal: AbortSignal,
  otherwise?: Otherwise<Said>,
) => Promise<Buffer | TooMuch | Said>

export const createIndexIds = (get: Get): IndexIds => {
  let wasTold = false

  const requireSeesAll = (roles: OwnRoles, indices: readonly string[], isForSignature: boolean): void => {
    if (typeof roles === 'object') {
      if (hiddenIn(roles.privileges, indices)) throw unavailable('documents_hidden')
      wasTold = true
    } else if (roles === 'not told' && (wasTold || isForSignature)) throw unavailable('roles_unknown')
  }

  return async (names, signal, withShards = false) => {
    const fields = `${INDEX_ID_FILTER},${OBSTACLES_FILTER}`
    const query = `ignore_unavailable=true&master_timeout=${MASTER_WAIT}&filter_path=${fields}`
    const askRoles = async (question: string): Promise<Told> => {
      const answer = await get(question, signal, whyUntold)
      return answer === 'unknown' || answer === 'refused' ? answer : { answer: readRoles(requireAnswer(answer)) }
    }
    const [answer, roles, shards] = await Promise.all([
      get(`/${names.join()}?${query}`, signal),
      readOwnRoles(askRoles),
      withShards ? get(shardIdsPath(names), signal) : undefined,
    ])
    const ids = readIndexIds(requireAnswer(answer))
    requireSeesAll(roles, [...ids.keys()], withShards)
    return shards === undefined ? ids : new Map([...ids, ...readShardIds(requireAnswer(shards), names)])
  }
}

/** The statuses without security, for an API key with roles of its own, and behind a proxy that permits no question. */
const tellsNothing: ReadonlySet<number | null> = new Set([400, 403, 404, 405, 410, 501])

const whyUntold: Otherwise<Exclude<Told, object>> = ({ statusCode, headers }) => {
  if (!tellsNothing.has(statusCode)) return undefined
  const isOfElasticsearch = headers?.['x-elastic-product'] === 'Elasticsearch'
  return isOfElasticsearch && isUnknownPath(statusCode) ? 'unknown' : 'refused'
}

const readRoles = (answer: Buffer): unknown => {
  try {
    return JSON.parse(answer.toString('utf8'))
  } catch {
    throw unavailable('elasticsearch_malformed_privileges')
  }
}

const hiddenIn = (privileges: unknown, indices: readonly string[]): boolean => {
  try {
    return hiddenAmong(privileges, indices) !== undefined
  } catch {
    throw unavailable('elasticsearch_malformed_privileges')
  }
}

/** @throws Refusal: see `obstacleIn`. A projector stops or waits, too, but perhaps none runs */
const readIndexIds = (answer: Buffer): Map<string, string> => {
  const { ids, obstacle } = parseIndices(answer)
  if (obstacle !== undefined) throw unavailable(obstacle)
  return ids
}

const shardIdsPath = (names: readonly string[]): string => {
  const { path, query } = shardIdsRequest(names.join())
  return `${path}?${new URLSearchParams({ ...query, ignore_unavailable: 'true' })}`
}

const readShardIds = (answer: Buffer, names: readonly string[]): [shard: string, id: string][] => {
  try {
    return Object.entries(shardIdsIn(JSON.parse(answer.toString('utf8')), names))
  } catch {
    throw unavailable('elasticsearch_malformed_index_ids')
  }
}

/** Drops the parser's error, because its message quotes the answer. */
const parseIndices = (answer: Buffer): { ids: Map<string, string>; obstacle: ReturnType<typeof obstacleIn> } => {
  try {
    const indices: unknown = JSON.parse(answer.toString('utf8'))
    return { ids: indexIdsIn(indices), obstacle: obstacleIn(indices as object) }
  } catch {
    throw unavailable('elasticsearch_malformed_index_ids')
  }
}
