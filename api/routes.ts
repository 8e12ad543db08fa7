/** The paths of the API and what answers each. Refuses unknown paths, and methods that are not offered. */
import Router from '@koa/router'
import {
  ANSWERS_REMEMBERED,
  CHECKPOINT_TIME_MAX,
  type ChangeWatch,
  changeNameOf,
  createAgreed,
  type FoundRecord,
  isCertain,
  type Moment,
  type OpenRecords,
  type Page,
  type Proofs,
  type Readers,
  type RecordAsked,
  readHistoryParameters,
  readId,
  readListParameters,
  readRecordParameters,
  readTotalsParameters,
  refuseParameters,
  usualPace,
} from '../core/reading/index.ts'
import { lruOptions, Refusal } from '../core/runtime/index.ts'
import { listTraits } from '../schemas/lists.ts'
import { type ListKind, listKinds } from '../schemas/stored/documents.ts'
import { answerChanges, answerHistory, answerTotals } from './answer/answer-changes.ts'
import {
  answerByIds,
  answerCheckpoint,
  answerList,
  answerPayout,
  answerRecord,
  answerStatement,
  tagOf,
} from './answer/answer-page.ts'
import { OPENAPI_PATH } from './answer/serve-openapi.ts'
import {
  type Answerable,
  type Arrived,
  BASE_PATH,
  type Context,
  noteRecordsForAudit,
  type Offered,
  type Routed,
  type Step,
} from './http/request.ts'

/** Creates the router with all paths of the API. */
export const createRoutes = (
  { list, byIds, records, history, totals, checkpoint }: Readers,
  openRecords: OpenRecords,
  watch: Pick<ChangeWatch, 'confirm' | 'remember'>,
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number,
  proofs?: Proofs,
): Router<Answerable> => {
  // Without these two options the router ignores case and accepts a trailing slash.
  const router = new Router<Answerable>({ prefix: BASE_PATH, sensitive: true, strict: true })
  const tags = createAgreed<string>(lruOptions(ANSWERS_REMEMBERED), elapsed, proofs)
  /**
   * Lets a client keep a record or totals as of a change, once they were read twice with the same tag. Pages are read
   * together: a kept one may be of other rules.
   */
  const allowFixed = (ctx: Context<Answerable>, asOf: Moment | undefined): void => {
    if (asOf?.kind !== 'change') return
    const { form, path, query } = ctx.state
    const remember = tags.begin()
    form.isFixed = (etag, generation) => isCertain(remember(tagOf(`${orgOf(ctx)} ${path} ${query}`), etag, generation))
  }
  const recordAsked = (ctx: RouteContext, kind: ListKind): RecordAsked => {
    const { asOf } = readRecordParameters(ctx.state.query)
    noteAskedForAudit(ctx, { asOf })
    allowFixed(ctx, asOf)
    const id = readId(listTraits[kind].idPrefix, ctx.params.id)
    noteRecordsForAudit(ctx, () => [id])
    return { id, asOf }
  }
  /**
   * Opens sealed texts, and remembers their state for the entity tag. Only reps and payroll records can have any: a
   * page of payouts passes as it is, with the tag of its content.
   */
  const opened = async <Of extends Page>(ctx: Context<Answerable>, page: Of): Promise<Of> => {
    const { hits, state } = await openRecords.hits(orgOf(ctx), page.hits, ctx.state.signal)
    ctx.state.form.sealState = state
    return { ...page, hits }
  }
  const openedRecord = async (ctx: Context<Answerable>, kind: ListKind, found: FoundRecord): Promise<FoundRecord> => {
    const { slice, state } = await openRecords.record(orgOf(ctx), kind, found.slice, ctx.state.signal)
    ctx.state.form.sealState = state
    return { ...found, slice }
  }
  for (const kind of listKinds) {
    router.get(`/${kind}`, async ctx => {
      const parameters = readListParameters(kind, ctx.state.query)
      noteAskedForAudit(ctx, parameters)
      const { ids, asOf, startingAfter } = parameters
      if (ids) {
        const found = await byIds(ctx.state.scope, { kind, ids, asOf })
        return answerByIds(ctx, kind, await opened(ctx, found))
      }
      const page = await list(ctx.state.scope, { list: kind, ...parameters })
      answerList(ctx, kind, await opened(ctx, page), startingAfter)
    })
  }
  router.get(COPIED, '/changes', async ctx => {
    const { nothingBefore, scope, signal, query } = ctx.state
    const parameters = readListParameters('changes', query)
    noteAskedForAudit(ctx, parameters)
    const position = nothingBefore && (await watch.confirm(scope, parameters, nothingBefore))
    const page = position
      ? { position, hits: [], hasMore: false }
      : await opened(ctx, await list(scope, { list: 'changes', ...parameters }))
    const last = page.hits.at(-1)
    // A remembered position is no read: the memory of it would never end.
    if (parameters.wait && !page.hasMore && position === undefined) {
      const startingAfter = last ? changeNameOf(last) : parameters.startingAfter
      watch.remember(orgOf(ctx), { ...parameters, startingAfter }, page.position)
    }
    await answerChanges(ctx, page, parameters.startingAfter, usualPace(signal))
  })
  for (const kind of ['reps', 'periods'] as const) {
    router.get(`/${kind}/:id`, async ctx => {
      const found = await records.version(ctx.state.scope, kind, recordAsked(ctx, kind))
      answerRecord(ctx, kind, await openedRecord(ctx, kind, found))
    })
  }
  router.get('/payroll_files/:id', async ctx => {
    const found = await records.record(ctx.state.scope, 'payroll_files', recordAsked(ctx, 'payroll_files'))
    answerRecord(ctx, 'payroll_files', await openedRecord(ctx, 'payroll_files', found))
  })
  router.get('/payouts/:id', async ctx => {
    answerPayout(ctx, await records.record(ctx.state.scope, 'payouts', recordAsked(ctx, 'payouts')))
  })
  router.get(COPIED, '/payouts/:id/history', async ctx => {
    const parameters = readHistoryParameters(ctx.state.query)
    noteAskedForAudit(ctx, parameters)
    const id = readId('payout', ctx.params.id)
    noteRecordsForAudit(ctx, () => [id])
    const page = await history(ctx.state.scope, { id, ...parameters })
    await answerHistory(ctx, page, parameters.startingAfter, usualPace(ctx.state.signal))
  })
  router.get('/statements/:id', async ctx => {
    answerStatement(ctx, await records.statement(ctx.state.scope, recordAsked(ctx, 'payouts')))
  })
  router.get('/totals', async ctx => {
    const { scope, spent, query } = ctx.state
    const parameters = readTotalsParameters(query)
    noteAskedForAudit(ctx, parameters)
    allowFixed(ctx, parameters.asOf)
    const read = await totals(scope, parameters, added => {
      spent.added = added
    })
    await answerTotals(ctx, read, usualPace(ctx.state.signal))
  })
  router.get('/checkpoint', async ctx => {
    const { query, scope, spent, renewTime } = ctx.state
    refuseParameters(query)
    // The first one after a start reads all changes.
    renewTime(CHECKPOINT_TIME_MAX)
    const onRead = (bytes: number): void => {
      spent.added = { bytes: spent.added.bytes + bytes, isFirst: true, isKept: true }
    }
    answerCheckpoint(ctx, await checkpoint(scope, onRead))
  })
  return router
}

