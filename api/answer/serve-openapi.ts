/**
 * In: a request under the base path. Out: the OpenAPI document at `/openapi.json`; other requests continue.
 * Promises: needs no key and looks at none, even if the method or a parameter is refused.
 */
import { hash } from 'node:crypto'
import { OK, Refusal } from '../failures.ts'
import { BASE_PATH, type RequestStep } from '../http/request.ts'
import { refuseParameters } from '../read/read-parameters.ts'
import { answerNotModified, isNotModified } from './answer-page.ts'

export const DESCRIPTION_PATH = `${BASE_PATH}/openapi.json`

/** @param description the document as JSON text */
export const serveOpenapi = (description: string): RequestStep => {
  const body = Buffer.from(description)
  const etag = `"${hash('sha256', body, 'base64url').slice(0, 27)}"`
  return async (ctx, next) => {
    if (ctx.state.path !== DESCRIPTION_PATH) return next()
    ctx.state.route = DESCRIPTION_PATH
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw new Refusal('method_not_allowed')
    refuseParameters(ctx.state.query)
    ctx.set('Cache-Control', 'no-cache')
    ctx.set('ETag', etag)
    const asked = ctx.get('If-None-Match')
    if (isNotModified(asked, etag)) answerNotModified(ctx, asked)
    else {
      ctx.status = OK
      ctx.set('Content-Type', 'application/json; charset=utf-8')
      ctx.body = body
    }
  }
}
