/** A list of the API, read page by page. Iterate over the list for its records, or over `pages()`. */
export type Page<Item> = {
  readonly data: readonly Item[]
  /**
   * Send it as `startingAfter` later to read on from here. It is valid for ever. It is empty only if the list is empty
   * from its beginning on: leave `startingAfter` out then.
   */
  readonly nextCursor: string
  /** Whether more records follow this page now. */
  readonly hasMore: boolean
  /** Everything published up to this instant is included. */
  readonly projectionTime: string
}

export type List<Item> = AsyncIterable<Item> & { readonly pages: () => AsyncIterable<Page<Item>> }

/** Ids in one request. */
const IDS_MAX = 100

/** @param read reads the records with these ids, as far as the answer has room */
export const createListOfIds = <Item extends { readonly id: string }>(
  ids: readonly string[],
  read: (ids: readonly string[]) => Promise<Page<Item>>,
): List<Item> => {
  async function* pages(): AsyncGenerator<Page<Item>> {
    for (let left = [...new Set(ids)]; left.length > 0; ) {
      const asked = left.slice(0, IDS_MAX)
      const page = await read(asked)
      const last = page.data.at(-1)?.id ?? ''
      const answered = page.hasMore ? asked.indexOf(last) + 1 : asked.length
      left = left.slice(answered)
      yield { ...page, hasMore: left.length > 0 }
      // Otherwise the same ids would be asked for again, for ever.
      if (answered === 0) throw new Error('has_more without a record that was asked for')
    }
  }
  return listOver(pages)
}

/**
 * @param startingAfter a cursor, or a read of it when the list is read; without one the list begins at its first page
 * @param read reads the page after a cursor, the first page without one
 */
export const createList = <Item>(
  startingAfter: string | undefined | (() => Promise<string | null>),
  read: (startingAfter: string | undefined) => Promise<Page<Item>>,
): List<Item> => {
  async function* pages(): AsyncGenerator<Page<Item>> {
    const cursor = typeof startingAfter === 'function' ? await startingAfter() : startingAfter
    for (let after = cursor ?? undefined; ; ) {
      const page = await read(after)
      yield page
      if (!page.hasMore) return
      // Otherwise the walk would start again, for ever.
      if (page.nextCursor === '' || page.nextCursor === after) throw new Error('has_more without a new next_cursor')
      after = page.nextCursor
    }
  }
  return listOver(pages)
}

const listOver = <Item>(pages: List<Item>['pages']): List<Item> => ({
  pages,
  async *[Symbol.asyncIterator]() {
    for await (const page of pages()) yield* page.data
  },
})
