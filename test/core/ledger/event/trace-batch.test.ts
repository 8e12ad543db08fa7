import { SpanKind } from '@opentelemetry/api'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Batch } from '../../../../core/ledger/event/decode.ts'
import { traceBatch } from '../../../../core/ledger/event/trace-batch.ts'
import { encodeHeaders } from '../../../../core/log/kafka/encoded-headers.ts'
import { createSpanRecorder } from '../../../support/spans.ts'

const spans = createSpanRecorder()
const source = { topic: 'commission.events', partition: 2 }
const ids = (at: number) => ({ trace: `${at}`.padStart(32, 'a'), span: `${at}`.padStart(16, 'b') })

const batchOf = (traceparents: readonly (string | null)[]): Batch => ({
  from: 7,
  end: 7 + traceparents.length,
  records: traceparents.map((traceparent, index) => ({
    offset: 7 + index,
    timestamp: 0,
    key: Buffer.from('org_secret'),
    value: Buffer.from('{"name":"secret"}'),
    headers: encodeHeaders([
      ['ce_id', Buffer.from('secret')],
      ...(traceparent === null ? [] : ([['ce_traceparent', Buffer.from(traceparent)]] as const)),
    ]),
  })),
})

test('without an SDK, a batch has no span', () => {
  traceBatch(batchOf([null]), source)()
  expect(spans.finished()).toEqual([])
})

describe('with an SDK', () => {
  beforeEach(spans.start)
  afterAll(spans.stop)

  test('a batch has one span with its place and its number of records, and nothing of a record', () => {
    const end = traceBatch(batchOf([null, null]), source)
    expect(spans.finished()).toEqual([])
    end()
    const [span] = spans.finished()
    expect(span).toMatchObject({ name: 'process commission.events', kind: SpanKind.CONSUMER, links: [] })
    expect(span?.attributes).toEqual({
      'messaging.system': 'kafka',
      'messaging.destination.name': 'commission.events',
      'messaging.destination.partition.id': '2',
      'messaging.kafka.offset': 7,
      'messaging.batch.message_count': 2,
    })
  })

  test('links the span of each publisher; ignores an invalid one', () => {
    const traceparents = [ids(1), ids(2)].map(({ trace, span }) => `00-${trace}-${span}-01`)
    traceBatch(batchOf([traceparents[0] ?? '', null, 'nonsense', '', traceparents[1] ?? '']), source)()
    const links = spans.finished()[0]?.links.map(({ context: { traceId, spanId } }) => [traceId, spanId])
    expect(links).toEqual([ids(1), ids(2)].map(({ trace, span }) => [trace, span]))
  })

  test('has at most 128 links', () => {
    const many = Array.from({ length: 200 }, (_, at) => `00-${ids(at).trace}-${ids(at).span}-01`)
    traceBatch(batchOf(many), source)()
    expect(spans.finished()[0]?.links).toHaveLength(128)
  })
})
