/** Loaded with `--import`: an OpenTelemetry SDK that writes each span as a line of JSON to the file SPANS_FILE. */
import { appendFileSync } from 'node:fs'
import { NodeTracerProvider, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'

const file = process.env.SPANS_FILE
if (file === undefined) throw new Error('SPANS_FILE: expected the path of a file, got nothing')

const lineOf = (span: ReadableSpan): string => {
  const { name, attributes, links, parentSpanContext } = span
  const { traceId } = span.spanContext()
  const linked = links.map(({ context }) => context.spanId)
  return JSON.stringify({ name, attributes, traceId, parent: parentSpanContext?.spanId, links: linked })
}

const exporter = {
  export: (spans: ReadableSpan[], done: (result: { code: number }) => void): void => {
    for (const span of spans) appendFileSync(file, `${lineOf(span)}\n`)
    done({ code: 0 })
  },
  shutdown: async (): Promise<void> => undefined,
}
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register()
