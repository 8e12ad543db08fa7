/**
 * In: the origins whose pages may read the API in a browser. Out: the headers of CORS on each answer to them, and the
 *   answers to their preflight requests.
 * Promises: a preflight request needs no key and costs nothing. It is refused as any request for its target, headers
 *   and body, and its answer has an id. No answer allows cookies: the key is the only way in.
 */
import cors from '@koa/cors'
import type Koa from 'koa'
import { headers } from '../../schemas/reference/openapi-headers.ts'
import type { Arrived, Context, Step } from '../http/request.ts'
import { PREFLIGHT_SECONDS } from '../limits.ts'

type AllowedOrigins = {
  /** Around all steps: sets the headers on each answer but that to a preflight request. */
  readonly setHeaders: Koa.Middleware
  /** Step: answers a preflight request of an allowed origin. */
  readonly answerPreflight: Step<Arrived>
}

export const allowOrigins = (origins: readonly string[]): AllowedOrigins => {
  const allow = cors({
    // An empty text stands for no: the answer is the same as to a request without an origin.
    origin: ({ headers: { origin = '' } }) => (origins.includes(origin) ? origin : ''),
    allowMethods: ['GET', 'HEAD'],
    allowHeaders: ['Authorization', 'If-None-Match'],
    exposeHeaders: Object.keys(headers),
    maxAge: PREFLIGHT_SECONDS,
  })
  const isPreflight = ({ method, headers: { origin = '', 'access-control-request-method': asked } }: Requested) =>
    method === 'OPTIONS' && asked !== undefined && origins.includes(origin)
  return {
    setHeaders: (ctx, next) => (isPreflight(ctx) ? next() : allow(ctx, next)),
    answerPreflight: (ctx, next) => (isPreflight(ctx) ? allow(ctx, next) : next()),
  }
}

type Requested = Pick<Context<Arrived>, 'method' | 'headers'>
