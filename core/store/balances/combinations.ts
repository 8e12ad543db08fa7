/**
 * Counts how often each combination of some fields occurs. In: the fields, a query, and a function that asks. Out: one
 * answer after the other, each with at most `size` combinations. Nothing holds an answer after the next one is asked.
 */

/** A combination, and how many documents have it. */
export type CountedCombination<Field extends string> = {
  readonly key: Readonly<Record<Field, string>>
  readonly doc_count: number
}
export type Combinations<Field extends string> = {
  readonly all: { readonly buckets: readonly CountedCombination<Field>[]; readonly after_key?: object }
}

/** @param ask sends the body of a search, and returns its aggregations */
export async function* countCombinations<Field extends string>(
  fields: readonly Field[],
  size: number,
  query: object,
  ask: (body: object) => Promise<Combinations<Field>>,
): AsyncGenerator<readonly CountedCombination<Field>[], undefined> {
  const sources = fields.map(field => ({ [field]: { terms: { field } } }))
  for (let after: object | undefined; ; ) {
    const composite = { size, sources, ...(after && { after }) }
    const { buckets, after_key } = (await ask({ size: 0, query, aggs: { all: { composite } } })).all
    yield buckets
    if (buckets.length < size) return
    after = after_key
  }
}
