/** A list that a view shows page by page: the first page at once, the others when they are asked for. */
import { useRef } from 'preact/hooks'
import type { Client } from '../../../client/src/index.ts'
import type { Paged } from './latest-changes.ts'
import { useReading, type ViewReading } from './reading.ts'

export const PAGE_RECORDS = 50

export type Pages<Item> = { readonly items: readonly Item[]; readonly hasMore: boolean }

/** @param what names everything that `list` depends on, beside the client */
export const usePages = <Item>(
  what: string,
  list: (client: Client) => Paged<Item>,
): ViewReading<Pages<Item>> & { readonly more: () => void } => {
  const wanted = useRef({ what, pages: 1 })
  if (wanted.current.what !== what) wanted.current = { what, pages: 1 }
  // Pages that were read and have not changed are not sent again: the client has their entity tags.
  const reading = useReading(what, client => readPages(list(client), wanted.current.pages))
  const more = (): void => {
    wanted.current.pages++
    reading.again()
  }
  return { ...reading, more }
}

const readPages = async <Item>(list: Paged<Item>, count: number): Promise<Pages<Item>> => {
  const items: Item[] = []
  let pages = 0
  for await (const { data, hasMore } of list.pages()) {
    items.push(...data)
    if (++pages >= count) return { items, hasMore }
  }
  return { items, hasMore: false }
}
