// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in the API: see `mutants.ts`. */
import { isListKind } from '../../schemas/stored/documents.ts'
import { type Mutant, PROJECTED, WALKS } from './mutant.ts'

const FILTERS = 'test/flow/api-filters.test.ts'
const WAIT = 'test/flow/api-wait.test.ts'
const WATCH = 'test/simulation/watch-changes.test.ts'
const STRANGERS = 'test/flow/strangers-times.test.ts'
const MOMENTS = 'test/flow/promises/moments.long.test.ts'
const ORGANIZATIONS = 'test/flow/promises/organizations.test.ts'
const SHARDS = 'test/flow/promises/shards.long.test.ts'

const PROBES = 'test/simulation/permissions/permissions.test.ts'

/** For each permission: its path is opened by another one. */
const permissionMutants: readonly Mutant[] = (
  [
    ['reps', 'reps:read', 'periods:read'],
    ['periods', 'periods:read', 'reps:read'],
    ['payouts', 'payouts:read', 'statements:read'],
    ['statements', 'statements:read', 'payouts:read'],
    ['payroll_files', 'payroll:read', 'payouts:read'],
    ['totals', 'totals:read', 'payouts:read'],
    ['changes', 'changes:read', 'payouts:read'],
    ['checkpoint', 'changes:read', 'totals:read'],
  ] as const
).map(([path, needed, other]) => ({
  name: `a key with ${other} reads /${path}`,
  ...(isListKind(path)
    ? { inside: 'listTraits', find: `permission: '${needed}'`, replace: `permission: '${other}'` }
    : { inside: 'permissionOfPath', find: `['${path}', '${needed}'],`, replace: `['${path}', '${other}'],` }),
  flow: PROBES,
}))

