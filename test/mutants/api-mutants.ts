// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands here is code as text
/** Bugs that somebody could make in the API: see `mutants.ts`. */
import { type Mutant, PROJECTED, WALKS } from './mutant.ts'

const MOMENTS = 'test/flow/promises/moments.test.ts'
const ORGANIZATIONS = 'test/flow/promises/organizations.test.ts'
const SHARDS = 'test/flow/promises/shards.test.ts'

export const apiMutants: readonly Mutant[] = [
  {
    name: 'a page begins with the record that its cursor names',
    file: 'api/read/read-page.ts',
    find: '  const behind = { gt: after }\n',
    replace: '  const behind = { gte: after }\n',
    flow: WALKS,
  },
  {
    name: 'a cursor counts instead of naming a place',
    file: 'api/read/read-page.ts',
    find: '    size,\n    track_total_hits: false,\n',
    replace: '    size,\n    from: after + 1,\n    track_total_hits: false,\n',
    flow: WALKS,
  },
  {
    name: 'lists are in order of time',
    file: 'api/read/read-page.ts',
    find: "    sort: [{ [order]: 'asc' }],",
    replace: "    sort: [{ at: 'asc' }],",
    flow: WALKS,
  },
  {
    name: 'a page is looked for on the first shard only',
    file: 'api/elasticsearch/client.ts',
    find: '/_search?allow_partial_search_results=false`',
    replace: '/_search?allow_partial_search_results=false&preference=_shards:0`',
    flow: SHARDS,
  },
  {
    name: 'a page is in the order of the documents of its shards',
    file: 'api/read/read-page.ts',
    find: "    sort: [{ [order]: 'asc' }],",
    replace: "    sort: ['_doc', { [order]: 'asc' }],",
    flow: SHARDS,
  },
  {
    name: 'a page is searched without the organization',
    file: 'api/read/read-page.ts',
    find: '{ bool: { filter: [...terms, ...ranges.map(range => ({ range }))] } }',
    replace: '{ bool: { filter: [...ranges.map(range => ({ range }))], should: terms } }',
    flow: ORGANIZATIONS,
  },
  {
    name: 'single records are read beyond the published position',
    file: 'api/read/position.ts',
    find: 'boolean => seq < position.publishedTo',
    replace: 'boolean => seq < position.publishedTo + 1',
    flow: PROJECTED,
  },
  {
    name: 'a replacement is shown before it is published',
    file: 'api/read/position.ts',
    find: 'boolean => untilSeq < position.publishedTo',
    replace: 'boolean => untilSeq <= position.publishedTo',
    flow: WALKS,
  },
  {
    name: 'replaced and replacement are both current on a page',
    file: 'api/read/position.ts',
    find: '({ gte: position.publishedTo })',
    replace: '({ gte: position.publishedTo - 1 })',
    flow: WALKS,
  },
  {
    name: 'a moment is just before its change',
    file: 'api/read/as-of.ts',
    find: 'publishedTo: place + 1 }',
    replace: 'publishedTo: place }',
  },
  {
    name: 'an instant is over as soon as the projection has reached it',
    file: 'api/read/as-of.ts',
    find: 'Math.min(time, now()) - AS_OF_SETTLED\n',
    replace: 'Math.min(time, now())\n',
  },
  {
    name: 'an instant is without what bears its very time',
    file: 'api/read/as-of.ts',
    find: '{ range: { at: { gt: instant } } }',
    replace: '{ range: { at: { gte: instant } } }',
    flow: MOMENTS,
  },
  {
    name: 'a cursor of later is good at any moment',
    file: 'api/read/read-list.ts',
    find: '(after === undefined || !isVisible(after, position))',
    replace: '(after === undefined || !isVisible(after, now))',
    flow: MOMENTS,
  },
  {
    name: 'the feed leaves out what was replaced',
    file: 'api/read/read-page.ts',
    find: "kind !== 'payroll_files' && kind !== 'changes' && !chain",
    replace: "kind !== 'payroll_files' && !chain",
    flow: MOMENTS,
  },
  {
    name: 'totals count what was replaced',
    file: 'api/read/read-totals.ts',
    find: "...(what === 'payouts' ? [{ range",
    replace: "...(what !== 'payouts' ? [{ range",
    flow: MOMENTS,
  },
  {
    name: 'totals count an amount once, however many payouts have it',
    file: 'api/read/read-totals.ts',
    find: 'new Exact(key.amount).times(doc_count)',
    replace: 'new Exact(key.amount)',
    flow: MOMENTS,
  },
  {
    name: 'partial results make a page',
    file: 'api/elasticsearch/slice-documents.ts',
    find: '  if (shards?.failed !== 0 || shards.successful !== shards.total || shards.total === 0) {',
    replace: '  if (shards?.total === 0) {',
  },
  {
    name: 'a search that timed out makes a page',
    file: 'api/elasticsearch/slice-documents.ts',
    find: "  if (answer.timed_out !== false) throw unavailable('elasticsearch_timed_out')\n",
    replace: '',
  },
  {
    name: 'a single record is read without asking what the key may do',
    file: 'api/access/limit-rate.ts',
    find: '    if (!key.mayRead) throw',
    replace: "    if (!key.mayRead && !ctx.state.route?.endsWith(':id')) throw",
    flow: 'test/flow/api-refusals.test.ts',
  },
  {
    name: 'a revoked key is believed',
    file: 'api/read/api-keys.ts',
    find: '  if (revoked !== false) return undefined\n',
    replace: '  if (revoked === undefined) return undefined\n',
  },
  {
    name: 'what was read of the generation before is good enough for the one that is live now',
    file: 'api/read/position.ts',
    find: ' || before.by !== generation.name\n      const again',
    replace: '\n      const again',
  },
  {
    name: 'a generation that is made live is served before it is as far',
    file: 'api/read/position.ts',
    find: "    if (now.publishedTo < before.publishedTo) throw unavailable('position_went_back')",
    replace:
      "    if (now.publishedTo < before.publishedTo && before.by === generation.name) throw unavailable('position_went_back')",
  },
  {
    name: 'a read waits for no position: what was read before is good enough',
    file: 'api/read/position.ts',
    find: "      const moved = now.publishedTo !== before.publishedTo || before.by !== generation.name\n      const again = moved && freshness === 'at-position' && names.length > 0",
    replace:
      "      const again = now.publishedTo < before.publishedTo && freshness === 'at-position' && names.length > 0",
  },
  {
    name: 'of requests that are asked together one reads its record before its position',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: ' at > before && id',
    replace: ' id',
  },
]
