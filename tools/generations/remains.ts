/**
 * Everything that exists of each generation. An interrupted command can leave a name without documents, documents
 * without indices, or indices without a name. All of it is found, so that it can be listed and dropped.
 */

import type { Coverage, SearchAnswer } from '../../core/store/index.ts'
import { controlIndexOf, generationId, indexOf, kinds } from '../../schemas/stored/documents.ts'
import type { GenerationLayout } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import { assertRefreshed, wholeAnswer } from '../documents/shards.ts'
import { CommandError } from '../failures.ts'
import { REMAINS_MAX } from '../limits.ts'

type Remains = {
  /** Whether it has its own document, which names its source, and is written last and deleted last. */
  readonly hasDocument: boolean
  /** Partitions that have a position, in order. */
  readonly positions: readonly number[]
  readonly indices: readonly string[]
}

/** By name; empty if nothing was projected. @throws CommandError if there is more than one search returns */
export const findRemains = async (context: CommandContext): Promise<ReadonlyMap<string, Remains>> => {
  const documents = await readDocumentNames(context)
  const indices = await readIndexNames(context)
  const names = [...new Set([...documents.map(({ name }) => name), ...indices.map(({ name }) => name)])].sort()
  return new Map(
    names.map(name => {
      const ours = documents.filter(document => document.name === name)
      const remains = {
        hasDocument: ours.some(({ partition }) => partition === undefined),
        positions: ours.flatMap(({ partition }) => partition ?? []).sort((a, b) => a - b),
        indices: indices.flatMap(index => (index.name === name ? [index.index] : [])).sort(),
      }
      return [name, remains]
    }),
  )
}

/** @param layout that the document of the generation says */
export const isWhole = (
  { hasDocument, positions, indices }: Remains,
  partitions: number,
  layout: Pick<GenerationLayout, 'indices'>,
): boolean => hasDocument && positions.length === partitions && layout.indices.every(index => indices.includes(index))

/** Matches generations, but not the stream of API keys. */
const NAME = '[a-z][a-z0-9]*'

type DocumentName = { readonly name: string; readonly partition: number | undefined }

const readDocumentNames = async ({ send, prefix }: CommandContext): Promise<DocumentName[]> => {
  const index = controlIndexOf(prefix)
  const refreshed = await send<Coverage>({ method: 'POST', path: `/${index}/_refresh` })
  if (refreshed.status === 404) return []
  assertRefreshed(index, refreshed)
  const answer = await send<SearchAnswer<{ readonly _id: string }>>({
    method: 'POST',
    path: `/${index}/_search`,
    query: { allow_partial_search_results: false },
    body: { size: REMAINS_MAX, _source: false, query: { terms: { kind: ['generation', 'position'] } } },
  })
  const { hits } = wholeAnswer(index, answer).hits
  if (hits.length >= REMAINS_MAX) {
    throw new CommandError(`${index} has ${REMAINS_MAX} positions of generations or more: this command reads fewer`)
  }
  const id = new RegExp(`^(?:${generationId(`(${NAME})`)}|position:(${NAME}):(\\d+))$`)
  return hits.flatMap(({ _id }): DocumentName[] => {
    const [, generation, positioned, partition] = id.exec(_id) ?? []
    if (generation !== undefined) return [{ name: generation, partition: undefined }]
    return positioned === undefined ? [] : [{ name: positioned, partition: Number(partition) }]
  })
}

type IndexName = { readonly name: string; readonly index: string }
type Resolved = { readonly indices: readonly { readonly name: string }[] }

const readIndexNames = async ({ send, prefix }: CommandContext): Promise<IndexName[]> => {
  // Somebody, or an index template, may have hidden them.
  const query = { expand_wildcards: 'all' }
  const { status, body } = await send<Resolved>({ method: 'GET', path: `/_resolve/index/${prefix}-*`, query })
  if (status === 404) return []
  if (status !== 200) throw new CommandError(`the indices of ${prefix} cannot be listed: ${status}`)
  return body.indices.flatMap(({ name: index }) => {
    const [name = '', kind, ...more] = index.slice(prefix.length + 1).split('-')
    const ours = new RegExp(`^${NAME}$`).test(name) ? kinds.find(known => known === kind) : undefined
    const isOurs = more.length === 0 && ours !== undefined && index === indexOf(prefix, name, ours)
    return isOurs ? [{ name, index }] : []
  })
}
