/** `commission parked`: its commands, after their options are read. */
import type { Producer } from 'kafkajs'
import { connectAdmin, connectProducer, mergedByTime } from '../../core/log/index.ts'
import type { ParkCode } from '../../schemas/errors.ts'
import type { ClusterContext, CommandContext } from '../context.ts'
import { refuseUncompared } from '../documents/shards.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { servedPositionsOf } from '../generations/generations.ts'
import { CHUNK_RECORDS, MERGED_HITS, RECORDS_MAX, SEARCH_HITS } from '../limits.ts'
import { type Live, type LiveStream, readLive, unknownShardIn } from '../live.ts'
import {
  countParked,
  detailOfParked,
  type Filter,
  findParked,
  isAhead,
  matches,
  type Order,
  type ParkedFields,
  pagesInOrder,
  parkedStreamOf,
  partitionsOfParked,
  positionOf,
  type RecordPosition,
  readDetails,
  readParked,
} from './find.ts'
import { countsOf, jsonOf, parkedText, resultOf, tableOf, wholeJsonOf } from './print.ts'
import {
  type PublishAgainOptions,
  type PublishAgainSteps,
  publishAgain,
  type Result,
  type SelectedRecords,
} from './publish-again.ts'

type ListOptions = {
  readonly filter: Filter
  readonly order: Order
  /** Only records behind this one. */
  readonly after: RecordPosition | undefined
  readonly limit: number
  readonly json: boolean
}

export const listParked = async (options: ListOptions, context: CommandContext): Promise<ExitCode> => {
  const { out, say, send, prefix } = context
  const { filter, order, limit, json } = options
  const live = await liveOf(undefined, context, filter, ...(options.after ? [options.after] : []))
  const after = options.after && (await fieldsOf(options.after, live, context))
  const now = context.now()
  const { total, ahead, records } = await findParked(send, live, { filter, order, after, now }, limit)
  const details = await readDetails(send, live, records)
  if (json) for (const record of records) out(line(jsonOf(record, details.get(positionOf(record)))))
  else if (records.length > 0) out(`${tableOf(records, details)}\n`)
  if (!json || total > records.length)
    say(`${records.length} of ${total} parked ${total === 1 ? 'record' : 'records'} under ${prefix}`)
  const [first] = records
  if (order === 'newest' && ahead > 0 && first !== undefined && !isAhead(first.at, now)) {
    const where = after === undefined ? `. To see them: --oldest --after ${positionOf(first)}` : ''
    say(`${ahead} of them ${ahead === 1 ? 'has a time' : 'have times'} ahead of the clock, and come last${where}`)
  }
  return exitCodes.done
}

/** @throws CommandError */
const fieldsOf = async (position: RecordPosition, live: Live, { send }: CommandContext): Promise<ParkedFields> => {
  const [parked] = await readParked(send, live, [position])
  if (parked === undefined) throw new CommandError(`${positionOf(position)} is not parked`)
  return parked.fields
}

export const count = async (
  { filter, json }: { readonly filter: Filter; readonly json: boolean },
  context: CommandContext,
): Promise<ExitCode> => {
  const counts = await countParked(context.send, await liveOf(undefined, context, filter), filter)
  context.out(json ? line(Object.fromEntries(counts)) : `${countsOf(counts)}\n`)
  return exitCodes.done
}

export const showParked = async (
  { position, as }: { readonly position: RecordPosition; readonly as: 'text' | 'json' | 'raw' },
  context: CommandContext,
): Promise<ExitCode> => {
  const live = await liveOf(undefined, context, position)
  const [parked] = await readParked(context.send, live, [position])
  if (parked === undefined) throw new CommandError(`${positionOf(position)} is not parked`)
  switch (as) {
    case 'json':
      context.out(line(wholeJsonOf(parked, detailOfParked(live, parked))))
      return exitCodes.done
    case 'text':
      context.out(`${parkedText(parked, detailOfParked(live, parked))}\n`)
      return exitCodes.done
    case 'raw':
      if (parked.record.value === null) {
        const why = parked.leftOut ? reasons.bytes_not_kept : 'it has no value'
        throw new CommandError(`${positionOf(position)}: ${why}`)
      }
      context.out(parked.record.value)
      return exitCodes.done
    default:
      return as satisfies never
  }
}

