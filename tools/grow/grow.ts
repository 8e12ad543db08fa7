/**
 * `commission grow`: from a topic of events to one with more partitions. Each run does what can be done now, and says
 * the next step:
 * 1. It makes the new topic, copies all records, and compares them (`copy.ts`).
 * 2. It makes a generation from the new topic, beside the live one.
 * 3. With `--swap`: it compares both generations (`compare.ts`), and swaps them once publishers have stopped
 *    (`swap.ts`).
 * 4. After the swap: it names what was published since to an old topic, of this swap or one before.
 * Promises: readers see each record exactly as before, and nothing of the new topic before the swap. Every step can be
 * killed, and is continued by the same command.
 * Can go wrong: two of these at once: the earlier one ends. Publishers who do not stop are named.
 */
import type { Admin } from 'kafkajs'
import { RULES_VERSION } from '../../core/ledger/index.ts'
import {
  appendInTransactions,
  assertSameSource,
  connectAdmin,
  type createEventsTopic,
  describeSource,
  differingField,
  fetchRanges,
  type GenerationBody,
  type LogCluster,
  readLog,
  type Source,
} from '../../core/log/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import { formerTopicsIn, type Generations, readGeneration } from '../../core/store/index.ts'
import type { FormerTopic } from '../../schemas/stored/documents.ts'
import { openTransactionsOf, textOfOpen } from '../archive/open-transactions.ts'
import { keepTimes } from '../archive/record-times.ts'
import { batchRecordsAt, createThrottle, fetchBytesAt } from '../archive/throttle.ts'
import { CommandError, type ExitCode, exitCodes, messageOf } from '../failures.ts'
import { identityOf, namesOf, readAll } from '../generations/generations.ts'
import { type RebuildSteps, rebuild } from '../generations/rebuild.ts'
import { DIFFERENCES_SHOWN, TIMES_KEPT_WAIT_MS } from '../limits.ts'
import { lagOf } from '../live.ts'
import { createProgressLine } from '../terminal.ts'
import { type Copy, openCopy } from './copy.ts'
import { printLate } from './late-records.ts'
import { prepareTopic } from './prepare-topic.ts'
import { type Growing, refuseOtherRules, swapGrown } from './swap.ts'

export type GrowOptions = {
  /** The new topic. */
  readonly to: string
  /** Of the new topic. Undefined if it exists. */
  readonly partitions: number | undefined
  readonly swap: boolean
  readonly maxRate: number
  readonly json: boolean
}

export type GrowSteps = RebuildSteps & {
  readonly openCluster: (topic: string) => Promise<LogCluster>
  readonly topicSettings: Parameters<typeof createEventsTopic>[2]
}

export const grow = async (options: GrowOptions, context: GrowSteps): Promise<ExitCode> => {
  const { to, swap, json } = options
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  const all = await readAll(context)
  // A swap rests on a comparison of documents; without it only records are copied.
  const refusal = swap ? 'Nothing is changed' : undefined
  const live = await identityOf(all.live, refusal, context)
  // Awaited: the clients are closed when this returns.
  if (live.topic === to) return await reportLate(all, options, admin, context, stack)
  const source = await describeSource(admin, context.topics.events)
  assertSameSource(live, source)
  const found = await generationOfTopic(options, all, live, context)
  if (found !== undefined) refuseOtherRules(found, live)
  const target = await prepareTopic(options, source, admin, context)
  if (found !== undefined && differingField(found, target) !== undefined) {
    throw new CommandError(`${found.generation} was made from another topic of the name ${to}: drop it first`)
  }
  const spare = found?.generation
  const copy = await copyTo(target, source, options, admin, context, stack)
  const copied = await copy.run()
  context.say(`${copied} records copied: ${to} has every record of ${source.topic}, compared`)
  const next = `npx commission grow --to ${to} --swap`
  if (spare === undefined || spare === all.building) {
    const topics = { ...context.topics, events: to }
    const ended = await rebuild({ maxRate: options.maxRate, json: false }, { ...context, topics, grown: true })
    if (ended !== exitCodes.done) return ended
    context.say(`Next: start projectors with KAFKA_EVENTS_TOPIC=${to}, beside those of ${source.topic}. Then: ${next}`)
  } else if (swap) {
    const { log, cluster } = await openLog(source.topic, context, stack)
    const openTransactions = openTransactionsOf(cluster, admin, source.topic, source.partitions)
    const growing: Growing = { live, spare: await identityOf(spare, refusal, context), source, openTransactions, copy }
    const swapped = await swapGrown(growing, log, json, admin, context)
    if (swapped !== exitCodes.done) return swapped
  } else context.say(`${spare} is made from ${to}. Next, with projectors of ${to} running: ${next}`)
  if (json) context.out(`${JSON.stringify({ topic: to, copied, live: (await readAll(context)).live })}\n`)
  return exitCodes.done
}

