/**
 * Publishes parked records again, unchanged: the same key, headers and bytes, into the same topic and the partition of
 * the key, in order. Helps records that came before something they need, were in the wrong partition, or were unknown
 * to older rules.
 *
 *   wait until all records in Kafka are published → forecast → send → wait → read the outcome
 *
 * Sends nothing to a partition where an open transaction hides records: an earlier run may have sent them. Goes on
 * with the others.
 *
 * Promises: sends only records that would be applied, so that a second run changes nothing, and none that another
 * parked record undoes, unless this run has that one, too; without `publish` sends nothing. Reads and reports the
 * outcome of a sent record after the projector has passed it. If the outcome was not read, reports the record as
 * `published` or `unknown`. Says if it ends with a record published, and not the one that undoes it. After any
 * interruption the command can be run again.
 */
import type { Admin, Message, Producer } from 'kafkajs'
import { adviceOfHidden, fetchEndOffsets, type OpenThen, textOfHidden, withRight } from '../../core/log/index.ts'
import { multiGet, readDocuments, type Send } from '../../core/store/index.ts'
import type { ParkCode } from '../../schemas/errors.ts'
import type { Stream } from '../../schemas/events.ts'
import type { ClusterContext } from '../context.ts'
import { portionsOf, sizesOf } from '../documents/sizes.ts'
import { CommandError } from '../failures.ts'
import { CHUNK_BYTES, CHUNK_RECORDS } from '../limits.ts'
import {
  assertAppended,
  assertSameSourceAndRules,
  assertStillDecides,
  type Live,
  type LiveStream,
  waitUntilPublished,
  waitUntilReadable,
} from '../live.ts'
import { type Parked, type ParkedFields, positionOf, type RecordPosition, readParked, whyUnsendable } from './find.ts'
import { createForecaster, type Forecast, type Forecaster, targetPartition } from './forecast.ts'
import { createUndoneRecords, type UndoneRecords } from './undone.ts'

export type PublishAgainOptions = {
  readonly publish: boolean
  /** Also publishes an older rep or period over a newer one, which needs human judgement. */
  readonly force: boolean
  readonly waitSeconds: number
}

/** The result of one parked record: done, or foreseen by a dry run. */
export type Result = {
  readonly fields: ParkedFields
  /**
   * `already_there`: would be a duplicate, so not sent. `duplicate`: sent, but an equal record was applied before it.
   * `published`: sent, but the command ended before the projector decided it. `unknown`: Kafka did not say whether it
   * stored it.
   */
  readonly outcome:
    | 'would_be_applied'
    | 'applied'
    | 'duplicate'
    | 'parked_again'
    | 'already_there'
    | 'refused'
    | 'published'
    | 'unknown'
  /** Why a record is refused: the code that it would be parked with, or another reason. Of `parked_again`: its code. */
  readonly reason:
    | ParkCode
    | 'older_than_current'
    | 'undone_by_parked'
    | 'hidden_by_transaction'
    | NonNullable<ReturnType<typeof whyUnsendable>>
    | null
  /** The new position of the record. */
  readonly published: RecordPosition | null
}

export type PublishAgainSteps = Pick<ClusterContext, 'openCluster'> & {
  readonly send: Send
  readonly prefix: string
  readonly live: Live
  readonly admin: Admin
  /** The topics in the settings. */
  readonly topics: Readonly<Record<Stream, string>>
  readonly say: (line: string) => void
  /** Connects when the first record is sent. */
  readonly producer: () => Promise<Pick<Producer, 'send'>>
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly elapsed: () => number
  /** Aborted on interruption: sends nothing more, and reports what was sent. */
  readonly signal: AbortSignal
  /** How many records may still be sent. With none left, no further chunk is looked at. */
  readonly room: () => number
  /** Called after each chunk with its results. */
  readonly onResults: (results: readonly Result[]) => void
}

/** The records that this run looks at. */
export type SelectedRecords = {
  /** The records of a stream, nearly in the order of their times: those of a partition in its order. */
  readonly pagesOf: (stream: LiveStream) => Pages
  readonly has: (fields: ParkedFields) => boolean
}
type Pages = AsyncIterable<readonly ParkedFields[]>

/** @returns the number of published records whose void, revocation or replacement is not published */
export const publishAgain = async (
  selected: SelectedRecords,
  options: PublishAgainOptions,
  steps: PublishAgainSteps,
): Promise<number> => {
  let open = 0
  for (const stream of Object.values(steps.live)) {
    const undone = createUndoneRecords(stream, selected.has, steps)
    const skipped: Skipped = { open: new Set(), unknown: new Set() }
    try {
      await publishStream(stream, selected, undone, skipped, options, steps)
    } finally {
      for (const line of textsOfSkipped(stream.identity.topic, skipped)) steps.say(line)
      if (undone.open() > 0) steps.say(openPairs(undone.open()))
    }
    open += undone.open()
  }
  return open
}

const openPairs = (count: number): string => {
  const which = `the void, revocation or replacement of ${count === 1 ? 'it' : 'them'}`
  return `${count} published, but not yet ${which}: run the same command again`
}

