/** The routes remember something from one request to the next: an old copy of a shard may have answered the first. */
import { expect, test } from 'vitest'
import { createRoutes } from '../../api/routes.ts'
import { AGREED_AFTER } from '../../core/reading/limits.ts'
import { answering } from '../support/answering-request.ts'
import { generationOf } from '../support/layout.ts'
import { scopeOf } from '../support/read-scope.ts'

type Parts = Parameters<typeof createRoutes>

const position = { generation: generationOf(), publishedTo: 1, time: 0, takenBack: 0 }
const REVALIDATED = 'private, no-cache'

const routes = () => {
  let time = 0
  const content = { hash: 'a' }
  const remembered: string[] = []
  const record = async () => {
    const header = `{"hash":"${content.hash}"`
    const bytes = Buffer.from(`${header}{"id":"payroll_1"}`)
    const place = { start: 0, headerEnd: header.length, bodyStart: header.length }
    return { position, slice: { bytes, ...place, bodyEnd: bytes.length, end: bytes.length } }
  }
  const readers = {
    list: async () => ({ position, hits: [], hasMore: false, sequences: [] }),
    records: { record },
  } as unknown as Parts[0]
  const openRecords = {
    hits: async (_org: string, hits: unknown) => ({ hits, state: undefined }),
    record: async (_org: string, _kind: string, slice: unknown) => ({ slice, state: undefined }),
  } as unknown as Parts[1]
  const watch: Parts[2] = {
    confirm: async (_scope, _asked, last) => last,
    remember: org => void remembered.push(org),
  }
  const router = createRoutes(readers, openRecords, watch, () => time)
  /** Returns the `Cache-Control` of the answer. */
  const ask = async (path: string, query: string, more: object = {}): Promise<unknown> => {
    const headers = new Map<string, unknown>([['Cache-Control', REVALIDATED]])
    const state = { ...answering(), scope: scopeOf('org_a'), path, query, ...more }
    const ctx = {
      ...{ state, method: 'GET', path, newRouterPath: path, request: {}, status: 404 },
      get: () => '',
      set: (name: string, value: unknown) => void headers.set(name, value),
      response: { get: (name: string) => headers.get(name) },
    }
    await router.routes()(ctx as never, async () => undefined)
    expect(ctx.status).toBe(200)
    return headers.get('Cache-Control')
  }
  return { ask, content, remembered, pass: (by: number) => (time += by) }
}

test('an empty page that was read is remembered for the next wait, one that a wait remembered is not', async () => {
  const { ask, remembered } = routes()
  await ask('/api/v1/changes', 'wait=5', { nothingBefore: position })
  expect(remembered).toEqual([])
  await ask('/api/v1/changes', 'wait=5', { nothingBefore: undefined })
  expect(remembered).toEqual(['org_a'])
})

test('a client may keep an answer as of a change once the same was answered a second before', async () => {
  const { ask, content, pass } = routes()
  const get = (id: string) => ask(`/api/v1/payroll_files/${id}`, 'as_of=payroll_1')
  expect(await get('payroll_1')).toBe(REVALIDATED)
  pass(AGREED_AFTER)
  expect(await get('payroll_2')).toBe(REVALIDATED)
  expect(await get('payroll_1')).toContain('immutable')
  content.hash = 'b'
  expect(await get('payroll_1')).toBe(REVALIDATED)
})