/** Returns the generation of the new topic that an earlier run made or began, if there is one. @throws CommandError */
const generationOfTopic = async (
  { to }: GrowOptions,
  all: Generations,
  live: GenerationBody,
  { prefix, send, rulesVersion = RULES_VERSION }: GrowSteps,
): Promise<GenerationBody | undefined> => {
  if (live.rules_version !== rulesVersion) {
    const versions = `${live.generation} has version ${live.rules_version} of the rules, this program ${rulesVersion}`
    throw new CommandError(`${versions}: change the rules first, or grow with a program of that version`)
  }
  for (const name of namesOf(all)) {
    const identity = await readGeneration(name, { request: send, prefix })
    if (identity?.topic === to) return identity
    if (name !== all.building || identity === undefined) continue
    throw new CommandError(`${name} of ${identity.topic} is still being made: continue it, or drop it, first`)
  }
  return undefined
}

const takenOver = (to: string): CommandError =>
  new CommandError(`another run copies to ${to} now, and this one ends: two of them would not agree`)

const copyTo = async (
  { topic: to, partitions: after }: Source,
  { topic: from, partitions: before, topic_id }: Source,
  { maxRate }: GrowOptions,
  admin: Admin,
  context: GrowSteps,
  stack: AsyncDisposableStack,
): Promise<Copy> => {
  const { say, signal } = context
  const cluster = await context.openCluster(to)
  stack.defer(cluster.disconnect)
  const throttle = createThrottle(maxRate, context)
  const showProgress = createProgressLine(context, context.elapsed)
  let done = 0
  say(`comparing what is in ${to}`)
  const copy = await openCopy({
    from: (await openLog(from, context, stack, topic_id, fetchBytesAt(maxRate, before))).log,
    to: readLog(cluster, to, fetchBytesAt(maxRate, after)),
    growth: { before, after },
    transactions: appendInTransactions(cluster, to, `commission-grow-${to}`, () => takenOver(to)),
    batchRecords: batchRecordsAt(maxRate),
    onDone: async records => {
      done += records
      showProgress(`${done} records compared or copied`)
      await throttle(records)
    },
    signal,
  })
  await keepTimes(admin, to)
  // A broker uses the new setting shortly after it shows it. An append that is too early is noticed and refused.
  await context.sleep(TIMES_KEPT_WAIT_MS)
  say(`copying ${from} to ${to}`)
  return copy
}

const openLog = async (
  topic: string,
  { openCluster }: GrowSteps,
  stack: AsyncDisposableStack,
  topicId?: string,
  fetchBytes?: number,
) => {
  const cluster = await openCluster(topic)
  stack.defer(cluster.disconnect)
  return { log: readLog(cluster, topic, fetchBytes, topicId), cluster }
}

/** After the swap. */
const reportLate = async (
  all: Generations,
  options: GrowOptions,
  admin: Admin,
  context: GrowSteps,
  stack: AsyncDisposableStack,
): Promise<ExitCode> => {
  const [{ live }, former] = [all, formerTopicsIn(all)]
  if (former.length === 0) {
    throw new CommandError(`${live}, which is live, was made from ${options.to}, which was not grown`)
  }
  context.say(`${live} is live, made from ${options.to}`)
  let ended: ExitCode = exitCodes.done
  for (const one of former) {
    const isQuiet = await reportTopic(one, options, admin, context, stack).catch((error: unknown) => {
      context.signal.throwIfAborted()
      context.say(`${one.topic}: ${messageOf(error)}`)
      return false
    })
    if (!isQuiet) ended = exitCodes.failed
  }
  return ended
}

