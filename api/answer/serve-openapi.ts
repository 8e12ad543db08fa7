/**
 * In: a request under the base path. Out: the OpenAPI document at `/openapi.json`; other requests continue.
 * Promises: needs no key and looks at none, even if the method or a parameter is refused.
 */

import { refuseParameters } from '../../core/reading/index.ts'
import { Refusal } from '../../core/runtime/index.ts'
import { type Arrived, BASE_PATH, type Step } from '../http/request.ts'
import { answerBody, answerNotModified, isNotModified, tagOf } from './answer-page.ts'

/** The path of the OpenAPI document: it has no records and needs no key. */
export const OPENAPI_PATH = `${BASE_PATH}/openapi.json`

/** @param description the document as JSON text */
export const serveOpenapi = (description: string): Step<Arrived> => {
  const body = Buffer.from(description)
  const etag = tagOf(body)
  return async (ctx, next) => {
    if (ctx.state.path !== OPENAPI_PATH) return next()
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw new Refusal('method_not_allowed')
    refuseParameters(ctx.state.query)
    ctx.set('Cache-Control', 'no-cache')
    ctx.set('ETag', etag)
    const asked = ctx.get('If-None-Match')
    if (isNotModified(asked, etag)) answerNotModified(ctx, asked, () => undefined)
    else answerBody(ctx, body)
  }
}
