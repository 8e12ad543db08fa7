/**
 * `GET /receipts/{topic}/{partition}/{offset}?wait=10` of the admin port. In: a request. Out: the receipt as JSON, or
 * an error that says what was expected and what was received. Undefined for any other path.
 */
import type { Stream } from '../../schemas/events.ts'
import { RECEIPT_WAIT_SECONDS_MAX, RECEIPTS_WAITING_MAX } from '../limits.ts'
import type { Receipts, RecordLocation } from './receipts.ts'

export const RECEIPT_PATH = '/receipts/{topic}/{partition}/{offset}'

export type ReceiptSteps = Pick<Receipts, 'ask'> & {
  /** Empty until the streams are known. */
  readonly sources: () => readonly Source[]
}
type Source = { readonly stream: Stream; readonly topic: string; readonly partitions: number }

export type ReceiptAnswer = {
  readonly code: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

/** @param gone aborts when the client has disconnected */
export const answerReceipt = async (
  method: string,
  url: string,
  gone: AbortSignal,
  { ask, sources }: ReceiptSteps,
): Promise<ReceiptAnswer | undefined> => {
  const [, topic, partition, offset, query] = pathPattern.exec(url) ?? []
  if (topic === undefined || partition === undefined || offset === undefined) return undefined
  if (method !== 'GET' && method !== 'HEAD') {
    return errorAnswer(405, `method: expected GET or HEAD, got ${method}`, { allow: 'GET, HEAD' })
  }
  const question = readQuestion(partition, offset, query)
  if (typeof question === 'string') return errorAnswer(400, question)

  const known = sources()
  if (known.length === 0) return unavailable('the projector is starting')
  const source = known.find(candidate => candidate.topic === topic)
  if (source === undefined) {
    const topics = [...new Set(known.map(candidate => candidate.topic))].join(' or ')
    return errorAnswer(404, `topic: expected ${topics}, got ${shown(topic)}`)
  }
  if (question.partition >= source.partitions) {
    return errorAnswer(404, `partition: expected 0 to ${source.partitions - 1} of ${topic}, got ${question.partition}`)
  }

  const location: RecordLocation = {
    stream: source.stream,
    topic,
    partition: question.partition,
    offset: question.offset,
  }
  const outcome = await ask(location, question.wait * 1_000, gone)
  switch (outcome.state) {
    case 'published':
    case 'parked':
    case 'not_yet':
      return jsonAnswer(200, { ...outcome, topic, partition: location.partition, offset: location.offset })
    case 'unavailable':
      return unavailable('Elasticsearch is unavailable: the published position is unknown')
    case 'too_many':
      return unavailable(`expected at most ${RECEIPTS_WAITING_MAX} waiting receipts, got one more`)
    case 'stopping':
      return unavailable('the projector is stopping')
  }
}

const pathPattern = /^\/receipts\/([^/?]+)\/([^/?]+)\/([^/?]+)(?:\?(.*))?$/s

type Question = { readonly partition: number; readonly offset: number; readonly wait: number }

/** Returns the parsed request, or what is wrong with it. */
const readQuestion = (partition: string, offset: string, query = ''): Question | string => {
  const parameters = new URLSearchParams(query)
  const unknown = [...parameters.keys()].find(name => name !== 'wait')
  if (unknown !== undefined) return `query: expected no parameter but wait, got ${shown(unknown)}`
  const waits = parameters.getAll('wait')
  if (waits.length > 1) return `wait: expected once, got ${waits.length} times`
  const [wait = '0'] = waits

  const question = { partition: Number(partition), offset: Number(offset), wait: Number(wait) }
  for (const [name, text, max] of [
    ['partition', partition, KAFKA_PARTITION_MAX],
    ['offset', offset, Number.MAX_SAFE_INTEGER],
    ['wait', wait, RECEIPT_WAIT_SECONDS_MAX],
  ] as const) {
    const unit = name === 'wait' ? 'whole seconds' : 'a whole number'
    if (!wholeNumber.test(text) || question[name] > max)
      return `${name}: expected ${unit} from 0 to ${max}, got ${shown(text)}`
  }
  return question
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

const unavailable = (error: string): ReceiptAnswer => errorAnswer(503, error, { 'retry-after': '1' })
