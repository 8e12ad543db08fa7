/**
 * The names of generations in the live document. One of layout 2 or 3 has more after its name there: version 1.1.0
 * knows no layouts, and would answer from indices that do not exist without an error, or destroy keys without a search.
 * It finds no generation of this name, and refuses.
 */
import type { GenerationDocument, LiveDocument } from './documents.ts'

const NEEDS = ' (needs 1.2.0)'

/** Returns the name of a generation as the live document has it. */
export const storedNameOf = ({
  generation,
  layout,
}: Pick<GenerationDocument['body'], 'generation' | 'layout'>): string =>
  layout === undefined ? generation : `${generation}${NEEDS}`

/** Returns the live document with plain names. Older programs of layout 2 and 3 stored no others. */
export const withPlainNames = <Body extends Pick<LiveDocument['body'], 'generation' | 'kept'>>(body: Body): Body => ({
  ...body,
  generation: plainName(body.generation),
  ...(body.kept && { kept: body.kept.map(plainName) }),
})

const plainName = (stored: string): string => (stored.endsWith(NEEDS) ? stored.slice(0, -NEEDS.length) : stored)
