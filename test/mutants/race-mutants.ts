/** Bugs where two looks at what others change are taken as one look: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const raceMutants: readonly Mutant[] = [
  {
    name: 'a new leader that is behind for a moment has lost the last known record',
    file: 'core/log/records/read-log.ts',
    find: 'if (entry !== undefined || reads === KNOWN_READS) return entry',
    replace: 'if (entry !== undefined || reads > 0) return entry',
  },
]
