/** An ordinary client of the API: reads records by id and walks lists, over one address or several in turn. */
import { expect } from 'vitest'
import { requireDescribed } from './described.ts'
import { inTime } from './in-time.ts'
import type { Item } from './model.ts'
import type { Api } from './processes.ts'

export type List = 'reps' | 'periods' | 'payouts' | 'payroll_files'
export const lists: readonly List[] = ['reps', 'periods', 'payouts', 'payroll_files']

export type Page = { readonly data: readonly Item[]; readonly has_more: boolean; readonly next_cursor: string }
export type Answer = { readonly status: number; readonly headers: Headers; readonly text: string }

export type Client = {
  /** Requests a path from the next address in turn. */
  readonly ask: (path: string, headers?: Record<string, string>) => Promise<Answer>
  /** As `ask`, and again while the time of each request is up. All of the following do so, too. */
  readonly askInTime: (path: string, headers?: Record<string, string>) => Promise<Answer>
  readonly page: (list: List, query?: { limit?: number; starting_after?: string }) => Promise<Page>
  /** Returns one record, which must exist. */
  readonly read: (path: string) => Promise<Item>
  /** Yields the pages of a list to its end, from a cursor or from the beginning. */
  readonly walk: (list: List, limit: number, startingAfter?: string) => AsyncGenerator<Page>
  readonly all: (list: List, limit?: number) => Promise<readonly Item[]>
}

/** @param retryOptions milliseconds during which reads are retried after a 503 for any other reason; 0 for no retry */
export const createClient = (apis: readonly Pick<Api, 'url' | 'lines'>[], key: string, retryOptions = 0): Client => {
  let turn = 0
  const ask: Client['ask'] = async (path, headers = {}) => {
    const url = apis[turn++ % apis.length]?.url
    const given = { authorization: `Bearer ${key}`, ...headers }
    const answer = await fetch(`${url}${path}`, { headers: given })
    const got = { status: answer.status, headers: answer.headers, text: await answer.text() }
    await requireDescribed({ method: 'GET', path: `/api/v1${path}`, headers: given }, got)
    return got
  }
  const askInTime: Client['askInTime'] = (path, headers) =>
    inTime(
      () => ask(path, headers),
      () => apis.flatMap(api => api.lines()),
    )
  const askPatiently = async (path: string): Promise<Answer> => {
    const began = performance.now()
    for (;;) {
      const answer = await askInTime(path)
      if (answer.status !== 503 || performance.now() - began >= retryOptions) return answer
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
  const json = async (path: string): Promise<unknown> => {
    const { status, text } = await askPatiently(path)
    expect({ path, status, text: status === 200 ? '' : text }).toEqual({ path, status: 200, text: '' })
    return JSON.parse(text)
  }
  const page: Client['page'] = async (list, query = {}) => {
    const parameters = new URLSearchParams(query as Record<string, string>)
    return (await json(`/${list}?${parameters}`)) as Page
  }
  async function* walk(list: List, limit: number, startingAfter?: string): AsyncGenerator<Page> {
    let cursor = startingAfter
    for (;;) {
      const got = await page(list, { limit, ...(cursor !== undefined && { starting_after: cursor }) })
      yield got
      if (!got.has_more) return
      cursor = got.next_cursor
    }
  }
  return {
    ask,
    askInTime,
    page,
    walk,
    read: async path => ((await json(path)) as { data: Item }).data,
    all: async (list, limit = 200) => {
      const records: Item[] = []
      for await (const { data } of walk(list, limit)) records.push(...data)
      return records
    },
  }
}
