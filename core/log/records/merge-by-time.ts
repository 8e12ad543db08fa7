/**
 * In: records of several partitions, each in its order. Out: all of them, nearly in the order of their times.
 * Promises: the records of a partition keep their order, whatever times they have: its offsets are the law of order.
 *   Memory: one page of each partition.
 */

/** Yields each item with the place of its source: the one whose next item has the earliest time comes next. */
export async function* mergedByTime<Item extends object>(
  sources: readonly AsyncIterable<readonly Item[]>[],
  timeOf: (item: Item) => number,
): AsyncGenerator<readonly [source: number, item: Item]> {
  const none: readonly Item[] = []
  const parts = sources.map(source => ({ pages: source[Symbol.asyncIterator](), page: none, index: 0, isOver: false }))
  for (;;) {
    let [earliest, time] = [-1, Number.POSITIVE_INFINITY]
    for (const [source, part] of parts.entries()) {
      while (part.index === part.page.length && !part.isOver) {
        const next = await part.pages.next()
        part.isOver = next.done === true
        part.page = next.done === true ? none : next.value
        part.index = 0
      }
      const item = part.page[part.index]
      if (item !== undefined && (earliest === -1 || timeOf(item) < time)) [earliest, time] = [source, timeOf(item)]
    }
    const part = parts[earliest]
    const item = part?.page[part.index]
    if (part === undefined || item === undefined) return
    part.index++
    yield [earliest, item]
  }
}
