/**
 * `GET /receipts/{topic}/{partition}/{offset}?wait=10` and `GET /receipts/{topic}/{partition}?from=0&to=9&wait=10` of
 * the admin port and of the port of receipts. In: a request. Out: the receipt of a record or of a run as JSON, or an
 * error that says what was expected and what was received. Undefined for any other path.
 */

import type { StreamSource } from '../keep-up.ts'
import { RECEIPT_WAIT_SECONDS_MAX, RECEIPTS_WAITING_MAX, RUN_OFFSETS_MAX, RUNS_AT_ONCE_MAX } from '../limits.ts'
import type { ExplainParked } from './explain-parked.ts'
import type { Receipts, RecordLocation } from './receipts.ts'
import type { AskRun, RunOutcome } from './run-receipts.ts'

export const RECEIPT_PATHS = [
  '/receipts/{topic}/{partition}/{offset}',
  '/receipts/{topic}/{partition}?from={offset}&to={offset}',
] as const

export type ReceiptSteps = Pick<Receipts, 'ask'> & {
  readonly askRun: AskRun
  readonly explain: ExplainParked
  /** Empty until the streams are known. */
  readonly sources: () => readonly StreamSource[]
}

type ReceiptAnswer = {
  readonly code: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/** @param gone aborts when the client has disconnected */
export const answerReceipt = async (
  method: string,
  url: string,
  gone: AbortSignal,
  steps: ReceiptSteps,
): Promise<ReceiptAnswer | undefined> => {
  const [, topic, partition, offset, query] = pathPattern.exec(url) ?? []
  if (topic === undefined || partition === undefined) return undefined
  if (method !== 'GET' && method !== 'HEAD') {
    return errorAnswer(405, `method: expected GET or HEAD, got ${method}`, { allow: 'GET, HEAD' })
  }
  const question = readQuestion(partition, offset, query)
  if (typeof question === 'string') return errorAnswer(400, question)

  const known = steps.sources()
  if (known.length === 0) return notKnownNow('the projector is starting')
  const source = known.find(candidate => candidate.topic === topic)
  if (source === undefined) {
    const topics = [...new Set(known.map(candidate => candidate.topic))].join(' or ')
    return errorAnswer(404, `topic: expected ${topics}, got ${shown(topic)}`)
  }
  if (question.partition >= source.partitions) {
    return errorAnswer(404, `partition: expected 0 to ${source.partitions - 1} of ${topic}, got ${question.partition}`)
  }
  return answerQuestion(question, source, gone, steps)
}

const answerQuestion = async (
  { partition, wait, offset, from, to }: Question,
  { stream, topic, partitions }: StreamSource,
  gone: AbortSignal,
  { ask, askRun, explain }: ReceiptSteps,
): Promise<ReceiptAnswer> => {
  if (offset === undefined) {
    const outcome = await askRun({ stream, topic, partition, partitions, from, to }, wait * 1_000, gone)
    if (outcome.state !== 'read') return noReceipt(outcome, topic)
    return jsonAnswer(200, { topic, partition, from, to, ...outcome.receipt })
  }
  const location: RecordLocation = { stream, topic, partition, offset }
  const outcome = await ask(location, wait * 1_000, gone)
  switch (outcome.state) {
    case 'published':
    case 'not_yet':
      return jsonAnswer(200, { ...outcome, topic, partition, offset })
    case 'parked': {
      const detail = await explain({ ...location, partitions, code: outcome.code }, gone)
      return jsonAnswer(200, { ...outcome, detail, topic, partition, offset })
    }
    case 'other_topic':
    case 'not_served':
    case 'unavailable':
    case 'too_many':
    case 'stopping':
      return noReceipt(outcome, topic)
  }
}

const noReceipt = (outcome: Exclude<RunOutcome, { state: 'read' }>, topic: string): ReceiptAnswer => {
  switch (outcome.state) {
    case 'other_topic':
      return errorAnswer(404, `topic: expected ${outcome.live} (the topic of the live generation), got ${shown(topic)}`)
    case 'not_served':
      return notKnownNow(
        'readers are refused, too: documents of the live generation may be missing until they are read again',
      )
    case 'unavailable':
      return notKnownNow('Elasticsearch is unavailable: the published position is unknown')
    case 'too_many':
      return notKnownNow(`at most ${RECEIPTS_WAITING_MAX} requests may wait for a receipt at once`)
    case 'too_many_runs':
      return notKnownNow(`at most ${RUNS_AT_ONCE_MAX} requests for runs may be open at once`)
    case 'stopping':
      return notKnownNow('the projector is stopping')
  }
}

const pathPattern = /^\/receipts\/([^/?]+)\/([^/?]+)(?:\/([^/?]+))?(?:\?(.*))?$/s

type Question = { readonly partition: number; readonly wait: number } & (
  | { readonly offset: number; readonly from?: never; readonly to?: never }
  | { readonly offset?: never; readonly from: number; readonly to: number }
)

/** Returns the parsed request, or what is wrong with it. @param offset absent in the path of a run */
const readQuestion = (partition: string, offset: string | undefined, query = ''): Question | string => {
  const parameters = new URLSearchParams(query)
  const names = offset === undefined ? ['from', 'to', 'wait'] : ['wait']
  const unknown = [...parameters.keys()].find(name => !names.includes(name))
  if (unknown !== undefined) {
    const expected = offset === undefined ? 'from, to and wait' : 'no parameter but wait'
    return `query: expected ${expected}, got ${shown(unknown)}`
  }
  const repeated = names.find(name => parameters.getAll(name).length > 1)
  if (repeated !== undefined) return `${repeated}: expected once, got ${parameters.getAll(repeated).length} times`

  const wait = parameters.get('wait') ?? '0'
  const offsets = offset === undefined ? { from: parameters.get('from'), to: parameters.get('to') } : { offset }
  const wrong =
    wrongNumber('partition', partition, KAFKA_PARTITION_MAX) ??
    Object.entries(offsets)
      .map(([name, text]) => wrongNumber(name, text, Number.MAX_SAFE_INTEGER))
      .find(problem => problem !== undefined) ??
    wrongNumber('wait', wait, RECEIPT_WAIT_SECONDS_MAX)
  if (wrong !== undefined) return wrong
  const common = { partition: Number(partition), wait: Number(wait) }
  if (offset !== undefined) return { ...common, offset: Number(offset) }

  const [from, to] = [Number(parameters.get('from')), Number(parameters.get('to'))]
  if (to < from) return `to: expected at least ${from} (the value of from), got ${to}`
  const last = from + RUN_OFFSETS_MAX - 1
  if (to > last)
    return `to: expected at most ${last}, because a request has at most ${RUN_OFFSETS_MAX} offsets, got ${to}`
  return { ...common, from, to }
}

/** Returns what is wrong with the text of a number; undefined for a whole number from 0 to `max`. */
const wrongNumber = (name: string, text: string | null, max: number): string | undefined => {
  const expected = `${name}: expected ${name === 'wait' ? 'whole seconds' : 'a whole number'} from 0 to ${max}`
  if (text === null) return `${expected}, got nothing`
  return wholeNumber.test(text) && Number(text) <= max ? undefined : `${expected}, got ${shown(text)}`
}

const wholeNumber = /^(?:0|[1-9][0-9]*)$/
/** Kafka partition numbers have 32 bits. */
const KAFKA_PARTITION_MAX = 2 ** 31 - 1

/** Quotes the beginning of the input, so that the sender can recognize it. */
const shown = (text: string): string => JSON.stringify(text.slice(0, 100))

const jsonAnswer = (code: number, body: object, headers: Readonly<Record<string, string>> = {}): ReceiptAnswer => ({
  code,
  // A `not_yet` can change at any moment.
  headers: { 'cache-control': 'no-store', ...headers },
  body: JSON.stringify(body),
})

const errorAnswer = (code: number, error: string, headers?: Readonly<Record<string, string>>): ReceiptAnswer =>
  jsonAnswer(code, { error }, headers)

/** Says that the answer is not known now, and to ask again in a second. */
export const notKnownNow = (error: string): ReceiptAnswer => errorAnswer(503, error, { 'retry-after': '1' })
