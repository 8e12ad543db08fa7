/** What every figure is given, and what it gives back. */
import type { Say } from '../services/service.ts'
import type { Services } from '../services/services.ts'
import type { Elasticsearch } from './elasticsearch.ts'
import type { Sizes } from './sizes.ts'

/** In the order in which they are measured. */
export const figureNames = ['replay', 'freshness', 'api', 'crowd'] as const
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

/** Measures one figure. Everything it started or created is gone when it is done, however it ends. */
export type Measure = (bench: Bench) => Promise<Figure>

export type Figure = {
  readonly name: FigureName
  readonly title: string
  readonly rows: readonly Row[]
  /** What one must know to read the rows. */
  readonly notes: readonly string[]
}

/** One line of the table. A ratio compares two things measured in the same run: it means the same on another machine. */
export type Row = {
  readonly what: string
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