const publishStream = async (
  stream: LiveStream,
  selected: SelectedRecords,
  undoneRecords: UndoneRecords,
  skipped: Skipped,
  options: PublishAgainOptions,
  steps: PublishAgainSteps,
): Promise<void> => {
  let found: Ends | undefined
  const read = readDocuments(docs => multiGet(steps.send, docs), stream.layout)
  const forecaster = createForecaster(stream, read)
  for await (const chunk of chunksThatFit(selected.pagesOf(stream), stream, steps)) {
    if (found === undefined) {
      await assertSameSourceAndRules(stream, steps)
      found = await endsOf(stream, options, steps)
      await waitUntilPublished(stream, new Map(found.ends.entries()), options.waitSeconds, steps)
    }
    const parked = (await readParked(steps.send, steps.live, chunk)).filter(found => found !== undefined)
    const undone = await undoneRecords.find(parked)
    const { hidden } = found
    const plans: Plan[] = []
    for (const item of parked) {
      const planFor = (forecast: Forecast): Plan =>
        planOf(item, forecast, undone.has(item), mayBeHidden(item, hidden, stream), options)
      // A record that is not sent must not influence the forecasts after it.
      plans.push(planFor(await forecaster.next(item, forecast => planFor(forecast).send)))
    }
    noteSkipped(plans, hidden, stream, skipped)
    steps.signal.throwIfAborted()
    if (!options.publish) {
      steps.onResults(plans.map(({ result }) => result))
      continue
    }
    const sent = new Map<Plan, RecordPosition>()
    const noteAll = (): void => {
      for (const plan of plans.filter(plan => !plan.send || sent.has(plan)))
        undoneRecords.note(plan.parked, sent.has(plan) || plan.result.outcome === 'already_there')
    }
    await sendAll(plans, sent, found.ends, stream, steps)
      .finally(noteAll)
      .catch((error: unknown) => {
        const failed = plans.find(plan => plan.send && !sent.has(plan))
        const resultOf = (plan: Plan): Result =>
          plan === failed ? { ...plan.result, outcome: 'unknown' } : publishedOnly(plan, sent.get(plan))
        steps.onResults(plans.map(resultOf))
        throw error
      })
    forecaster.forget()
    const results = await waitUntilDecided(plans, sent, stream, forecaster, options, steps).catch((error: unknown) => {
      steps.onResults(plans.map(plan => publishedOnly(plan, sent.get(plan))))
      throw error
    })
    steps.onResults(results)
    // A stop may have left records unsent.
    steps.signal.throwIfAborted()
  }
}

const waitUntilDecided = async (
  plans: readonly Plan[],
  sent: Sent,
  stream: LiveStream,
  forecaster: Forecaster,
  { waitSeconds }: PublishAgainOptions,
  steps: PublishAgainSteps,
): Promise<Result[]> => {
  await waitUntilPublished(stream, nextOffsets(sent), waitSeconds, steps)
  const results = await outcomesOf(plans, sent, forecaster, steps)
  await assertStillDecides(stream, steps)
  return results
}

/**
 * The result of a record that is not known to be decided: the wait was too short or interrupted. A record that was not
 * sent keeps its forecast.
 */
const publishedOnly = ({ result }: Plan, published: RecordPosition | undefined): Result =>
  published === undefined ? result : { ...result, outcome: 'published', published }

/** Splits records into chunks of CHUNK_RECORDS and CHUNK_BYTES, or of one larger record, while there is room. */
async function* chunksThatFit(
  pages: Pages,
  { layout }: LiveStream,
  steps: PublishAgainSteps,
): AsyncGenerator<readonly ParkedFields[]> {
  for await (const page of pages) {
    for (let at = 0; at < page.length; ) {
      const some = page.slice(at, at + Math.min(CHUNK_RECORDS, steps.room()))
      if (some.length === 0) return
      const sizes = await sizesOf(
        some.map(record => layout.addressOf('parked', positionOf(record))),
        steps,
      )
      yield* portionsOf(some, sizes, CHUNK_BYTES)
      at += some.length
    }
  }
}

type Plan = { readonly parked: Parked; readonly result: Result; readonly send: boolean }

const planOf = (
  parked: Parked,
  forecast: Forecast,
  isUndone: boolean,
  isHidden: boolean,
  { force }: PublishAgainOptions,
): Plan => {
  const plan = (outcome: Result['outcome'], reason: Result['reason'], send: boolean): Plan => ({
    parked,
    result: { fields: parked.fields, outcome, reason, published: null },
    send,
  })
  const unsendable = whyUnsendable(parked)
  if (unsendable === 'bytes_not_kept') return plan('refused', unsendable, false)
  switch (forecast.outcome) {
    case 'applied':
    case 'older':
      if (unsendable) return plan('refused', unsendable, false)
      if (isUndone) return plan('refused', 'undone_by_parked', false)
      if (forecast.outcome === 'older' && !force) return plan('refused', 'older_than_current', false)
      if (isHidden) return plan('refused', 'hidden_by_transaction', false)
      return plan('would_be_applied', null, true)
    case 'duplicate':
      return plan('already_there', null, false)
    case 'parked':
      return plan('refused', forecast.code, false)
    default:
      return forecast satisfies never
  }
}

