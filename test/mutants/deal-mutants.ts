// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in the totals of a deal: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const DEALS = 'test/flow/api-deal-totals.test.ts'
const PROBES = 'test/simulation/permissions/permissions.test.ts'

export const dealMutants: readonly Mutant[] = [
  {
    name: 'a key for totals reads the lines of each deal',
    inside: 'requirePermission',
    find: "...(totalsOf('deal_id') ? permissionsOfDealTotals : [])",
    replace: "...(totalsOf('deal_id') ? permissionsOfDealTotals.slice(1) : [])",
    flow: PROBES,
  },
  {
    name: 'totals of a deal add up all lines of its payouts',
    inside: 'addLines',
    find: `const end = Buffer.from(\`,"deal_id":"\${deal}"}\`)`,
    replace: "const end = Buffer.from('}')",
    flow: DEALS,
  },
  {
    name: 'totals of a deal count one line of each payout',
    inside: 'addLines',
    find: 'at = body.indexOf(end, from)) {',
    replace: 'at = -1) {',
    flow: DEALS,
  },
  {
    name: 'totals of a deal join amounts of different categories',
    inside: 'addLines',
    find: '`${period_id} ${currency} ${category}`',
    replace: '`${period_id} ${currency}`',
    flow: DEALS,
  },
  {
    name: 'totals of a deal join amounts of different currencies',
    inside: 'addLines',
    find: '`${period_id} ${currency} ${category}`',
    replace: '`${period_id} ${category}`',
    flow: DEALS,
  },
  {
    name: 'totals of a deal end after the first page of payouts',
    inside: 'sumDealLines',
    find: 'if (!hasMore) return { lines',
    replace: 'if (hasMore !== undefined) return { lines',
  },
  {
    name: 'totals of a deal read payouts without end',
    inside: 'sumDealLines',
    find: 'if (bytes > DEAL_BYTES_MAX) return',
    replace: 'if (bytes < 0) return',
  },
  {
    name: 'totals of another deal come from the cache',
    inside: 'createReadTotals',
    find: '`${keyOfAll}:${only.deal}`',
    replace: '`${keyOfAll}:${typeof only.deal}`',
    flow: DEALS,
  },
  {
    name: 'totals of a deal have the lines of all reps',
    inside: 'filterOf',
    file: 'core/reading/pages/read-totals.ts',
    find: '...(rep !== undefined && { rep_id: rep }),',
    replace: '',
    flow: DEALS,
  },
  {
    name: 'totals of a deal find nothing where payouts cannot be searched by deal',
    inside: 'createReadTotals',
    find: '    requireSearchable(filterOf(only), position.generation.layout)\n',
    replace: '',
    flow: DEALS,
  },
  {
    name: 'totals of a deal cost one unit, however much they add up',
    inside: 'unitsToAdd',
    find: 'Math.max(ended.bytes, added)',
    replace: 'ended.bytes',
  },
  {
    name: 'a sum of a deal that is made for an answer 304 costs nothing',
    inside: 'unitsToAdd',
    find: 'ended.status === NOT_MODIFIED && !spent.added.isFirst',
    replace: 'ended.status === NOT_MODIFIED',
  },
  {
    name: 'a client that leaves before the sum of a deal pays one unit',
    inside: 'watchLeaving',
    find: 'Math.max(bytes, spent.added.bytes)',
    replace: 'bytes',
  },
  {
    name: 'the sum of a deal that is too large costs one unit',
    inside: 'unitsToAdd',
    find: 'Math.max(spent.bytesRead, spent.added.bytes)',
    replace: 'spent.bytesRead',
  },
  {
    name: 'the bytes of a sum are told only if its request does not end before',
    inside: 'waitForSum',
    find: '  try {\n    return await waitOrAbort(found, signal)\n  } finally {\n    onAdded(bytes())\n  }\n',
    replace: '  const sum = await waitOrAbort(found, signal)\n  onAdded(bytes())\n  return sum\n',
  },
  {
    name: 'requests for totals can take all reads of their organization',
    inside: 'shareReads',
    find: 'route === totalsRoute ? permittedTotals(request, read) : read()',
    replace: 'route === totalsRoute ? read() : read()',
  },
]
