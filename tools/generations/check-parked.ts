/**
 * Finds records that the live generation has parked and another one has applied. HAZARD: after a swap readers would see
 * these events beside the corrected ones that publishers sent since, and both would be paid. Refuses such a swap unless
 * it is forced. Two generations of equal rules that were found equal have no such records; others have some if a shard
 * was lost. Also refuses to read such a generation again without the one whose parked records it took over.
 */

import type { GenerationBody } from '../../core/log/index.ts'
import { StopError, Unanswered } from '../../core/runtime/index.ts'
import {
  type Coverage,
  type Generations,
  getEach,
  getFromPrimaries,
  readGeneration,
  readIndexIds,
  type SearchAnswer,
} from '../../core/store/index.ts'
import { pairOf } from '../../schemas/stored/comparisons.ts'
import type { PositionDocument } from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import { assertOwnIndices, assertRefreshed, NotWhole, wholeAnswer } from '../documents/shards.ts'
import { CommandError } from '../failures.ts'
import { DIFFERENCES_SHOWN, SEARCH_HITS } from '../limits.ts'
import { lagOf } from '../live.ts'
import { positionDocumentsOf, positionsOf, readAll } from './generations.ts'

/** Offsets by partition. */
type Positions = readonly number[]

type Checked = {
  /** The positions up to which all records were checked. */
  readonly to: Positions
  /** The number of records that the live generation has parked, and that the other one has not decided yet. */
  readonly undecided: number
}

/** The end of a refusal of a swap without `--force`. */
export const REFUSED_UNFORCED = 'Nothing is changed. Try again, or --force with a reason'

/**
 * If no parked record is undecided, the check covers all that the live generation had published when the search began:
 * a projector writes a parked record before it publishes a position after it.
 * @param from positions up to which records were checked before; undefined for none
 * @param force the operator's reason to swap in spite of such records
 * @throws CommandError without `force` if there are such records, or if a shard that may have some cannot be compared
 */
export const refuseUnparked = async (
  identity: GenerationBody,
  live: GenerationBody,
  from: Positions | undefined,
  force: string | undefined,
  context: CommandContext,
): Promise<Checked> => {
  // The next call begins at the first record that one of them has not decided yet.
  const ofLive = await positionDocumentsOf(live, context)
  const decided = ofLive.map(({ position }) => position)
  const own = await positionsOf(identity, context)
  const to = own.map((position, partition) => Math.min(position, decided[partition] ?? 0))
  if (parkAlike(identity, live, await readAll(context))) return { to, undecided: 0 }
  const servedFrom = ofLive.map(({ position, serve_from = 0, removing }) => (removing ? position + 1 : serve_from))
  const left = from === undefined ? lagOf(servedFrom, decided) : 0
  let [count, undecided] = [0, 0]
  const shown: string[] = []
  const isAlike = decideAlike(identity, live)
  for await (const parked of knownParkedOf(live, from ?? to.map(() => 0), left, isAlike, force, context)) {
    const known = parked.filter(({ sort: [partition, offset] }) => offset < (own[partition] ?? 0))
    undecided += parked.length - known.length
    const { addressOf } = layoutOf(context.prefix, identity)
    // Without its source: a parked record may be large, and only its existence counts.
    const docs = known.map(({ _id }) => ({ ...addressOf('parked', _id), _source: false as const }))
    const found = await getEach(docs, part => getFromPrimaries(context.send, part))
    const unparked = found.flatMap(document => (document.found ? [] : [document._id]))
    count += unparked.length
    shown.push(...unparked.slice(0, DIFFERENCES_SHOWN - shown.length))
  }
  if (count === 0) return { to, undecided }
  const more = count > shown.length ? ` and ${count - shown.length} more` : ''
  const records =
    count === 1 ? `1 record that ${live.generation} parked is` : `${count} records that ${live.generation} parked are`
  const what = `${records} applied in ${identity.generation}: ${shown.join(', ')}${more}`
  if (force === undefined) {
    throw new CommandError(`${what}. Corrected events may have replaced them: check them, or --force with a reason`)
  }
  context.say(`${what} (forced: ${force})`)
  return { to, undecided }
}

/** @param left records that the live generation reads again @throws CommandError if there are any and no `force` */
const refuseReadAgain = (
  left: number,
  { generation }: GenerationBody,
  force: string | undefined,
  { say }: CommandContext,
): void => {
  if (left === 0) return
  const records = `${left} ${left === 1 ? 'record' : 'records'}`
  const what = `${generation} reads ${records} again after a restore: it is not known which of them it parked`
  if (force === undefined) throw new CommandError(`${what}. Wait for it, or --force with a reason`)
  say(`${what} (forced: ${force})`)
}

/**
 * As `parkedOf`. HAZARD: under equal rules, a lost shard of the live generation must not refuse a forced swap: the
 * other generation decides alike, and readers get no answer until the swap. Then it yields what it can read.
 * @param left records that the live generation reads again
 * @throws CommandError without `force`, or under other rules
 */
