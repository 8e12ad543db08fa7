/** The flow of a request: one step a line, in order. What is looked at first answers first. */
import Koa from 'koa'
import { openapi } from '../schemas/openapi.ts'
import { answerErrors, type ObserveRequest } from './answer-errors.ts'
import { authenticate } from './authenticate.ts'
import type { Rate, RequestCounter } from './count-requests.ts'
import { describe } from './describe.ts'
import type { Elasticsearch } from './elasticsearch.ts'
import { gather, timer } from './gather.ts'
import { identifyRequest } from './identify-request.ts'
import { createKeyLookUp } from './keys.ts'
import { createFailures } from './limit-failures.ts'
import { limitRate } from './limit-rate.ts'
import type { Log } from './log.ts'
import { createReaders } from './readers.ts'
import { createReadiness, type Readiness } from './ready.ts'
import { refuseEarly } from './refuse-early.ts'
import type { State, Step } from './request.ts'
import { createRoutes, findRoute, requireRoute } from './routes.ts'
import type { RequestListener } from './server.ts'

export type ApiParts = {
  readonly elasticsearch: Elasticsearch
  readonly prefix: string
  readonly rate: Rate
  /** Of the same rate. */
  readonly counter: RequestCounter
  /** How often one address may come without a valid key in a minute. */
  readonly failuresPerAddress?: number
  readonly log: Log
  readonly observe: ObserveRequest
  readonly rateLimited: (by: 'key' | 'address') => void
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  readonly newRequestId: () => string
}

export type Api = { readonly listener: RequestListener; readonly readiness: () => Promise<Readiness> }

export const createApi = (parts: ApiParts): Api => {
  const { prefix, log, now } = parts
  const { search } = parts.elasticsearch
  const multiGet = gather(parts.elasticsearch.multiGet, timer)
  const { positions, readers } = createReaders(prefix, search, multiGet)
  const keys = createKeyLookUp(prefix, multiGet, now)
  const router = createRoutes(readers)

  const steps = [
    answerErrors(log, parts.observe, now),
    identifyRequest(parts.newRequestId),
    refuseEarly,
    findRoute(router),
    describe(JSON.stringify(openapi)),
    authenticate(keys, createFailures(now, parts.failuresPerAddress), () => parts.rateLimited('address')),
    limitRate(parts.rate, parts.counter, now, () => parts.rateLimited('key')),
    requireRoute,
    router.routes() as unknown as Step,
  ]
  const app = new Koa<State>({ env: 'production' })
  for (const step of steps) app.use(step)
  // What fails after the last step is a connection that broke while an answer was on its way.
  app.on('error', (error: { code?: unknown }) => log.say('info', 'an answer was not delivered', codeOf(error)))
  return { listener: app.callback(), readiness: createReadiness(positions.lookAtPositions, keys.look) }
}

const codeOf = ({ code }: { code?: unknown }) => ({ code: typeof code === 'string' ? code : 'unknown' })
