/**
 * In: the origins whose pages may read the API in a browser. Out: the headers of CORS on each answer to them, and the
 *   answers to their preflight requests.
 * Promises: a preflight request needs no key and costs nothing. No answer allows cookies: the key is the only way in.
 */
import cors from '@koa/cors'
import type Koa from 'koa'
import { headers } from '../../schemas/reference/openapi-headers.ts'
import { PREFLIGHT_SECONDS } from '../limits.ts'

export const allowOrigins = (origins: readonly string[]): Koa.Middleware =>
  cors({
    // An empty text stands for no: the answer is the same as to a request without an origin.
    origin: ({ headers: { origin = '' } }) => (origins.includes(origin) ? origin : ''),
    allowMethods: ['GET', 'HEAD'],
    allowHeaders: ['Authorization', 'If-None-Match'],
    exposeHeaders: Object.keys(headers),
    maxAge: PREFLIGHT_SECONDS,
  })