type AgainOptions = PublishAgainOptions & {
  /** These records, or if empty all that match the filter. */
  readonly positions: readonly RecordPosition[]
  readonly filter: Filter
  readonly json: boolean
}

export const again = async (
  options: AgainOptions,
  context: ClusterContext & Pick<PublishAgainSteps, 'signal'>,
): Promise<ExitCode> => {
  const { out, say, kafka } = context
  // The event that undoes another one may be missing.
  const refusal = options.publish ? 'Nothing was published' : undefined
  const live = await liveOf(refusal, context, options.filter, ...options.positions)
  const { total, selected } = await wanted(options, live, context)
  const counts = new Map<Result['outcome'], number>()
  const countOf = (outcomes: Iterable<Result['outcome']>): number =>
    Array.from(outcomes, outcome => counts.get(outcome) ?? 0).reduce((sum, one) => sum + one, 0)
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(kafka, stack)
  let producer: Promise<Producer> | undefined

  const open = await publishAgain(selected, options, {
    ...context,
    live,
    admin,
    producer: () => {
      producer ??= connectProducer(kafka, stack)
      return producer
    },
    // A record that is not sent takes no room: the same ones would fill each run.
    room: () => RECORDS_MAX - countOf(taken),
    onResults: chunk => {
      for (const result of chunk) {
        counts.set(result.outcome, countOf([result.outcome]) + 1)
        out(options.json ? line(resultOf(result)) : `${lineOf(result)}\n`)
      }
      if (total > CHUNK_RECORDS) say(`${countOf(counts.keys())} of ${total}`)
    },
  })
  const left = Math.max(0, total - countOf(counts.keys()))
  for (const sentence of summaryOf(counts, left, options)) say(sentence)
  const isFine = left === 0 && open === 0 && [...counts.keys()].every(outcome => fine(options).has(outcome))
  return isFine ? exitCodes.done : exitCodes.notAll
}

const taken = ['would_be_applied', 'applied', 'duplicate', 'parked_again', 'published', 'unknown'] as const
const fine = ({ publish }: AgainOptions): ReadonlySet<Result['outcome']> =>
  new Set([publish ? 'applied' : 'would_be_applied', 'duplicate', 'already_there'])

type Wanted = { readonly total: number; readonly selected: SelectedRecords }

/** The number of selected records, and these; each once. */
const wanted = async (
  { positions, filter }: AgainOptions,
  live: Live,
  context: CommandContext & Pick<PublishAgainSteps, 'signal'>,
): Promise<Wanted> => {
  const { send, signal } = context
  if (positions.length === 0) {
    const counts = await countParked(send, live, filter)
    const total = counts.reduce((sum, [, records]) => sum + records, 0)
    const sourcesOf = async (stream: LiveStream) => {
      const { topic } = stream.identity
      if ((filter.topic ?? topic) !== topic) return []
      const partitions = await partitionsOfParked(send, live, stream, filter)
      const size = Math.max(1, Math.min(SEARCH_HITS, Math.floor(MERGED_HITS / partitions.length)))
      return partitions.map(partition => pagesInOrder({ send, live, signal }, { ...filter, topic, partition }, size))
    }
    return { total, selected: selectedRecords(sourcesOf, fields => matches(fields, filter)) }
  }
  const records = new Map<string, ParkedFields>()
  for (const position of positions) records.set(positionOf(position), await fieldsOf(position, live, context))
  const inOrder = [...records.values()].sort((a, b) => a.offset - b.offset)
  const sourcesOf = async ({ identity: { topic } }: LiveStream) => {
    const ofTopic = inOrder.filter(fields => fields.topic === topic)
    return Array.from(Map.groupBy(ofTopic, ({ partition }) => partition).values(), async function* (page) {
      yield page
    })
  }
  return { total: records.size, selected: selectedRecords(sourcesOf, fields => records.has(positionOf(fields))) }
}

