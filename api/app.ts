/** The flow of a request: one step after the other, in order. The first check that fails gives the answer. */

import Koa from 'koa'
import {
  createApiKeyCache,
  createIndexChecks,
  createKeyReads,
  createOpenRecords,
  createReaders,
  type KeyHolder,
  keysChecked,
  noSealKeys,
  type ReadSealKey,
  reportRefusals,
  searchesPermitted,
} from '../core/reading/index.ts'
import { type Schedule, type SigningKey, scheduleTimer } from '../core/runtime/index.ts'
import { type AnswerBudget, batchMultiGets, holdReads, type SearchClient } from '../core/store/index.ts'
import { openapi } from '../schemas/reference/openapi.ts'
import { allowOrigins } from './access/allow-origins.ts'
import { authenticate, createAdmitKey, createFailedLogins } from './access/authenticate.ts'
import type { Rate, RequestCounter } from './access/limit-rate.ts'
import { limitRate } from './access/limit-rate.ts'
import {
  createRequestMemory,
  createShares,
  limitDelivery,
  limitInFlight,
  reserveReads,
  runPermitted,
  type ShareLimits,
  shareReads,
  type Usage,
  usageOf,
  usualShares,
} from './access/permits.ts'
import { createReadiness, type Readiness } from './admin/ready.ts'
import { answerAndLog, createAdmitLine, type Log, type ObserveRequest, traceRequest } from './answer/answer-and-log.ts'
import { serveOpenapi } from './answer/serve-openapi.ts'
import { waitForChange } from './answer/wait-for-change.ts'
import { type Audit, auditNothing, auditReads } from './audit/audit-reads.ts'
import { createAddressOf } from './http/client-address.ts'
import {
  type Arrived,
  arrivedOf,
  type Context,
  identifyRequest,
  type KnownSoFar,
  refuseEarly,
  startSteps,
} from './http/request.ts'
import type { RequestListener } from './http/server.ts'
import { answerRoute, CHANGES_ROUTE, createRoutes, findRoute, requireRoute, TOTALS_ROUTE } from './routes.ts'

/** `main.ts` gives all of them but `failuresPerAddress` and `later`, from the settings. */
type ApiParts = {
  readonly elasticsearch: SearchClient
  readonly prefix: string
  readonly rate: Rate
  /** Counts with the same `rate`. By default `main.ts` gives one of this process; with REDIS_URL, one in Redis. */
  readonly counter: RequestCounter
  /** Addresses and networks of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies?: readonly string[]
  /** Scheme, host and port of the API, as clients know them. */
  readonly publicUrl?: string | undefined
  /** Origins whose pages may read the API in a browser; by default none. */
  readonly corsOrigins?: readonly string[]
  /** Unknown keys that one address may try in a minute. */
  readonly failuresPerAddress?: number
  /** `main.ts` gives the usual ones; with TLS, fewer waits. */
  readonly shareLimits?: ShareLimits
  /** Whether clients may keep answers; by default, also of `main.ts`, they may. */
  readonly mayStore?: boolean
  readonly budget: AnswerBudget
  /** By default, also of `main.ts`, there are no seal keys: records with sealed texts are refused. */
  readonly readSealKey?: ReadSealKey
  /** Signs checkpoints; by default, also of `main.ts`, there are none. */
  readonly checkpointKey?: SigningKey | undefined
  /** Called for every answer that a client did not read in time. */
  readonly onDeliveryTimeout: () => void
  /** Timers of the same clock as `elapsed`; by default those of the process. */
  readonly later?: Schedule
  readonly log: Log
  /** Where reads are recorded; by default, also of `main.ts`, nowhere. */
  readonly audit?: Audit | undefined
  /** Told the holder of the key of each authenticated request. */
  readonly onKeyUsed?: (key: KeyHolder) => void
  readonly observe: ObserveRequest
  readonly onRateLimited: (by: 'key' | 'under_way' | 'address') => void
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
  /** At least 0, below 1. */
  readonly random: () => number
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly newRequestId: () => string
}

type Api = {
  readonly listener: RequestListener
  readonly readiness: () => Promise<Readiness>
  readonly usage: () => Usage
  /** Answers all requests that wait for a change, and every later one, at once. */
  readonly endWaits: () => void
  /** Logs the refusal of bytes that never became a request, unless they may be a flood. */
  readonly logRefusedBytes: (requestId: string, reason: string, address: string | undefined) => void
}

/**
 * Puts the steps together. Opens no connection and does not listen: `main.ts` gives `listener` to `createApiServer`.
 */
