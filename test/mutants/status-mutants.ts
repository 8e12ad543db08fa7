/** Bugs in the status pages of the admin ports: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const statusMutants: readonly Mutant[] = [
  {
    name: 'the age on a status page is that of the newest partition',
    inside: 'oldestAge',
    find: 'Math.min(...known)',
    replace: 'Math.max(...known)',
  },
  {
    name: 'a status page counts the parked records of all times as parked lately',
    inside: 'readParkedLately',
    find: 'query: { range: { at: { gte: since } } },',
    replace: 'query: { match_all: {} },',
  },
  {
    name: 'a status page names the organizations of parked records',
    inside: 'readParkedLately',
    find: "terms: { field: 'code',",
    replace: "terms: { field: 'org_id',",
  },
  {
    name: 'the page of the API names no generation that is being built',
    inside: 'asLive',
    find: 'building: body.building ?? null',
    replace: 'building: null',
  },
]
