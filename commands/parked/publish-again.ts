/**
 * Publishes parked records again, as they are: the same key, headers and bytes, into the same topic, where a publisher
 * puts them today, in order. For what was parked because something it needs came too late, lay in the wrong partition,
 * or was not known to an older version of the rules.
 *
 *   wait until all that is in Kafka is published → foresee → send → wait → look what became of it
 *
 * Promises: only what would be applied is sent, so that doing it twice changes nothing; without `publish` nothing is
 * sent. Each record that was sent is looked at once the projector is past it; what was sent and not looked at is told
 * as that. Whatever ends the command between, it can be run again.
 */
import type { Admin, IHeaders, Message, Producer } from 'kafkajs'
import { type Elasticsearch, multiGet } from '../../projector/elasticsearch/client.ts'
import { readDocuments } from '../../projector/flow/read-documents.ts'
import { fetchEnds } from '../../projector/kafka/source.ts'
import type { ParkCode } from '../../schemas/errors.ts'
import type { Stream } from '../../schemas/events.ts'
import { portionsOf, sizesOf } from '../documents/sizes.ts'
import { CommandError } from '../failures.ts'
import { CHUNK_BYTES, CHUNK_RECORDS } from '../limits.ts'
import { assertRightPlace, assertStillDecides, type Live, type LiveStream, untilPublished } from '../live.ts'
import { type Parked, type ParkedFields, type Position, positionOf, readParked } from './find.ts'
import { createForecaster, type Forecast, type Forecaster, targetPartition } from './forecast.ts'

export type PublishAgainOptions = {
  readonly publish: boolean
  /** Publishes an older rep or period over a newer one, too. */
  readonly force: boolean
  readonly waitSeconds: number
}

/** What a run did, or would do, about one parked record. */
export type Result = {
  readonly fields: ParkedFields
  /**
   * `already_there`: it would be a duplicate, so it was not sent. `duplicate`: it was sent, and somebody was quicker.
   * `published`: it was sent, and the command ended before the projector decided it. `unknown`: Kafka did not say
   * whether it has it.
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
  /** Why it is refused: the code it would be parked again with, or what else. Of what was parked again, its code. */
  readonly reason:
    | ParkCode
    | 'older_than_current'
    | 'header_without_value'
    | 'header_name_not_utf8'
    | 'bytes_not_kept'
    | null
  /** Where it lies now. */
  readonly published: Position | null
}

export type PublishAgainSteps = {
  readonly send: Elasticsearch['send']
  readonly prefix: string
  readonly live: Live
  readonly admin: Admin
  /** The topics that the settings name. */
  readonly topics: Readonly<Record<Stream, string>>
  /** Connected when the first record is sent. */
  readonly producer: () => Promise<Pick<Producer, 'send'>>
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly now: () => number
  /** Aborted when it is interrupted: nothing more is sent, and what was sent is told. */
  readonly signal: AbortSignal
  /** Told after each chunk what became of its records. */
  readonly tell: (results: readonly Result[]) => void
}

/** @param records in order of position */
export const publishAgain = async (
  records: readonly ParkedFields[],
  options: PublishAgainOptions,
  steps: PublishAgainSteps,
): Promise<void> => {
  for (const stream of Object.values(steps.live)) {
    const ofStream = records.filter(({ topic }) => topic === stream.identity.topic)
    if (ofStream.length === 0) continue
    await assertRightPlace(stream, steps)
    await untilPublished(stream, await endsOf(stream, steps), options.waitSeconds, steps)
    await publishStream(stream, ofStream, options, steps)
  }
}

const publishStream = async (
  stream: LiveStream,
  records: readonly ParkedFields[],
  options: PublishAgainOptions,
  steps: PublishAgainSteps,
): Promise<void> => {
  const read = readDocuments(docs => multiGet(steps.send, docs), stream.indexOf)
  let forecaster = createForecaster(stream, read)
  for await (const chunk of chunksOf(records, stream, steps)) {
    const parked = (await readParked(steps.send, steps.live, chunk)).filter(found => found !== undefined)
    const plans: Plan[] = []
    for (const item of parked) {
      // A record that is not sent changes nothing for those after it, whatever the rules say of it.
      const forecast = await forecaster.next(item, forecast => planOf(item, forecast, options).send)
      plans.push(planOf(item, forecast, options))
    }
    if (!options.publish) {
      steps.tell(plans.map(({ result }) => result))
      continue
    }
    steps.signal.throwIfAborted()
    const sent = await sendAll(plans, stream, steps).catch((error: unknown) => {
      steps.tell(plans.map(({ result, send }) => (send ? { ...result, outcome: 'unknown' } : result)))
      throw error
    })
    // What is there now is read anew: from here on it is no forecast any more.
    forecaster = createForecaster(stream, read)
    const results = await untilDecided(plans, sent, stream, forecaster, options, steps).catch((error: unknown) => {
      steps.tell(plans.map(plan => publishedOnly(plan, sent.get(plan))))
      throw error
    })
    steps.tell(results)
  }
}

