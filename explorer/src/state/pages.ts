/** A list that a view shows page by page: the first page at once, the others when they are asked for. */
import { useRef } from 'preact/hooks'
import type { Client } from '../../../client/src/index.ts'
import type { Paged } from './latest-changes.ts'
import { useReading, type ViewReading } from './reading.ts'

export const PAGE_RECORDS = 50

export type Pages<Item> = { readonly items: readonly Item[]; readonly hasMore: boolean }
/** `beside`: what was read for the items, and is shown with them. */
export type PagesBeside<Item, Beside> = Pages<Item> & { readonly beside: Beside }

/** @param what names everything that `list` and `beside` depend on, beside the client */
export const usePages = <Item, Beside>(
  what: string,
  list: (client: Client) => Paged<Item>,
  beside: (client: Client, items: readonly Item[], hasMore: boolean) => Promise<Beside>,
): ViewReading<PagesBeside<Item, Beside>> & { readonly more: () => void } => {
  const wanted = useRef({ what, pages: 1 })
  if (wanted.current.what !== what) wanted.current = { what, pages: 1 }
  // Pages that were read and have not changed are not sent again: the client has their entity tags.
  const reading = useReading(what, async client => {
    const pages = await readPages(list(client), wanted.current.pages)
    return { ...pages, beside: await beside(client, pages.items, pages.hasMore) }
  })
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