/** Names what was published to an old topic after the swap. @returns whether nothing was */
const reportTopic = async (
  former: FormerTopic,
  { to, json }: GrowOptions,
  admin: Admin,
  context: GrowSteps,
  stack: AsyncDisposableStack,
): Promise<boolean> => {
  const { say } = context
  const { topic } = former
  const now = await describeSource(admin, topic).catch((error: unknown) => {
    if (error instanceof StopError && error.code === 'topic_missing') return undefined
    throw error
  })
  if (now === undefined) {
    say(`The topic before, ${topic}, is gone`)
    return true
  }
  const { other, from, deleted } = await startOfLate(former, now, admin)
  const { log, cluster } = await openLog(topic, context, stack, now.topic_id)
  // First: what is committed meanwhile is found below.
  const open = deleted > 0 ? [] : await openTransactionsOf(cluster, admin, topic, now.partitions)()
  const ends = (await fetchRanges(admin, topic)).map(({ end }) => end)
  const late = deleted + (await printLate(log, from, json, context, ends))
  if (late === 0 && open.length > 0) {
    say(`${textOfOpen(topic, open)}: run the same again when they have ended. Their publishers must stop there`)
    return false
  }
  if (late === 0) {
    say(quietTexts[other](topic))
    return true
  }
  const where = other === 'none' ? topic : `${topic}, which ${otherTexts[other]},`
  const what = `${late} ${late === 1 ? 'record was' : 'records were'} published to ${where} after the swap`
  const again =
    other === 'none'
      ? ', these records again'
      : `, and those of these records again that ${to} does not have: compare first`
  say(`${what}: no reader sees them there. Their publishers must publish to ${to}${again}`)
  if (!json && late > DIFFERENCES_SHOWN) say(`Only the first ${DIFFERENCES_SHOWN} are named; --json names all`)
  return false
}

/** Whether another topic has the name now: one made anew, or one that may be a copy of the topic before. */
type Other = 'none' | 'anew' | 'copy'

const otherTexts = {
  anew: 'was made anew',
  copy: 'is another topic now; it may be a copy of the one before',
} as const satisfies Record<Exclude<Other, 'none'>, string>

const quietTexts: Readonly<Record<Other, (topic: string) => string>> = {
  none: topic => `Nobody has published to ${topic} since the swap`,
  anew: topic => `${topic} ${otherTexts.anew}, and is empty: delete it`,
  copy: topic => `${topic} ${otherTexts.copy}, and has nothing behind the end of that one`,
}

/**
 * Returns where late records begin, and how many of them are deleted. In a topic that was made anew, as a broker makes
 * one for a publisher (`auto.create.topics.enable`), all are late. Another topic that reaches the ends of the one
 * before may be a copy of it, in a mirrored or restored cluster.
 */
const startOfLate = async (former: FormerTopic, now: Source, admin: Admin) => {
  const ranges = await fetchRanges(admin, former.topic)
  const ends = ranges.map(({ end }) => end)
  // Without both ids, a topic that ends earlier than at the swap is another one.
  const isOther = differingField({ ...former, partitions: now.partitions }, now) !== undefined
  const isUnknown = former.topic_id === undefined || now.topic_id === undefined
  const isShorter = lagOf(former.ends, ends) > 0
  const isAnew = (isOther || isUnknown) && isShorter
  const other: Other = isAnew ? 'anew' : isOther ? 'copy' : 'none'
  const lows = ranges.map(({ low }) => low)
  const before = isAnew ? [] : former.ends
  return { other, from: lows.map((low, index) => Math.max(before[index] ?? 0, low)), deleted: lagOf(lows, before) }
}
