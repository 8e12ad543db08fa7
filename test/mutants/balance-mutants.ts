// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in totals and balances, with which totals would be wrong or never come: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const FILTERS = 'test/flow/api-filters.test.ts'
const ANSWERS = 'test/flow/api-answers.test.ts'
const BALANCES = 'test/flow/promises/balances.long.test.ts'

export const balanceMutants: readonly Mutant[] = [
  {
    name: 'totals after a balance still have the payouts that were replaced since',
    inside: 'partsSince',
    find: '    ...(after === undefined ? [] : [part(',
    replace: '    ...(after === undefined || before >= 0 ? [] : [part(',
    flow: BALANCES,
  },
  {
    name: 'totals take away a payout that came and was replaced after the balance',
    inside: 'partsSince',
    find: '{ seq: { lte: after } }',
    replace: '{ seq: { lt: before } }',
    flow: BALANCES,
  },
  {
    name: 'totals have the last change of a balance twice',
    inside: 'partsSince',
    find: '{ gt: after, lt: before }',
    replace: '{ gte: after, lt: before }',
    flow: BALANCES,
  },
  {
    name: 'totals are counted from a balance that is after the moment',
    inside: 'lastBalance',
    find: '{ lt: before }',
    replace: '{ gte: 0 }',
    flow: BALANCES,
  },
  {
    name: 'a row of which everything was replaced stays in totals',
    inside: 'rowsOf',
    file: 'core/store/balances/sums.ts',
    find: 'owed.count > 0 || paid.count > 0',
    replace: 'owed.count >= 0 || paid.count >= 0',
  },
  {
    name: 'what is open is the amount paid less the amount owed',
    inside: 'withOpenAmounts',
    find: 'differenceOf(row.paid_amount, row.owed_amount)',
    replace: 'differenceOf(row.owed_amount, row.paid_amount)',
    flow: ANSWERS,
  },
  {
    name: 'totals of one period have the balance of all periods',
    inside: 'createReadTotals',
    find: 'groupsOf(ofPeriod(balance?.rows ?? [], only.period))',
    replace: 'groupsOf(balance?.rows ?? [])',
    flow: BALANCES,
  },
  {
    name: 'totals of one rep are counted from the balance of all reps',
    inside: 'createReadTotals',
    find: 'const balance = only.rep === undefined ? await',
    replace: 'const balance = only.rep !== null ? await',
    flow: BALANCES,
  },
  {
    name: 'totals of one rep are those of all reps',
    inside: 'createReadTotals',
    find: '[{ term: { rep_id: only.rep } }]',
    replace: '[{ range: { seq: { gte: 0 } } }]',
    flow: FILTERS,
  },
  {
    name: 'totals of another rep come from the cache',
    inside: 'createReadTotals',
    find: '`${keyOfDeal}:${only.rep}`',
    replace: '`${keyOfDeal}:${typeof only.rep}`',
    flow: FILTERS,
  },
  {
    name: 'a balance is stored although a shard that it was counted on is another one',
    inside: 'BalanceKeeper.#makeDue',
    find: '    await this.#steps.assertSame(this.#steps.signal)\n',
    replace: '',
  },
  {
    name: 'a balance is computed from records that are not published yet',
    inside: 'BalanceKeeper.#next',
    find: 'Math.min(published.position, progress.publishedTo)',
    replace: 'Math.max(published.position, progress.readTo)',
  },
  {
    name: 'a balance is computed up to a position that was set back meanwhile',
    inside: 'BalanceKeeper.#next',
    find: 'Math.min(published.position, progress.publishedTo)',
    replace: 'Math.max(published.position, progress.publishedTo)',
  },
  {
    name: 'a balance is computed while documents are removed that no log has',
    inside: 'BalanceKeeper.#next',
    find: '    if (!isServed(published)) return undefined\n',
    replace: '    if (published.position < published.serve_from) return undefined\n',
  },
  {
    name: 'a balance is stored after one computation',
    inside: 'BalanceKeeper.#makeDue',
    find: 'if (isDeepStrictEqual(again?.balances, balances)) agreed',
    replace: 'if (again !== undefined) agreed',
  },
  {
    name: 'a balance is forgotten whose changes were counted before they were published',
    inside: 'BalanceKeeper.#makeDue',
    find: 'if (balances.length === 0 && position > counted) this',
    replace: 'if (balances.length === 0 && position > counted - 1_000) this',
  },
  {
    name: 'another content of a balance stays unseen',
    inside: 'BalanceKeeper.#isStored',
    find: '    return isDeepStrictEqual(stored._source, documentOf(balance))\n',
    replace: '    return isDeepStrictEqual(Object.keys(stored._source as object), Object.keys(documentOf(balance)))\n',
  },
  {
    name: 'the balances that an earlier process did not come to are never made',
    inside: 'BalanceKeeper.#sweepNew',
    find: 'this.#due.set(key, this.#due.get(key) ?? 0)',
    replace: 'this.#changes.delete(key)',
  },
  {
    name: 'a balance outlives the log that it was computed from',
    inside: 'findLeftovers',
    find: '        if (version < (positions[partition] ?? 0)) return []\n',
    replace: "        if (kind === 'balances' || version < (positions[partition] ?? 0)) return []\n",
  },
  {
    name: 'a filtered page numbers its changes as if no other lay between them',
    inside: 'createReadList',
    find: 'const isWhole = Object.keys(filter).length === 0',
    replace: 'const isWhole = true',
    flow: BALANCES,
  },
  {
    name: 'a page from the middle of the feed is numbered from 1',
    inside: 'createSequences',
    find: '(seq < 0)',
    replace: '(seq < Number.MAX_SAFE_INTEGER)',
    flow: BALANCES,
  },
  {
    name: 'a page after a sequence begins one change late',
    inside: 'createSequences',
    find: 'left = sequence - begin.sequence;',
    replace: 'left = sequence + 1 - begin.sequence;',
    flow: BALANCES,
  },
  {
    name: 'a change that an old copy puts in the place of another one is taken',
    inside: 'createSequences',
    find: 'if (!layout.isInOneShard && ',
    replace: 'if (layout.isInOneShard && ',
  },
  {
    name: 'a count that lacks a change of the page numbers it',
    inside: 'createSequences',
    find: 'if (buckets[seqs.length]?.doc_count !== seqs.filter(seq => seq > begin.seq).length)',
    replace: 'if (buckets.length <= seqs.length)',
  },
  {
    name: 'totals count the change of the balance twice in their last sequence',
    inside: 'createReadTotals',
    find: '{ seq: { gt: begin.seq } }',
    replace: '{ seq: { gte: begin.seq } }',
    flow: BALANCES,
  },
]
