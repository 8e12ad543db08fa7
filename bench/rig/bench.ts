/** What every figure is given, and what it gives back. */
import type { Say } from '../../services/service.ts'
import type { Services } from '../../services/services.ts'
import type { Elasticsearch } from './elasticsearch.ts'
import type { Sizes } from './sizes.ts'

/** In the order in which they are measured. */
export const figureNames = ['replay', 'partitions', 'growth', 'freshness', 'api', 'crowd'] as const
export type FigureName = (typeof figureNames)[number]

export type Bench = {
  readonly services: Services
  readonly elasticsearch: Elasticsearch
  readonly sizes: Sizes
  readonly say: Say
  /** Aborted when the bench is interrupted. */
  readonly signal: AbortSignal
  /** Where the CPU profile of one more replay round is left. */
  readonly profile: string | undefined
}

/**
 * Measures one figure, as one table or several. Everything it started or created is gone when it is done, however it
 * ends.
 */
export type Measure = (bench: Bench) => Promise<Figure | readonly Figure[]>

export type Figure = {
  readonly name: FigureName
  readonly title: string
  readonly rows: readonly Row[]
  /** What one must know to read the rows. */
  readonly notes: readonly string[]
  readonly pictures?: readonly Picture[]
}

/**
 * One line of the table. A ratio compares two things measured in the same run: it means the same on another machine.
 */
export type Row = {
  readonly what: string
  /**
   * What a ratio is found by in other results where `what` is not always the same; of all ratios of a name it is the
   * only such.
   */
  readonly key?: string
  readonly unit: string
  /** Of several rounds their median. */
  readonly value: number
  /** Of the rounds; absent where there was one. */
  readonly lowest?: number
  readonly highest?: number
  readonly isRatio?: true
  /** What is to be reached. */
  readonly atLeast?: number
  readonly atMost?: number
}

/** `name` is that of its file, and of no other picture's. */
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

/** `isLog` where each step is ten times the one before. */
export type Axis = { readonly title: string; readonly isLog?: true }
export type Line = { readonly name: string; readonly points: readonly (readonly [x: number, y: number])[] }
