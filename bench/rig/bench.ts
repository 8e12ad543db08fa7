/** Inputs and results of a figure. */
import type { Say } from '../../services/service.ts'
import type { Services } from '../../services/services.ts'
import type { BenchElasticsearch } from './elasticsearch.ts'
import type { Sizes } from './sizes.ts'

/** In the order of measurement. */
export const figureNames = [
  'replay',
  'partitions',
  'growth',
  'shards',
  'nodes',
  'totals',
  'freshness',
  'corrections',
  'archive',
  'api',
  'crowd',
] as const
export type FigureName = (typeof figureNames)[number]

export type Bench = {
  readonly services: Services
  readonly elasticsearch: BenchElasticsearch
  readonly sizes: Sizes
  readonly say: Say
  /** Aborted when the bench is interrupted. */
  readonly signal: AbortSignal
  /** Folder for the CPU profile of one more replay round. */
  readonly profile: string | undefined
}

/** Measures a figure, as one or several tables. Removes everything that it started or created, even after an error. */
export type Measure = (bench: Bench) => Promise<Figure | readonly Figure[]>

export type Figure = {
  readonly name: FigureName
  readonly title: string
  readonly rows: readonly FigureRow[]
  /** How to read the rows. */
  readonly notes: readonly string[]
  readonly pictures?: readonly Picture[]
}

/** A line of the table. A ratio compares two things of the same run, so other machines give a similar one. */
export type FigureRow = {
  readonly what: string
  /** Identifies a ratio in other results if `what` varies. Unique among the ratios of a figure. */
  readonly key?: string
  readonly unit: string
  /** The median of the rounds. */
  readonly value: number
  /** Of the rounds; undefined for a single round. */
  readonly lowest?: number
  readonly highest?: number
  readonly isRatio?: true
  /** The target. */
  readonly atLeast?: number
  readonly atMost?: number
}

/** `name` is unique, and names the file. */
export type Picture = {
  readonly name: string
  readonly title: string
  /** Of the values. */
  readonly unit: string
} & ({ readonly bars: readonly Bar[] } | { readonly x: Axis; readonly lines: readonly Line[] })

export type Bar = {
  readonly name: string
  readonly value: number
  readonly lowest?: number
  readonly highest?: number
}

/** `isLog`: each step is ten times the one before. */
type Axis = { readonly title: string; readonly isLog?: true }
type Line = { readonly name: string; readonly points: readonly (readonly [x: number, y: number])[] }
