/** The paths of the API and what answers each. A path that is none, and a method that is not offered, are refused here. */
import Router from '@koa/router'
import { type ListKind, listKinds } from '../schemas/documents.ts'
import { answerList, answerPayout, answerRecord, answerStatement } from './answer-page.ts'
import { Refusal } from './failures.ts'
import type { ReadList } from './read-list.ts'
import { idPrefixOf, readId, readListParameters, refuseParameters } from './read-parameters.ts'
import type { ReadRecords } from './read-record.ts'
import { BASE_PATH, type Context, type State, type Step } from './request.ts'

export const createRoutes = (readList: ReadList, read: ReadRecords): Router<State> => {
  // Without these two options the router takes any case and a slash at the end.
  const router = new Router<State>({ prefix: BASE_PATH, sensitive: true, strict: true })
  for (const kind of listKinds) {
    router.get(`/${kind}`, async ctx => {
      const parameters = readListParameters(kind, ctx.state.query)
      const page = await readList(orgOf(ctx), kind, parameters, ctx.state.signal)
      answerList(ctx, kind, page, parameters.startingAfter)
    })
  }
  for (const kind of ['reps', 'periods'] as const) {
    router.get(`/${kind}/:id`, async ctx => {
      answerRecord(ctx, kind, await read.version(orgOf(ctx), kind, idOf(ctx, kind), ctx.state.signal))
    })
  }
  router.get('/payroll_files/:id', async ctx => {
    const id = idOf(ctx, 'payroll_files')
    answerRecord(ctx, 'payroll_files', await read.record(orgOf(ctx), 'payroll_files', id, ctx.state.signal))
  })
  router.get('/payouts/:id', async ctx => {
    answerPayout(ctx, await read.record(orgOf(ctx), 'payouts', idOf(ctx, 'payouts'), ctx.state.signal))
  })
  router.get('/statements/:id', async ctx => {
    answerStatement(ctx, await read.statement(orgOf(ctx), idOf(ctx, 'payouts'), ctx.state.signal))
  })
  return router
}

/**
 * Finds which route a request is for. Its pattern is known to every step behind, and to the log; nothing is refused here.
 * The router is handed the path as it came: it would read it in a way of its own.
 */
export const findRoute = (router: Router<State>): Step => {
  return async (ctx, next) => {
    const { path, pathAndMethod } = router.match(ctx.state.path, ctx.method)
    const [layer] = path
    if (layer) ctx.state.route = String(layer.path)
    ctx.state.methodOffered = pathAndMethod.length > 0
    Object.assign(ctx, { newRouterPath: ctx.state.path })
    await next()
  }
}

/** Refuses what no route was found for. The router's own 404, 405 and 501 are never reached. */
export const requireRoute: Step = async (ctx, next) => {
  if (ctx.state.route === undefined) throw new Refusal('not_found')
  if (!ctx.state.methodOffered) throw new Refusal('method_not_allowed')
  await next()
}

type RouteContext = Context & { params: Record<string, string> }

const orgOf = (ctx: Context): string => {
  if (!ctx.state.key) throw new Error('a route needs an authenticated request')
  return ctx.state.key.org
}

const idOf = (ctx: RouteContext, kind: ListKind): string => {
  refuseParameters(ctx.state.query)
  return readId(idPrefixOf[kind], ctx.params.id)
}