const untilDecided = async (
  plans: readonly Plan[],
  sent: Sent,
  stream: LiveStream,
  forecaster: Forecaster,
  { waitSeconds }: PublishAgainOptions,
  steps: PublishAgainSteps,
): Promise<Result[]> => {
  await untilPublished(stream, nextOffsets(sent), waitSeconds, steps)
  const results = await outcomesOf(plans, sent, forecaster, steps)
  await assertStillDecides(stream, steps)
  return results
}

/** Sent, and not seen to be decided: the wait was too short, or was interrupted. */
const publishedOnly = ({ result }: Plan, published: Position | undefined): Result =>
  published === undefined ? result : { ...result, outcome: 'published', published }

/** So many records at a time, and so many bytes, or one record. */
async function* chunksOf(
  records: readonly ParkedFields[],
  { parkedIndex: _index }: LiveStream,
  steps: PublishAgainSteps,
): AsyncGenerator<readonly ParkedFields[]> {
  for (let from = 0; from < records.length; from += CHUNK_RECORDS) {
    const some = records.slice(from, from + CHUNK_RECORDS)
    const sizes = await sizesOf(
      some.map(record => ({ _index, _id: positionOf(record) })),
      steps,
    )
    yield* portionsOf(some, sizes, CHUNK_BYTES)
  }
}

type Plan = { readonly parked: Parked; readonly result: Result; readonly send: boolean }

const planOf = (parked: Parked, forecast: Forecast, { force }: PublishAgainOptions): Plan => {
  const plan = (outcome: Result['outcome'], reason: Result['reason'], send: boolean): Plan => ({
    parked,
    result: { fields: parked.fields, outcome, reason, published: null },
    send,
  })
  if (parked.leftOut) return plan('refused', 'bytes_not_kept', false)
  switch (forecast.outcome) {
    case 'applied':
    case 'older':
      for (const [, value, rawName] of parked.record.headers) {
        if (value === null) return plan('refused', 'header_without_value', false)
        if (rawName !== undefined) return plan('refused', 'header_name_not_utf8', false)
      }
      if (forecast.outcome === 'older' && !force) return plan('refused', 'older_than_current', false)
      return plan('would_be_applied', null, true)
    case 'duplicate':
      return plan('already_there', null, false)
    case 'parked':
      return plan('refused', forecast.code, false)
    default:
      return forecast satisfies never
  }
}

/** Where each record that was sent lies now. */
type Sent = ReadonlyMap<Plan, Position>

const sendAll = async (plans: readonly Plan[], stream: LiveStream, steps: PublishAgainSteps): Promise<Sent> => {
  const sent = new Map<Plan, Position>()
  const wanted = plans.filter(({ send }) => send)
  if (wanted.length === 0) return sent
  const { topic } = stream.identity
  const partitions = wanted.map(({ parked }) => targetPartition(stream, parked))
  const messages = wanted.map(({ parked }, place) => messageOf(parked, partitions[place] ?? 0))
  const answers = await (await steps.producer()).send({ topic, acks: -1, messages })
  const next = new Map(answers.map(({ partition, baseOffset }) => [partition, Number(baseOffset)]))
  for (const [place, plan] of wanted.entries()) {
    const partition = partitions[place] ?? 0
    const offset = next.get(partition)
    if (offset === undefined) throw new CommandError('Kafka did not say where it put a record; run the same again')
    next.set(partition, offset + 1)
    sent.set(plan, { topic, partition, offset })
  }
  return sent
}

const messageOf = ({ record: { key, value, headers } }: Parked, partition: number): Message => {
  // Without a prototype: a header may have the name of a member of every object.
  const named: Record<string, Buffer[]> = Object.create(null)
  for (const [name, header] of headers) named[name] = [...(named[name] ?? []), ...(header === null ? [] : [header])]
  // The client takes a list of bytes for a header that stands several times; its types do not know.
  return { key, value, partition, headers: named as IHeaders }
}

const nextOffsets = (sent: Sent): Map<number, number> => {
  const next = new Map<number, number>()
  for (const { partition, offset } of sent.values()) next.set(partition, Math.max(next.get(partition) ?? 0, offset + 1))
  return next
}

const endsOf = async ({ identity }: LiveStream, { admin }: PublishAgainSteps): Promise<Map<number, number>> =>
  new Map((await fetchEnds(admin, identity.topic)).map(({ partition, end }) => [partition, end]))

/** Looked at where it lies now: parked there, or decided as of there. */
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
        throw new CommandError(`${positionOf(published)} is not what the rules say it is: look at the projector's log`)
      }
      const { fields } = plan.parked
      if (outcome === 'parked') results.push({ fields, outcome: 'parked_again', reason: code ?? null, published })
      else results.push({ fields, outcome, reason: null, published })
    }
  }
  return results
}
