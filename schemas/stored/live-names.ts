/**
 * The names of generations in the live document. One of layout 2 or 3 has more after its name there once it became
 * live: version 1.1.0 knows no layouts, and would answer from indices that do not exist without an error, or destroy
 * keys without a search. It finds no generation of this name, and refuses.
 */
import type { GenerationDocument, LiveDocument } from './documents.ts'

const NEEDS = ' (needs 1.2.0)'

/** Returns the name of a generation as the live document has it once it became live. */
export const storedNameOf = ({
  generation,
  layout,
}: Pick<GenerationDocument['body'], 'generation' | 'layout'>): string =>
  layout === undefined ? generation : `${generation}${NEEDS}`

/**
 * Returns the live document with plain names. Only `generation` and `kept` are stored with more, but an older program
 * copies what it finds there to other fields.
 */
export const withPlainNames = (body: LiveDocument['body']): LiveDocument['body'] => {
  const { generation, kept, building, previous, verified, compared, alone } = body
  return {
    ...body,
    generation: plainName(generation),
    ...(kept && { kept: kept.map(plainName) }),
    ...(building && { building: plainName(building) }),
    ...(previous && { previous: plainName(previous) }),
    ...(verified && { verified: withPlainKeys(verified, plainName) }),
    ...(compared && { compared: withPlainKeys(compared, found => found) }),
    ...(alone && { alone: withPlainKeys(alone, positions => positions) }),
  }
}

/** Returns a name, or the names of a pair, as the documents of generations have them. */
export const plainName = (stored: string): string => stored.replaceAll(NEEDS, '')

const withPlainKeys = <Value>(named: Record<string, Value>, plain: (value: Value) => Value): Record<string, Value> =>
  Object.fromEntries(Object.entries(named).map(([name, value]) => [plainName(name), plain(value)]))
