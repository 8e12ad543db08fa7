/** The paths of the API and what answers each. Refuses unknown paths, and methods that are not offered. */
import Router from '@koa/router'
import {
  type ChangeWatch,
  changeNameOf,
  type FoundRecord,
  idPrefixOf,
  type Moment,
  type OpenRecords,
  type Page,
  type Readers,
  type RecordAsked,
  readAsOf,
  readHistoryParameters,
  readId,
  readListParameters,
  readTotalsParameters,
  usualPace,
} from '../core/reading/index.ts'
import { Refusal } from '../core/runtime/index.ts'
import { type ListKind, listKinds } from '../schemas/stored/documents.ts'
import { answerChanges, answerHistory, answerTotals } from './answer/answer-changes.ts'
import { answerList, answerPayout, answerRecord, answerStatement } from './answer/answer-page.ts'
import { noteRecordsForAudit } from './http/note-records.ts'
import {
  BASE_PATH,
  holderOf,
  type RequestContext,
  type RequestState,
  type RequestStep,
  scopeOf,
} from './http/request.ts'

/** Creates the router with all paths of the API. */
export const createRoutes = (
  { list, records, history, totals }: Readers,
  openRecords: OpenRecords,
  watch: Pick<ChangeWatch, 'confirm' | 'remember'>,
): Router<RequestState> => {
  // Without these two options the router ignores case and accepts a trailing slash.
  const router = new Router<RequestState>({ prefix: BASE_PATH, sensitive: true, strict: true })
  /** Opens sealed texts, and remembers their state for the entity tag. */
  const opened = async (ctx: RequestContext, page: Page): Promise<Page> => {
    const { hits, state } = await openRecords.hits(orgOf(ctx), page.hits, ctx.state.signal)
    if (state !== undefined) ctx.state.sealState = state
    return { ...page, hits }
  }
  const openedRecord = async (ctx: RequestContext, kind: ListKind, found: FoundRecord): Promise<FoundRecord> => {
    const { slice, state } = await openRecords.record(orgOf(ctx), kind, found.slice, ctx.state.signal)
    if (state !== undefined) ctx.state.sealState = state
    return { ...found, slice }
  }
  for (const kind of listKinds) {
    router.get(`/${kind}`, async ctx => {
      const parameters = rememberAsked(ctx, readListParameters(kind, ctx.state.query))
      const page = await opened(ctx, await list(scopeOf(ctx.state), { list: kind, ...parameters }))
      answerList(ctx, kind, page, parameters.startingAfter)
    })
  }
  router.get(COPIED, '/changes', async ctx => {
    const { nothingBefore, signal, query } = ctx.state
    const parameters = rememberAsked(ctx, readListParameters('changes', query))
    const position = nothingBefore && (await watch.confirm(scopeOf(ctx.state), parameters, nothingBefore))
    const page = position
      ? { position, hits: [], hasMore: false }
      : await opened(ctx, await list(scopeOf(ctx.state), { list: 'changes', ...parameters }))
    const last = page.hits.at(-1)
    if (parameters.wait && !page.hasMore) {
      const startingAfter = last ? changeNameOf(last) : parameters.startingAfter
      watch.remember(orgOf(ctx), { ...parameters, startingAfter }, page.position)
    }
    await answerChanges(ctx, page, parameters.startingAfter, usualPace(signal))
  })
  for (const kind of ['reps', 'periods'] as const) {
    router.get(`/${kind}/:id`, async ctx => {
      const found = await records.version(scopeOf(ctx.state), kind, askedOf(ctx, kind))
      answerRecord(ctx, kind, await openedRecord(ctx, kind, found))
    })
  }
  router.get('/payroll_files/:id', async ctx => {
    const asked = askedOf(ctx, 'payroll_files')
    const found = await records.record(scopeOf(ctx.state), 'payroll_files', asked)
    answerRecord(ctx, 'payroll_files', await openedRecord(ctx, 'payroll_files', found))
  })
  router.get('/payouts/:id', async ctx => {
    answerPayout(ctx, await records.record(scopeOf(ctx.state), 'payouts', askedOf(ctx, 'payouts')))
  })
  router.get(COPIED, '/payouts/:id/history', async ctx => {
    const parameters = rememberAsked(ctx, readHistoryParameters(ctx.state.query))
    const id = readId('payout', ctx.params.id)
    noteRecordsForAudit(ctx, () => [id])
    const page = await history(scopeOf(ctx.state), { id, ...parameters })
    await answerHistory(ctx, page, parameters.startingAfter, usualPace(ctx.state.signal))
  })
  router.get('/statements/:id', async ctx => {
    answerStatement(ctx, await records.statement(scopeOf(ctx.state), askedOf(ctx, 'payouts')))
  })
  router.get('/totals', async ctx => {
    const read = await totals(scopeOf(ctx.state), rememberAsked(ctx, readTotalsParameters(ctx.state.query)))
    await answerTotals(ctx, read, usualPace(ctx.state.signal))
  })
  return router
}

/** The route whose requests can wait. */
export const CHANGES_ROUTE = `${BASE_PATH}/changes`

/** Name of the routes whose answer is made in a buffer of its own, beside the documents that it is made of. */
const COPIED = 'copied'

/**
 * Finds the route of a request, for all following steps and the log. Refuses nothing. The router gets the raw path,
 * because it would parse the path in its own way.
 */
export const findRoute = (router: Router<RequestState>): RequestStep => {
  return async (ctx, next) => {
    const { path, pathAndMethod } = router.match(ctx.state.path, ctx.method)
    const [layer] = path
    if (layer) {
      ctx.state.route = String(layer.path)
      ctx.state.isCopied = layer.name === COPIED
    }
    ctx.state.methodOffered = pathAndMethod.length > 0
    Object.assign(ctx, { newRouterPath: ctx.state.path })
    await next()
  }
}

/** Refuses a request without a route. The router's own 404, 405 and 501 are never reached. */
export const requireRoute: RequestStep = async (ctx, next) => {
  if (ctx.state.route === undefined) throw new Refusal('not_found')
  if (!ctx.state.methodOffered) throw new Refusal('method_not_allowed')
  await next()
}

type RouteContext = RequestContext & { params: Record<string, string> }

const orgOf = (ctx: RequestContext): string => holderOf(ctx.state).org

type AskedAt = { readonly asOf: Moment | undefined; readonly period?: string | undefined }

/** Remembers whether the answer is as of a change, and what was asked for. Returns the same parameters. */
const rememberAsked = <Asked extends AskedAt>(ctx: RequestContext, asked: Asked): Asked => {
  const { read } = ctx.state
  ctx.state.isFixed = asked.asOf?.kind === 'change'
  if (read) Object.assign(read, { asOf: asked.asOf, period: asked.period })
  return asked
}

const askedOf = (ctx: RouteContext, kind: ListKind): RecordAsked => {
  const { asOf } = rememberAsked(ctx, { asOf: readAsOf(ctx.state.query) })
  const id = readId(idPrefixOf[kind], ctx.params.id)
  noteRecordsForAudit(ctx, () => [id])
  return { id, asOf }
}
