/** Not measured yet. */
import type { Measure } from './bench.ts'

export const measureGrowth: Measure = async () => []