/** The route whose requests can wait for a change. */
export const CHANGES_ROUTE = `${BASE_PATH}/changes`
/** The route whose requests can wait for a sum. */
export const TOTALS_ROUTE = `${BASE_PATH}/totals`

/**
 * Name of the routes whose answer is made in a buffer of its own, beside the documents that it is made of. The router
 * takes the name of a route before its path.
 */
const COPIED = 'copied'

/**
 * Finds the route of a request, for all following steps and the log. Refuses nothing. The router gets the raw path,
 * because it would parse the path in its own way.
 */
export const findRoute = (router: Router<Answerable>): Step<Arrived, Routed> => {
  return async (ctx, next) => {
    const { path, pathAndMethod } = router.match(ctx.state.path, ctx.method)
    const [layer] = path
    Object.assign(ctx, { newRouterPath: ctx.state.path })
    const otherRoute = ctx.state.path === OPENAPI_PATH ? OPENAPI_PATH : undefined
    await next({
      route: layer ? String(layer.path) : otherRoute,
      isCopied: layer?.name === COPIED,
      methodOffered: pathAndMethod.length > 0,
    })
  }
}

/** Refuses a request without a route. The router's own 404, 405 and 501 are never reached. */
export const requireRoute: Step<Routed, Offered> = async ({ state: { route, methodOffered } }, next) => {
  if (route === undefined) throw new Refusal('not_found')
  if (!methodOffered) throw new Refusal('method_not_allowed')
  await next({ route })
}

/** The last step: runs what answers the route. */
export const answerRoute = (router: Router<Answerable>) => {
  const answer = router.routes()
  return async (ctx: Context<Answerable>): Promise<void> => {
    // The router adds what it needs.
    await answer(ctx as Parameters<typeof answer>[0], async () => undefined)
  }
}

type RouteContext = Context<Answerable> & { params: Record<string, string> }

const orgOf = (ctx: Context<Answerable>): string => ctx.state.scope.org

type Asked = {
  readonly asOf: Moment | undefined
  readonly rep?: string | undefined
  readonly period?: string | undefined
  readonly deal?: string | undefined
}

/** Notes what was asked for. While reads are not audited, there is nowhere to note it. */
const noteAskedForAudit = ({ state: { audited } }: Context<Answerable>, { asOf, rep, period, deal }: Asked): void => {
  if (audited) Object.assign(audited, { asOf, rep, period, deal })
}
