/**
 * In: a request, with `traceparent` if the client sent one. Out: one span for the request, if an OpenTelemetry SDK is
 *   loaded with `--import`. Without one, nothing.
 * Promises: a span has the method, the pattern of the route, the status and the request id. It has no target, header,
 *   key, organization or record: others read the spans. An SDK is large, and each company has its own: none is here.
 */
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Arrived, KnownSoFar, Step } from './request.ts'

const tracer = trace.getTracer('commission-api')

export const traceRequest: Step<Arrived & KnownSoFar> = (ctx, next) => {
  const parent = propagation.extract(context.active(), ctx.req.headers)
  return tracer.startActiveSpan(ctx.method, { kind: SpanKind.SERVER }, parent, async span => {
    try {
      return await next()
    } finally {
      const { route, requestId } = ctx.state
      if (route !== undefined) span.updateName(`${ctx.method} ${route}`).setAttribute('http.route', route)
      span.setAttributes({
        'http.request.method': ctx.method,
        'http.response.status_code': ctx.status,
        'commission.request_id': requestId,
      })
      if (ctx.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    }
  })
}
