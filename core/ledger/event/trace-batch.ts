/**
 * In: a batch of one partition. Out: a span from its decision until its documents are written, if an OpenTelemetry SDK
 * is loaded with `--import`; without one, nothing. The span of each record's publisher (`ce_traceparent`) is a link.
 * Promises: a span has topic, partition, first offset and number of records, and nothing of a record.
 */
import { propagation, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api'
import type { RawRecord } from './decode.ts'

const tracer = trace.getTracer('commission-projector')
const TRACEPARENT = [Buffer.from('ce_traceparent')]
/** As many as an SDK keeps by default. */
const LINKS_MAX = 128

/** Starts the span of a batch. @returns a function that ends it */
export const traceBatch = (
  { from, records }: { readonly from: number; readonly records: readonly RawRecord[] },
  { topic, partition }: { readonly topic: string; readonly partition: number },
): (() => void) => {
  const attributes = {
    'messaging.system': 'kafka',
    'messaging.destination.name': topic,
    'messaging.destination.partition.id': String(partition),
    'messaging.kafka.offset': from,
    'messaging.batch.message_count': records.length,
  }
  const span = tracer.startSpan(`process ${topic}`, { kind: SpanKind.CONSUMER, attributes })
  if (span.isRecording()) addLinks(span, records)
  return () => span.end()
}

const addLinks = (span: Span, records: readonly RawRecord[]): void => {
  let links = 0
  for (const { headers } of records) {
    const [traceparent] = headers.textsOf(TRACEPARENT)
    const context = traceparent && trace.getSpanContext(propagation.extract(ROOT_CONTEXT, { traceparent }))
    if (!context) continue
    span.addLink({ context })
    if (++links === LINKS_MAX) return
  }
}