export const createApi = (parts: ApiParts): Api => {
  const { prefix, log, elapsed, later = scheduleTimer, shareLimits = usualShares } = parts
  const batched = batchMultiGets(parts.elasticsearch.multiGet, later)
  // The same reads: each reserves its bytes in the memory of its request before it asks.
  const reads = holdReads({ search: parts.elasticsearch.search, multiGets: batched })
  const indexChecks = createIndexChecks(prefix, batched.ofProcess, parts.elasticsearch.indexIds, elapsed, later)
  // `list` is in core/reading/pages/read-list.ts. `readAt` reads a position: core/store/positions/position.ts.
  // Each read of a position also checks that the indices are those of its generation.
  const { positions, readers, createWatch } = createReaders({
    prefix,
    reads,
    indexChecks,
    later,
    now: parts.now,
    elapsed,
    checkpointKey: parts.checkpointKey,
  })
  // `lookup` and `remembered` are in core/reading/api-key-cache.ts.
  const keys = keysChecked(createApiKeyCache(prefix, batched.ofProcess, elapsed, parts.now), indexChecks.check)
  const readServed = searchesPermitted(positions.readServedPositions, parts.elasticsearch.search, elapsed)
  const inFlightMax = shareLimits.inFlightOfKey.permits
  const shares = createShares(shareLimits, later)
  const admitKey = createAdmitKey(keys, createFailedLogins(elapsed, parts.failuresPerAddress), shares, later)
  const addressOf = createAddressOf(parts.trustedProxies ?? [])
  const admitLine = createAdmitLine(elapsed)
  const waitPermits = {
    // Each wait has a place in this queue for as long as it may wait: none is refused (WAIT_SEARCHES).
    toBegin: runPermitted(shares.waitSearches),
    toFind: runPermitted(shares.readsOfOrganization),
  }
  const watch = createWatch(waitPermits, shares.waits)
  const memory = createRequestMemory(parts.budget, shares.largeAnswers)
  const readSealKey = reportRefusals(parts.readSealKey ?? noSealKeys, log.say, elapsed)
  const allowed = allowOrigins(parts.corsOrigins ?? [])
  const openRecords = createOpenRecords(readSealKey, createKeyReads(later))
  const router = createRoutes(readers, openRecords, watch, elapsed, indexChecks.proofs)

  // Each step wraps those below it. An answer goes back up through them, and Koa sends it after the first one returns.
  // So `answerAndLog` answers a refusal of any step below it. `auditReads` writes its line after `limitDelivery` has
  // prepared the answer, and before Koa sends it.
  const answer = startSteps<Arrived>()
    .step(traceRequest)
    .step(answerAndLog({ log, observe: parts.observe, elapsed, random: parts.random, addressOf, admitLine }))
    // The audit counts its lines apart from the log.
    .step(
      parts.audit
        ? auditReads({ ...parts.audit, now: parts.now, addressOf, admitLine: createAdmitLine(elapsed) })
        : auditNothing,
    )
    // Shows the id that `arrivedOf` gave. Adds the signal and the time limit.
    .step(identifyRequest(later))
    // Keeps the memory of the answer until the client has it, and closes a connection that is too slow.
    .step(limitDelivery(parts.budget, later, parts.onDeliveryTimeout))
    // Refuses targets, headers, hosts and bodies that no route accepts.
    .step(refuseEarly)
    .step(allowed.answerPreflight)
    .step(findRoute(router))
    .step(serveOpenapi(JSON.stringify(openapi)))
    // Adds the holder of the key, from memory or a shared look-up. 401 for a key that is not in force.
    .step(
      authenticate({
        keys,
        admitKey,
        addressOf,
        mayStore: parts.mayStore ?? true,
        onUsed: parts.onKeyUsed ?? (() => undefined),
        onLimited: () => parts.onRateLimited('address'),
      }),
    )
    // One unit now, more once the size of the answer is known. It also refuses what the key has no permission for.
    .step(
      limitRate({
        rate: parts.rate,
        inFlightMax,
        counter: parts.counter,
        elapsed,
        onLimited: () => parts.onRateLimited('key'),
      }),
    )
    .step(limitInFlight(shares, () => parts.onRateLimited('under_way')))
    .step(requireRoute)
    // Holds a request for changes with `wait` until there may be one. Other requests pass.
    .step(waitForChange(CHANGES_ROUTE, watch, memory, elapsed))
    .step(shareReads(TOTALS_ROUTE, shares.readsOfOrganization, shares.totalsOfOrganization))
    // Adds `scope`, where the bytes of all reads count.
    .step(reserveReads(memory))
    .end(answerRoute(router))
  const app = new Koa<Arrived>({ env: 'production' })
  if (parts.corsOrigins?.length) app.use(allowed.setHeaders)
  app.use(ctx => {
    Object.assign(ctx.state, arrivedOf(ctx.req, parts))
    return answer(ctx)
  })
  // An error after the last step means that the connection broke while an answer was sent.
  const admitBroken = createAdmitLine(elapsed)
  app.on('error', (error: { code?: unknown }, { state, req }: Context<KnownSoFar>) => {
    if (state.key === undefined && admitBroken(addressOf(req)) === undefined) return
    log.say('info', 'an answer was not delivered', codeOf(error))
  })
  return {
    listener: app.callback(),
    readiness: createReadiness(readServed, keys.checkServed),
    usage: () => ({ ...usageOf(shares), waits_for_changes: { held: 0, waiting: watch.waiting() } }),
    endWaits: watch.end,
    logRefusedBytes: (requestId, reason, address) => {
      const line = admitLine(address)
      if (line) log.refusedBytes(requestId, reason, { address, ...line })
    },
  }
}

const codeOf = ({ code }: { code?: unknown }) => ({ code: typeof code === 'string' ? code : 'unknown' })
