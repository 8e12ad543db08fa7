/** Reads the API as a client does: a key, lists page by page to their end, single records by id. */
import type { ApiRecord } from '../data/expected.ts'

export type Answer = { readonly status: number; readonly body: Body }
/** What the bodies of the contract have, of which each has some. */
type Body = {
  readonly data?: unknown
  readonly has_more?: boolean
  readonly next_cursor?: string
  readonly error?: { readonly code: string }
}

export type ApiReader = {
  /** Whatever the answer is. */
  readonly ask: (path: string) => Promise<Answer>
  /** Every record of a list. Throws when a page is anything but a page. */
  readonly walk: (list: string, read?: (count: number) => void) => Promise<ApiRecord[]>
}

/** @param base up to and including `/api/v1` */
export const createApiReader = (base: string, key: string, signal: AbortSignal): ApiReader => {
  const ask = async (path: string): Promise<Answer> => {
    const answer = await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${key}` }, signal })
    return { status: answer.status, body: (await answer.json()) as Body }
  }
  const walk: ApiReader['walk'] = async (list, read = () => {}) => {
    const records: ApiRecord[] = []
    for (let cursor = ''; ; ) {
      const path = `/${list}?limit=200${cursor === '' ? '' : `&starting_after=${cursor}`}`
      const { status, body } = await ask(path)
      if (status !== 200) throw new Error(`GET ${path}: ${status} ${body.error?.code}`)
      const { data, has_more, next_cursor = '' } = body
      if (!Array.isArray(data)) throw new Error(`GET ${path}: no data`)
      records.push(...data)
      read(data.length)
      if (has_more !== true) return records
      // Otherwise the walk would begin anew, for ever.
      if (next_cursor === '' || next_cursor === cursor) throw new Error(`GET ${path}: more to come, but no way on`)
      cursor = next_cursor
    }
  }
  return { ask, walk }
}

/** Does something with every item, so many at a time. Results are in the order of the items. */
export const inParallel = async <Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> => {
  const results: Result[] = []
  const queue = items.entries()
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}