/** The new position of each record that was sent. */
type Sent = ReadonlyMap<Plan, RecordPosition>

/** Sends one record at a time, until an interruption: several together may be larger than the topic accepts. */
const sendAll = async (
  plans: readonly Plan[],
  sent: Map<Plan, RecordPosition>,
  ends: number[],
  stream: LiveStream,
  steps: PublishAgainSteps,
): Promise<void> => {
  const { topic } = stream.identity
  for (const plan of plans.filter(({ send }) => send)) {
    if (steps.signal.aborted) return
    const partition = targetPartition(stream, plan.parked)
    const messages = [kafkaMessageOf(plan.parked, partition)]
    const sending = steps.producer().then(producer => producer.send({ topic, acks: -1, messages }))
    const [answer] = await withRight('Write', `topic ${topic}`, sending)
    if (answer?.baseOffset === undefined)
      throw new CommandError('Kafka did not say where it put a record; run the same command again')
    const offset = Number(answer.baseOffset)
    assertAppended(topic, partition, offset, ends[partition] ?? 0)
    ends[partition] = offset + 1
    sent.set(plan, { topic, partition, offset })
  }
}

const kafkaMessageOf = ({ record: { key, value, headers } }: Parked, partition: number): Message => {
  // No prototype: a header may be named like a member of Object.prototype.
  const named: Record<string, Buffer[]> = Object.create(null)
  for (const [name, header] of headers) named[name] = [...(named[name] ?? []), ...(header === null ? [] : [header])]
  return { key, value, partition, headers: named }
}

const nextOffsets = (sent: Sent): Map<number, number> => {
  const next = new Map<number, number>()
  for (const { partition, offset } of sent.values()) next.set(partition, Math.max(next.get(partition) ?? 0, offset + 1))
  return next
}

/** `ends` are those that were read, and after each record that is sent the next offset. */
type Ends = { readonly ends: number[]; readonly hidden: OpenThen }

/** A dry run sends nothing twice. */
const endsOf = async (
  { identity }: LiveStream,
  { publish }: PublishAgainOptions,
  steps: PublishAgainSteps,
): Promise<Ends> =>
  publish
    ? waitUntilReadable(identity, steps)
    : { ends: await fetchEndOffsets(steps.admin, identity.topic), hidden: { open: [], unknown: [] } }

/** Whether records that nobody can read yet are, or may be, in the partition that a record goes to. */
const mayBeHidden = (parked: Parked, { open, unknown }: OpenThen, stream: LiveStream): boolean =>
  [...open, ...unknown].includes(targetPartition(stream, parked))

/** The partitions of a stream to which nothing is sent, because of what is hidden there. */
type Skipped = { readonly [Why in keyof OpenThen]: Set<number> }

const noteSkipped = (plans: readonly Plan[], hidden: OpenThen, stream: LiveStream, skipped: Skipped): void => {
  for (const { parked, result } of plans) {
    if (result.reason !== 'hidden_by_transaction') continue
    const partition = targetPartition(stream, parked)
    skipped[hidden.open.includes(partition) ? 'open' : 'unknown'].add(partition)
  }
}

const textsOfSkipped = (topic: string, { open, unknown }: Skipped): string[] => {
  const inOrder = (partitions: ReadonlySet<number>) => [...partitions].toSorted((a, b) => a - b)
  const each: readonly OpenThen[] = [
    { open: inOrder(open), unknown: [] },
    { open: [], unknown: inOrder(unknown) },
  ]
  return each.flatMap(hidden => {
    const why = textOfHidden(topic, hidden)
    if (why === undefined) return []
    const what = `${why}: they may hide records that an earlier run has published. None is published again there`
    return [`${what}. ${adviceOfHidden(hidden)}, and run the same command again`]
  })
}

/** Reads the outcomes at the new positions: parked there, or decided as of there. */
const outcomesOf = async (
  plans: readonly Plan[],
  sent: Sent,
  forecaster: Forecaster,
  { send, live }: PublishAgainSteps,
): Promise<Result[]> => {
  const again = await readParked(send, live, [...sent.values()])
  const parkedAgain = new Map(again.flatMap(found => (found ? [[positionOf(found.fields), found.fields.code]] : [])))
  const results: Result[] = []
  for (const plan of plans) {
    const published = sent.get(plan)
    if (published === undefined) results.push(plan.result)
    else {
      const code = parkedAgain.get(positionOf(published))
      const { outcome } = await forecaster.at(plan.parked, published.offset)
      if ((outcome === 'parked') !== (code !== undefined)) {
        throw new CommandError(
          `the projector decided ${positionOf(published)} otherwise than the rules: look at its log`,
        )
      }
      const { fields } = plan.parked
      if (outcome === 'parked') results.push({ fields, outcome: 'parked_again', reason: code ?? null, published })
      else results.push({ fields, outcome, reason: null, published })
    }
  }
  return results
}
