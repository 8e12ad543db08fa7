/** The layouts of the generations of a run, and the documents of a generation whatever its layout is. */
import { indexOf, isListKind, type Kind, kinds } from '../../schemas/stored/documents.ts'
import { isBalance } from './balances.ts'
import type { SimulatedElasticsearch } from './elasticsearch.ts'
import type { Index, Stored } from './stored.ts'

/** The layout of a new generation, and the shards that an organization has in each of its indices. */
export type Layout = { readonly layout: 1 | 2 | 3; readonly routingPartitionSize: number }
/** `first` of the generation that a projector makes at its first start, `later` of those that a command makes. */
export type Layouts = { readonly first: Layout; readonly later: Layout }

const byKind: Layout = { layout: 1, routingPartitionSize: 1 }
const withoutDeals: Layout = { layout: 2, routingPartitionSize: 1 }
const routed: Layout = { layout: 3, routingPartitionSize: 1 }
const divided: Layout = { layout: 3, routingPartitionSize: 2 }

/** An installation that was upgraded: its next generation has the layout of now. */
export const UPGRADED: Layouts = { first: byKind, later: routed }

const combinations: readonly Layouts[] = [
  { first: byKind, later: byKind },
  UPGRADED,
  { first: routed, later: byKind },
  { first: routed, later: routed },
  { first: withoutDeals, later: routed },
  { first: divided, later: divided },
]

/** Whether lists can be filtered by deal during the whole run. */
export const haveDeals = ({ first, later }: Layouts): boolean => first.layout === 3 && later.layout === 3

export const layoutsOf = (seed: number): Layouts => combinations[seed % combinations.length] ?? UPGRADED

/** The same without organizations in several shards. There a snapshot can have a deletion without its kept form. */
export const undividedLayoutsOf = (seed: number): Layouts => layoutsOf(seed % (combinations.length - 1))

/** The kind of a document, and its JSON without the fields that only some layouts store. */
export const formOf = ({ name }: Pick<Index, 'name'>, { fields, source }: Stored) => {
  const stored = String(fields.kind ?? '')
  if (!isListKind(stored)) return { kind: name.slice(name.lastIndexOf('-') + 1), source }
  return { kind: stored, source: source.replace(`"kind":"${stored}",`, '') }
}

/** All documents of a generation but its balances, with their kinds. */
export const documentsOf = ({ indices }: Pick<SimulatedElasticsearch, 'indices'>, prefix: string, generation: string) =>
  kinds
    .flatMap(kind => indices.get(indexOf(prefix, generation, kind)) ?? [])
    .flatMap(index =>
      [...index.documents.values()]
        .filter(stored => !isBalance(stored))
        .map(stored => {
          const { kind, source } = formOf(index, stored)
          return { kind: kind as Kind, stored, source }
        }),
    )