async function* knownParkedOf(
  live: GenerationBody,
  from: Positions,
  left: number,
  isAlike: boolean,
  force: string | undefined,
  context: CommandContext,
): AsyncGenerator<readonly Hit[]> {
  const orUnknown = (error: unknown): void => {
    if (!isAlike || !isOfLostDocuments(error)) throw error
    const what = `it is not known which records ${live.generation} parked: ${error.message}`
    if (force === undefined) throw new CommandError(`${what}. Or --force with a reason`)
    context.say(`${what} (forced: ${force})`)
  }
  await assertOwnIndices(live, force === undefined ? REFUSED_UNFORCED : undefined, context).catch(orUnknown)
  refuseReadAgain(left, live, force, context)
  try {
    yield* parkedOf(live, from, context)
  } catch (error) {
    orUnknown(error)
  }
}

const isOfLostDocuments = (error: unknown): error is Error =>
  error instanceof NotWhole ||
  error instanceof Unanswered ||
  (error instanceof StopError && (error.code === 'index_replaced' || error.code === 'index_missing'))

/** Whether both are known to park the same records: equal rules, neither follows another one, and found equal. */
const parkAlike = (a: GenerationBody, b: GenerationBody, { compared }: Generations): boolean =>
  decideAlike(a, b) && compared[pairOf(a.generation, b.generation)]?.found === 'equal'

/** Same rules, and neither follows another generation: both park the same records if no documents were lost. */
export const decideAlike = (a: GenerationBody, b: GenerationBody): boolean =>
  a.rules_version === b.rules_version && a.follows === undefined && b.follows === undefined

/** Yields the parked records from these positions on, page by page. @throws CommandError if a shard does not answer */
async function* parkedOf(
  live: GenerationBody,
  from: Positions,
  { send, prefix }: CommandContext,
): AsyncGenerator<readonly Hit[]> {
  const { generation } = live
  const path = `/${layoutOf(prefix, live).indexOf('parked')}`
  const what = `the records that ${generation} parked`
  // No projector refreshes this index.
  const refreshed = await send<Coverage>({ method: 'POST', path: `${path}/_refresh` })
  assertRefreshed(what, refreshed)
  const should = from.map((gte, partition) => {
    return { bool: { filter: [{ term: { partition } }, { range: { offset: { gte } } }] } }
  })
  let after: readonly unknown[] | undefined
  for (;;) {
    const answer = await send<SearchAnswer<Hit>>({
      method: 'POST',
      path: `${path}/_search`,
      query: { allow_partial_search_results: false },
      body: {
        size: SEARCH_HITS,
        _source: false,
        track_total_hits: false,
        query: { bool: { should, minimum_should_match: 1 } },
        sort: [{ partition: 'asc' }, { offset: 'asc' }],
        ...(after && { search_after: after }),
      },
    })
    const { hits } = wholeAnswer(what, answer).hits
    yield hits
    after = hits.at(-1)?.sort
    if (hits.length < SEARCH_HITS) return
  }
}

type Hit = { readonly _id: string; readonly sort: readonly [partition: number, offset: number] }

/**
 * All indices of the generation that it follows must exist: the follower reads again which records that one parked. It
 * can be gone if no such record is read again: all restart positions are where the follower already decided alone.
 * @throws CommandError
 */
export const refuseWithoutFollowed = async (
  { generation, follows, partitions }: GenerationBody,
  { positions }: { readonly positions?: readonly Pick<PositionDocument['body'], 'position'>[] },
  context: CommandContext,
): Promise<void> => {
  if (follows === undefined) return
  const steps = { request: context.send, prefix: context.prefix }
  const followed = await readGeneration(follows, steps)
  if (followed !== undefined) {
    await readIndexIds(layoutOf(context.prefix, followed).indices, steps)
    context.say(`${generation} waits until ${follows}, which it followed, has read again what it parked`)
    return
  }
  const alone = (await readAll(context)).independentFrom[generation]
  const early = Array.from({ length: partitions }, (_, partition) => partition).find(
    partition => (positions?.[partition]?.position ?? 0) < (alone?.[partition] ?? Number.POSITIVE_INFINITY),
  )
  if (early === undefined) {
    context.say(`${follows}, which ${generation} followed, is gone: no record that it decided is read again`)
    return
  }
  const what = `${generation} took over what ${follows} parked, and ${follows} is gone`
  const [from, until] = [positions?.[early]?.position ?? 0, alone?.[early] ?? 'its end']
  const where = `partition ${early} would be read again from offset ${from}, and ${follows} decided up to ${until}`
  throw new CommandError(`${what}: ${where}. ${WITHOUT_FOLLOWED}`)
}

const WITHOUT_FOLLOWED =
  'rewind goes back less far, to a snapshot from after the swap. Do not project again from the first record: what was parked there would be paid beside its corrections (docs/generations.md, "When g1 was dropped after a change of the rules")'
