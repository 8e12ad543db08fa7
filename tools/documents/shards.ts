/**
 * Whether all shards took part in an answer of Elasticsearch, and are the recorded ones: if not, a list would be short,
 * or a count too low.
 */
import type { GenerationBody } from '../../core/log/index.ts'
import { Unanswered } from '../../core/runtime/index.ts'
import { type Answer, assertSameIndices, type Coverage, causeType } from '../../core/store/index.ts'
import { missingAmong } from '../../schemas/stored/shard-ids.ts'
import type { CommandContext } from '../context.ts'
import { CommandError } from '../failures.ts'
import { type RetryContext, withRetries } from './read-retries.ts'

type Recorded = Pick<GenerationBody, 'generation' | 'indices' | 'shards' | 'lost'>

/**
 * A restored index can lack the last records, and have keys and payouts in an earlier state: nothing is answered from
 * it before it is taken over, as by the API. Of a generation of an older version no ids are known.
 * @param refusal as of `refuseUncompared`: each command says what it does about a shard that cannot be compared
 * @throws StopError `index_missing`, `index_replaced`; also as `refuseUncompared`
 */
export const assertOwnIndices = async (
  identity: Recorded,
  refusal: string | undefined,
  context: Pick<CommandContext, 'send' | 'prefix' | 'say'>,
): Promise<void> => refuseUncompared(await findUncompared(identity, context), refusal, context)

/**
 * As `assertOwnIndices`, for a caller that refuses later.
 * @returns a recorded shard that could not be compared: it has no id now, or the user has no right to ask for it
 */
export const findUncompared = async (
  identity: Recorded,
  { send, prefix }: Pick<CommandContext, 'send' | 'prefix'>,
): Promise<string | undefined> => {
  if (identity.indices === undefined) return undefined
  return missingAmong(identity.shards, await assertSameIndices(identity, { request: send, prefix }))[0]
}

/**
 * As the API before a checkpoint: documents may be missing in a shard that cannot be compared.
 * @param refusal the end of the error, such as "Nothing was signed"; undefined for a command that only warns
 * @throws CommandError
 */
export const refuseUncompared = (
  shard: string | undefined,
  refusal: string | undefined,
  { say }: Pick<CommandContext, 'say'>,
): void => {
  if (shard === undefined) return
  const what = `the shard ${shard} cannot be compared with the recorded one, and documents may be missing`
  const advice = 'its node may be away, or this user lacks monitor on the indices (docs/access.md)'
  if (refusal !== undefined) throw new CommandError(`${what}: ${advice}. ${refusal}`)
  say(`${what}: ${advice}`)
}

/** Of a search. Elasticsearch does not count a shard that no node has as failed. */
const isComplete = ({ status, body: { _shards, timed_out } }: Answer<Coverage>): boolean =>
  status === 200 && _shards?.failed === 0 && _shards.successful === _shards.total && timed_out !== true

/** Of a refresh. A missing replica does no harm, and a search tells of a shard without any copy. */
const isRefreshed = ({ status, body: { _shards } }: Answer<Coverage>): boolean =>
  status === 200 && _shards?.failed === 0

/** A shard is away, or an index is gone. */
export class NotWhole extends CommandError {}

/**
 * Returns the body of a search that all shards answered in time.
 * @param what is read: the names of indices, or a plural noun
 * @throws NotWhole `… cannot be read whole`
 */
export const wholeAnswer = <Body extends Coverage>(what: string, answer: Answer<Body>): Body => {
  if (isComplete(answer)) return answer.body
  throw notWhole(what, answer)
}

/** A shard that is not refreshed lacks its last documents. @throws NotWhole as `wholeAnswer` */
export const assertRefreshed = (what: string, answer: Answer<Coverage>): void => {
  if (!isRefreshed(answer)) throw notWhole(what, answer)
}

/**
 * Refreshes before all documents are read, again if a shard is away: without its last documents, two generations that
 * both lack them would look equal. Of a missing index, the read that follows tells.
 * @throws Unanswered, NotWhole
 */
export const refreshAll = (indices: string, reading: RetryContext): Promise<void> =>
  withRetries(reading, async () => {
    const refreshed = await reading.send<Coverage>({ method: 'POST', path: `/${indices}/_refresh` })
    if ((refreshed.body._shards?.failed ?? 0) > 0) throw new Unanswered('elasticsearch', 503)
    if (refreshed.status !== 404) assertRefreshed(indices, refreshed)
  })

const notWhole = (what: string, { status, body }: Answer): NotWhole => {
  const got = [status, causeType(body)].filter(part => part !== undefined).join(', ')
  const why = status === 200 ? 'a shard is away, or the time was up' : `Elasticsearch answers ${got}`
  return new NotWhole(`${what} cannot be read whole: ${why}`)
}
