/** An OpenTelemetry SDK in this process that keeps finished spans in memory. */
import { context, propagation, trace } from '@opentelemetry/api'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'

export const createSpanRecorder = () => {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  return {
    finished: () => exporter.getFinishedSpans(),
    /** Makes it the SDK of this process, without spans. */
    start: (): void => {
      provider.register()
      exporter.reset()
    },
    stop: async (): Promise<void> => {
      await provider.shutdown()
      trace.disable()
      context.disable()
      propagation.disable()
    },
  }
}
