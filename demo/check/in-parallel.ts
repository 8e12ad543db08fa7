/** Reads the API as a client does: with a key, lists page by page, single records by id. */
import type { ApiRecord } from '../data/expected.ts'

type ApiAnswer<Data> = { readonly status: number; readonly body: Body<Data> }
/** Fields of all bodies in the contract; each body has some. */
type Body<Data> = {
  readonly data?: Data
  readonly has_more?: boolean
  readonly next_cursor?: string
  readonly error?: { readonly code: string }
}

export type ApiReader = {
  /** Resolves whatever the status. The caller names the type of `data`. */
  readonly get: <Data = unknown>(path: string) => Promise<ApiAnswer<Data>>
  /** Reads every record of a list. @throws Error for anything but a page */
  readonly walk: (list: string, onRead?: (count: number) => void) => Promise<ApiRecord[]>
}

/** @param base up to and including `/api/v1` */
export const createApiReader = (base: string, key: string, signal: AbortSignal): ApiReader => {
  const get: ApiReader['get'] = async path => {
    const answer = await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${key}` }, signal })
    return { status: answer.status, body: JSON.parse(await answer.text()) }
  }
  const walk: ApiReader['walk'] = async (list, onRead = () => {}) => {
    const records: ApiRecord[] = []
    for (let cursor = ''; ; ) {
      const path = `/${list}?limit=200${cursor === '' ? '' : `&starting_after=${cursor}`}`
      const { status, body } = await get<readonly ApiRecord[]>(path)
      if (status !== 200) throw new Error(`GET ${path}: ${status} ${body.error?.code}`)
      const { data, has_more, next_cursor = '' } = body
      if (!Array.isArray(data)) throw new Error(`GET ${path}: no data`)
      records.push(...data)
      onRead(data.length)
      if (has_more !== true) return records
      // Otherwise the walk would start again, for ever.
      if (next_cursor === '' || next_cursor === cursor) throw new Error(`GET ${path}: has_more, but no new next_cursor`)
      cursor = next_cursor
    }
  }
  return { get, walk }
}

/** Applies `work` to every item, `atOnce` at a time. Results are in the order of the items. */
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