export const apiMutants: readonly Mutant[] = [
  {
    name: 'what a step of a request adds is lost',
    inside: 'added',
    find: '  Object.assign(ctx.state as object, adds)\n',
    replace: '  Object.assign({}, adds)\n',
  },
  {
    name: 'a page begins with the record that its cursor names',
    inside: 'searchBody',
    find: '  const afterRange = { gt: after }\n',
    replace: '  const afterRange = { gte: after }\n',
    flow: WALKS,
  },
  {
    name: 'a cursor is used as a number of records to skip',
    inside: 'searchBody',
    find: '    size,\n    track_total_hits: false,\n',
    replace: '    size,\n    from: after + 1,\n    track_total_hits: false,\n',
    flow: WALKS,
  },
  {
    name: 'a filter is checked and not applied',
    inside: 'searchBody',
    find: 'termsOf({ ...chain, ...filter })',
    replace: 'termsOf({ ...chain })',
    flow: FILTERS,
  },
  {
    name: 'the search for changes begins one offset too late',
    inside: 'createChangeWatch',
    find: 'range: { seq: { gte: from, lt: to } }',
    replace: 'range: { seq: { gte: from + 1, lt: to } }',
    flow: WATCH,
  },
  {
    name: 'a wait overlooks a change exactly at its position',
    inside: 'createChangeWatch',
    find: 'last.get(waiter.org) ?? -1) >= waiter.from',
    replace: 'last.get(waiter.org) ?? -1) > waiter.from',
    flow: WATCH,
  },
  {
    name: 'looks search again for organizations whose filters are searched',
    inside: 'createChangeWatch',
    find: 'one === undefined || isFinding(one, begun) ? []',
    replace: 'one === undefined || (isFinding(one, begun) && false) ? []',
    flow: WATCH,
  },
  {
    name: 'a wait is answered with a remembered position before a look',
    inside: 'createChangeWatch',
    find: 'seenAt: remembered ? NEVER : begun',
    replace: 'seenAt: begun',
    flow: WATCH,
  },
  {
    name: 'a wait continues in a new generation',
    inside: 'createChangeWatch',
    find: 'position.generation.id === generation.id',
    replace: "position.generation.id !== ''",
    flow: WATCH,
  },
  {
    name: 'a key that is revoked while its request waits gets the page',
    inside: 'waitForChange',
    find: 'await state.recheckKey()',
    replace: 'void state.recheckKey',
    flow: WAIT,
  },
  {
    name: 'a key that is revoked while its request waits gets an empty page when its time is up',
    inside: 'waitForChange',
    find: 'await state.recheckKey()',
    replace: 'if (!nothingBefore) await state.recheckKey()',
  },
  {
    name: 'a filter can name another organization',
    inside: 'readListParameters',
    find: '...filters, ...more]',
    replace: "...filters, 'org_id', ...more]",
  },
  {
    name: 'a filter by deal finds nothing where payouts cannot be searched by deal',
    inside: 'requireSearchable',
    find: 'if (filter.deal_id === undefined || hasDeals) return',
    replace: 'if (filter.deal_id === undefined || hasDeals !== undefined) return',
    flow: FILTERS,
  },
  {
    name: 'a wait with a deal begins where payouts cannot be searched by deal',
    inside: 'createFindChange',
    find: '    requireSearchable(filter, position.generation.layout)\n',
    replace: '',
    flow: FILTERS,
  },
  {
    name: 'payroll records take a deal that none of them has',
    inside: 'readListParameters',
    find: "list === 'changes' ? feedFilters : listTraits[list].filters",
    replace: "list !== 'payouts' && list !== 'payroll_files' && list !== 'changes' ? [] : feedFilters",
  },
  {
    name: 'a new generation cannot be searched by deal',
    inside: 'allRecords',
    find: 'body: layout >= 3 ? bodyWithDeals : body',
    replace: 'body',
    flow: FILTERS,
  },
  {
    name: 'a filtered list of payouts has replaced ones',
    inside: 'searchBody',
    find: 'isReplaced && !chain)',
    replace: 'isReplaced && !chain && !filter?.rep_id)',
    flow: FILTERS,
  },
  {
    name: 'lists are sorted by time instead of offset',
    inside: 'searchBody',
    find: "    sort: [{ [order]: 'asc' }],",
    replace: "    sort: [{ at: 'asc' }],",
    flow: WALKS,
  },
  {
    name: 'a page is searched on the first shard only',
    inside: 'createSearchClient',
    find: '/_search?allow_partial_search_results=false$',
    replace: '/_search?allow_partial_search_results=false&preference=_shards:0$',
    flow: SHARDS,
  },
  {
    name: 'a page is sorted by the document order inside each shard',
    inside: 'searchBody',
    find: "    sort: [{ [order]: 'asc' }],",
    replace: "    sort: ['_doc', { [order]: 'asc' }],",
    flow: SHARDS,
  },
  {
    name: 'a page is searched without the filter of the organization',
    inside: 'searchBody',
    find: '{ bool: { filter: [...where.filters, ...terms, ...ranges.map(range => ({ range }))] } }',
    replace: '{ bool: { filter: [...terms, ...ranges.map(range => ({ range }))], should: where.filters } }',
    flow: ORGANIZATIONS,
  },
  {
    name: 'single records are read beyond the published position',
    inside: 'isVisible',
    find: 'boolean => seq < publishedTo',
    replace: 'boolean => seq < publishedTo + 1',
    flow: PROJECTED,
  },
  {
    name: 'a replacement is shown before it is published',
    inside: 'isReplaced',
    file: 'core/store/positions/position.ts',
    find: 'boolean => untilSeq < publishedTo',
    replace: 'boolean => untilSeq <= publishedTo',
    flow: WALKS,
  },
  {
    name: 'replaced and replacement are both current on a page',
    inside: 'notReplacedRange',
    find: '({ gte: publishedTo })',
    replace: '({ gte: publishedTo - 1 })',
    flow: WALKS,
  },
  {
    name: 'a moment excludes the change that it names',
    inside: 'createPositionAsOf',
    find: 'publishedTo: changeOffset + 1 }',
    replace: 'publishedTo: changeOffset }',
  },
  {
    name: 'an instant counts as over when the projection reaches it, without the margin AS_OF_MARGIN',
    inside: 'createPositionAsOf',
    find: 'Math.min(time, now()) - AS_OF_MARGIN\n',
    replace: 'Math.min(time, now())\n',
  },
  {
    name: 'an instant excludes events with exactly its time',
    inside: 'createPositionAsOf',
    find: 'gt: Math.max(milliseconds, EVENT_TIME_MIN - 1)',
    replace: 'gte: Math.max(milliseconds, EVENT_TIME_MIN - 1)',
    flow: MOMENTS,
  },
  {
    name: 'an instant is answered beside an event whose time says nothing',
    inside: 'createPositionAsOf',
    find: 'if (last && (last.at < EVENT_TIME_MIN || last.at > latestTime)) throw undecided()',
    replace: '',
    flow: STRANGERS,
  },
  {
    name: 'an instant is answered although a later event has an earlier time',
    inside: 'createPositionAsOf',
    find: "if (await firstEvent(scope, position, 'asc', [isEarlier, isAfter])) throw undecided()",
    replace: "await firstEvent(scope, position, 'asc', [isEarlier, isAfter])",
    flow: STRANGERS,
  },
  {
    name: 'a time ahead of the clock proves that an instant is over',
    inside: 'createPositionAsOf',
    find: ', lte: latestTime } } }',
    replace: ' } } }',
    flow: STRANGERS,
  },
  {
    name: 'the position of an instant is searched among the events of all organizations',
    inside: 'createPositionAsOf',
    find: '[...where.filters, ...filter]',
    replace: 'filter',
    flow: STRANGERS,
  },
  {
    name: 'a moment accepts the cursor of a later record',
    inside: 'readListStart',
    find: '(cursorValue === undefined || !isVisible(cursorValue, position))',
    replace: '(cursorValue === undefined || !isVisible(cursorValue, current))',
    flow: MOMENTS,
  },
  {
    name: 'the place of a record that is not visible yet is remembered',
    inside: 'readNamedOnce',
    find: 'if (read !== undefined && isVisible(read, position))',
    replace: 'if (read !== undefined)',
  },
  {
    name: 'the place of a record is remembered after an adoption',
    inside: 'readNamedOnce',
    find: 'one.value.takenBack !== position.takenBack',
    replace: 'one.value.takenBack > position.takenBack',
  },
  {
    name: 'the feed of changes leaves out replaced records',
    inside: 'searchBody',
    find: "list !== 'changes' && listTraits[list].isReplaced",
    replace: "(list === 'changes' || listTraits[list].isReplaced)",
    flow: MOMENTS,
  },
  {
    name: 'totals count replaced payouts',
    inside: 'partsSince',
    find: '{ until_seq: { gte: before } }',
    replace: '{ until_seq: { gte: 0 } }',
    flow: MOMENTS,
  },
  {
    name: 'totals count equal amounts once',
    inside: 'addAmount',
    file: 'core/store/balances/sums.ts',
    find: 'new Exact(amount).times(sign * doc_count)',
    replace: 'new Exact(amount).times(sign)',
    flow: MOMENTS,
  },
  {
    name: 'a search with failed shards makes a page',
    inside: 'requireComplete',
    find: '  if (shards?.failed !== 0 || shards.successful !== shards.total || shards.total === 0) {',
    replace: '  if (shards?.total === 0) {',
  },
  {
    name: 'a search that timed out makes a page',
    inside: 'requireComplete',
    find: "  if (answer.timed_out !== false) throw unavailable('elasticsearch_timed_out')\n",
    replace: '',
  },
  {
    name: 'a single record is read without a check of the permissions of the key',
    inside: 'limitRate',
    find: '    requirePermission(key, route, query)',
    replace: "    if (!route?.endsWith(':id')) requirePermission(key, route, query)",
    flow: PROBES,
  },
  {
    name: 'a key without a permission gets 404 for an unknown path',
    inside: 'requirePermission',
    find: 'if (permissions.size === 0) throw',
    replace: 'if (permissions.size === 0 && route !== undefined) throw',
    flow: PROBES,
  },
  ...permissionMutants,
  {
    name: 'a key for totals reads the pay of each rep',
    inside: 'requirePermission',
    find: "...(totalsOf('rep_id') ? permissionsOfRepTotals : [])",
    replace: "...(totalsOf('rep_id') ? permissionsOfRepTotals.slice(2) : [])",
    flow: PROBES,
  },
  {
    name: 'a key is still valid at the instant of its expiry',
    inside: 'createApiKeyCache',
    find: 'if (now() < expiresAt) return holder',
    replace: 'if (now() <= expiresAt) return holder',
  },
  {
    name: 'the address of a client is not compared with the networks of a cached key',
    inside: 'authenticate',
    find: 'if (!worksFrom(holder, () => addressOf(ctx.req))) {',
    replace: "if (keys.remembered(key ?? '') === undefined && !worksFrom(holder, () => addressOf(ctx.req))) {",
    flow: PROBES,
  },
  {
    name: 'an IPv4 address in IPv6 form is in networks of IPv6',
    inside: 'networksOf',
    find: "lists[mapped.check(address, 'ipv6') ? 'ipv4' : 'ipv6']",
    replace: "lists['ipv6']",
    flow: PROBES,
  },
  {
    name: 'the expiry of a key is looked at in its look-up, and not while its holder is cached',
    inside: 'createApiKeyCache',
    find: "return key ? inForce(digest, key) : unknown.get(digest) && 'unknown'",
    replace: "return key?.holder ?? (unknown.get(digest) && 'unknown')",
    flow: PROBES,
  },
  {
    name: 'a revoked key is accepted',
    inside: 'keyIn',
    file: 'core/reading/api-key-cache.ts',
    find: '  if (revoked !== false) return undefined\n',
    replace: '  if (revoked === undefined) return undefined\n',
  },
  {
    name: 'after a swap, documents are not read again although the position is of another generation',
    inside: 'createPositionReader',
    find: ' || seenBefore.positionFrom !== generation.id\n      const mustReadAgain',
    replace: '\n      const mustReadAgain',
  },
  {
    name: 'an index of a dropped generation makes the first requests of an idle process unavailable',
    inside: 'createPositionReader',
    find: '    return { positionOf, others: each.slice(ids.length) }\n',
    replace: '    return { positionOf, others: each.slice(ids.length).map(requireReadable) }\n',
  },
  {
    name: 'an index that is missing in the live generation makes a record unknown',
    inside: 'createPositionReader',
    find: ' : found).map(requireReadable) }',
    replace: " : found).map(one => (one === 'unreadable' ? undefined : one)) }",
  },
  {
    name: 'a new live generation is served before it reaches the position of the previous one',
    inside: 'createPositionReader',
    find: "    if (published.publishedTo < seenBefore.publishedTo) throw unavailable('position_went_back')",
    replace:
      "    if (published.publishedTo < seenBefore.publishedTo && seenBefore.positionFrom === generation.id) throw unavailable('position_went_back')",
  },
  {
    name: 'documents are not read again although the position has moved since the last read',
    inside: 'createPositionReader',
    find: "      const hasMoved = published.publishedTo !== seenBefore.publishedTo || seenBefore.positionFrom !== generation.id\n      const mustReadAgain = hasMoved && freshness === 'at-position' && names.length > 0",
    replace:
      "      const mustReadAgain = published.publishedTo < seenBefore.publishedTo && freshness === 'at-position' && names.length > 0",
  },
  {
    name: 'in a batched multi-get a request can read its record before its position',
    inside: 'together',
    file: 'core/store/read/batch-multi-gets.ts',
    find: ' at > before && isSame',
    replace: ' isSame',
  },
]
