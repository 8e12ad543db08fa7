/** Not measured yet. */
import type { Measure } from './bench.ts'

export const measurePartitions: Measure = async () => []
