/** Whether all shards took part in an answer of Elasticsearch: if not, a list would be short, or a count too low. */
import { type Answer, type Coverage, causeType } from '../../core/store/index.ts'
import { CommandError } from '../failures.ts'

/** Of a search. Elasticsearch does not count a shard that no node has as failed. */
const isComplete = ({ status, body: { _shards, timed_out } }: Answer<Coverage>): boolean =>
  status === 200 && _shards?.failed === 0 && _shards.successful === _shards.total && timed_out !== true

/** Of a refresh. A missing replica does no harm, and a search tells of a shard without any copy. */
const isRefreshed = ({ status, body: { _shards } }: Answer<Coverage>): boolean =>
  status === 200 && _shards?.failed === 0

/**
 * Returns the body of a search that all shards answered in time.
 * @param what is read: the names of indices, or a plural noun
 * @throws CommandError `… cannot be read whole`
 */
export const wholeAnswer = <Body extends Coverage>(what: string, answer: Answer<Body>): Body => {
  if (isComplete(answer)) return answer.body
  throw notWhole(what, answer)
}

/** A shard that is not refreshed lacks its last documents. @throws CommandError as `wholeAnswer` */
export const assertRefreshed = (what: string, answer: Answer<Coverage>): void => {
  if (!isRefreshed(answer)) throw notWhole(what, answer)
}

const notWhole = (what: string, { status, body }: Answer): CommandError => {
  const got = [status, causeType(body)].filter(part => part !== undefined).join(', ')
  const why = status === 200 ? 'a shard is away, or the time was up' : `Elasticsearch answers ${got}`
  return new CommandError(`${what} cannot be read whole: ${why}`)
}

export const hasFailedShards = ({ body }: Answer<Coverage>): boolean => (body._shards?.failed ?? 0) > 0
