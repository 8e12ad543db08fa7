/** A list of the API, read page by page. Iterate over the list for its records, or over `pages()`. */
export type Page<Item> = {
  readonly data: readonly Item[]
  /**
   * Send it as `startingAfter` later to read on from here. It is valid for ever. It is empty only if the list is empty
   * from its beginning on: leave `startingAfter` out then.
   */
  readonly nextCursor: string
  /** Everything published up to this instant is included. */
  readonly projectionTime: string
}

export type List<Item> = AsyncIterable<Item> & { readonly pages: () => AsyncIterable<Page<Item>> }

/** A page as it was read, and whether more records follow it. */
export type PageRead<Item> = Page<Item> & { readonly hasMore: boolean }

/** @param read reads the page after a cursor, the first page without one */
export const createList = <Item>(
  startingAfter: string | undefined,
  read: (startingAfter: string | undefined) => Promise<PageRead<Item>>,
): List<Item> => {
  async function* pages(): AsyncGenerator<Page<Item>> {
    for (let after = startingAfter; ; ) {
      const { hasMore, ...page } = await read(after)
      yield page
      if (!hasMore) return
      // Otherwise the walk would start again, for ever.
      if (page.nextCursor === '' || page.nextCursor === after) throw new Error('has_more without a new next_cursor')
      after = page.nextCursor
    }
  }
  return {
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const page of pages()) yield* page.data
    },
  }
}
