/** Bugs in the status pages of the admin ports: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const statusMutants: readonly Mutant[] = [
  {
    name: 'the age on a status page is that of the newest partition',
    inside: 'oldestAge',
    find: 'Math.min(...times)',
    replace: 'Math.max(...times)',
  },
  {
    name: 'a status page says nothing of a partition whose time is not known',
    inside: 'stalePartitions',
    find: 'now - time > STALE_AGE_MS',
    replace: 'time > 0 && now - time > STALE_AGE_MS',
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
    find: 'return { name, minPositions, building }',
    replace: 'return { name, minPositions, building: null }',
  },
  {
    name: 'the last age that was known is shown as that of now',
    inside: 'agePicture',
    find: 'const newest = samples.at(-1)?.age',
    replace: 'const newest = known.at(-1)',
  },
  {
    name: 'the page of the projector waits for a server that stands still',
    inside: 'answers',
    find: 'inTime(status())',
    replace: 'status()',
  },
]