const selectedRecords = (
  /** One source for each partition that has some. */
  sourcesOf: (stream: LiveStream) => Promise<readonly AsyncIterable<readonly ParkedFields[]>[]>,
  has: SelectedRecords['has'],
): SelectedRecords => ({
  has,
  async *pagesOf(stream) {
    let page: ParkedFields[] = []
    for await (const [, fields] of mergedByTime(await sourcesOf(stream), ({ at }) => at)) {
      page.push(fields)
      if (page.length < CHUNK_RECORDS) continue
      yield page
      page = []
    }
    if (page.length > 0) yield page
  },
})

const lineOf = ({ fields, outcome, reason, published }: Result): string => {
  const where = published === null ? '' : ` at ${positionOf(published)}`
  const text = `${positionOf(fields)}  ${fields.code}  ${words[outcome]}${where}`
  if (reason === null) return text
  if (outcome === 'parked_again') return `${text} as ${reason}`
  return `${text}: ${reasons[reason] ?? `it would be parked again as ${reason}`}`
}

const words = {
  would_be_applied: 'would be applied',
  applied: 'applied',
  duplicate: 'a duplicate',
  parked_again: 'parked again',
  already_there: 'is there already',
  refused: 'refused',
  published: 'published again; it is not decided yet',
  unknown: 'may be published again; Kafka did not say',
} as const satisfies Record<Result['outcome'], string>

type Reason = NonNullable<Result['reason']>

/** A park code needs no words of its own. */
const reasons: Readonly<Record<Exclude<Reason, ParkCode>, string> & Partial<Record<ParkCode, never>>> = {
  older_than_current: 'a newer one is current; --force replaces it by this one',
  undone_by_parked: 'another parked record reverses, revokes or replaces it; publish both in one run',
  hidden_by_transaction: 'an open transaction may hide that an earlier run has published it',
  header_without_value: 'it has a header without a value, which cannot be sent',
  header_name_not_utf8: 'it has a header whose name is not UTF-8, which cannot be sent',
  bytes_not_kept: 'it was too large to be kept; Kafka has it',
}

/** @param left the number of matches that the run did not look at */
const summaryOf = (
  counted: ReadonlyMap<Result['outcome'], number>,
  left: number,
  { publish }: PublishAgainOptions,
): string[] => {
  const counts = Object.entries(words).flatMap(([outcome, word]) => {
    const of = counted.get(outcome as Result['outcome'])
    return of === undefined ? [] : [`${of} ${word}`]
  })
  const next = publish ? 'run the same command again' : 'a run with --publish begins with these, the next one goes on'
  return [
    counts.length === 0 ? 'no parked record matches' : counts.join(', '),
    ...(left > 0 ? [`${left} more match, and were not looked at: ${next}`] : []),
    ...(publish ? [] : ['nothing was published: this was a dry run; --publish does it']),
  ]
}

/**
 * @param refusal as of `refuseUncompared`
 * @throws CommandError for a topic that is not one of this projection, and for one that is read again; also as
 *   `refuseUncompared`
 */
const liveOf = async (
  refusal: string | undefined,
  { send, prefix, say }: CommandContext,
  ...named: readonly { readonly topic?: string | undefined; readonly partition?: number | undefined }[]
): Promise<Live> => {
  const live = await readLive(send, prefix)
  refuseUncompared(unknownShardIn(live), refusal, { say })
  for (const { topic } of named) {
    if (topic === undefined || parkedStreamOf(live, topic) !== undefined) continue
    const topics = Object.values(live).map(({ identity }) => identity.topic)
    throw new CommandError(`${topic} is not a topic of this projection; it has ${topics.join(' and ')}`)
  }
  for (const { identity } of Object.values(live)) {
    for (const { topic = identity.topic, partition } of named)
      if (topic === identity.topic) await servedPositionsOf(identity, { send, prefix }, partition)
  }
  return live
}

const line = (json: object): string => `${JSON.stringify(json)}\n`
