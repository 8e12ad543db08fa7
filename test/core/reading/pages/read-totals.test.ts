import { expect, test } from 'vitest'
import { createIndexChecks, type IndexChecks } from '../../../../core/reading/check-indices.ts'
import {
  AGREED_AFTER,
  TOTALS_AMOUNTS,
  TOTALS_AT_ONCE,
  TOTALS_BYTES,
  TOTALS_BYTES_REMEMBERED,
} from '../../../../core/reading/limits.ts'
import type { ReaderParts } from '../../../../core/reading/pages/read-list.ts'
import { createReadTotals } from '../../../../core/reading/pages/read-totals.ts'
import { createSequences } from '../../../../core/reading/pages/sequences.ts'
import { unavailable } from '../../../../core/runtime/refusals.ts'
import { scheduleTimer } from '../../../../core/runtime/time-limits.ts'
import type { ScopedSearch } from '../../../../core/store/index.ts'
import { generationText, multiGetAnswer } from '../../../api/answers.ts'
import { heapInUse } from '../../../support/heap.ts'
import { generationOf } from '../../../support/layout.ts'
import { createRandom } from '../../../support/random.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const generation = generationOf({ rules: 2 })
const position = { generation, publishedTo: 100, time: 7, takenBack: 0 }
const signal = new AbortController().signal

type Bucket = { key?: Record<string, string>; doc_count: number }
type Body = {
  size: number
  aggs?: { all: { composite: { size: number; sources: object[]; after?: { place: number } } } }
  query: { bool: { filter: object[] } }
}

const answerOf = (hits: object[], buckets?: Bucket[], after_key?: object): Buffer =>
  Buffer.from(
    JSON.stringify({
      timed_out: false,
      _shards: { total: 1, successful: 1, skipped: 0, failed: 0 },
      hits: { max_score: null, hits },
      ...(buckets && { aggregations: { all: { buckets, after_key } } }),
    }),
  )

type Amount = { period: string; currency?: string; amount: string; count: number }

/** Totals over an Elasticsearch that has the same amounts for every organization, and is asked page by page. */
const totalsOver = (
  owed: readonly Amount[],
  gate = Promise.resolve(),
  paid: readonly Amount[] = [],
  onPage = (): void => undefined,
  checkWith = (_elapsed: () => number): IndexChecks | undefined => undefined,
) => {
  const asked: Body[] = []
  const lastHit = { index: 'p-g1-payouts', more: {} }
  let last = 5
  let takenBack = 0
  let clock = 0
  const now = () => clock
  const indexChecks = checkWith(now)
  const parts = {
    prefix: 'p',
    readAt: async () => ({ position, documents: [] }),
    positionAsOf: async () => {
      await indexChecks?.check('g1')
      return { ...position, takenBack }
    },
    cursors: { remembered: () => undefined, remember: () => undefined, forget: () => undefined },
    projectionTime: async () => 7,
  } as unknown as ReaderParts
  const search: ScopedSearch = async ({ index }, text) => {
    const body = JSON.parse(text) as Body
    if (body.size === 1 || !body.aggs) {
      const _source = { seq: last, at: 1, ...lastHit.more }
      return answerOf(
        [{ _index: lastHit.index, _id: `org_a:payout_${last}`, _source, sort: [last] }],
        [{ doc_count: last }],
      )
    }
    asked.push(body)
    await gate
    onPage()
    const amounts = index === 'p-g1-payouts' ? owed : paid
    const terms = body.query.bool.filter.find(filter => 'terms' in filter) as
      | { terms: { period_id: string[] } }
      | undefined
    const wanted = new Set(terms?.terms.period_id)
    const isOfPeriods = body.aggs.all.composite.sources.length === 1
    const { size, after = { place: 0 } } = body.aggs.all.composite
    const place = after.place + size
    const found = isOfPeriods ? amounts : amounts.filter(({ period }) => wanted.has(period))
    const buckets = isOfPeriods
      ? [...Map.groupBy(found, ({ period }) => period)].map(([period_id, of]) => ({
          key: { period_id },
          doc_count: of.reduce((sum, { count }) => sum + count, 0),
        }))
      : found.slice(after.place, place).map(({ period, currency = 'EUR', amount, count }) => ({
          key: { period_id: period, currency, amount },
          doc_count: count,
        }))
    return answerOf([], isOfPeriods ? buckets.slice(after.place, place) : buckets, { place })
  }
  const read = createReadTotals(parts, search, createSequences(search, now), now, indexChecks?.proofs)
  return {
    asked,
    lastHit,
    read: (org = 'org_a', until = signal) => read(scopeOf(org, until), { asOf: undefined }),
    change: (by = 1) => (last += by),
    adopt: () => takenBack++,
    pass: (milliseconds: number) => (clock += milliseconds),
  }
}

test('totals are the amounts times their counts, in order of period', async () => {
  const { read } = totalsOver([
    { period: 'period_2', amount: '0.10', count: 3 },
    { period: 'period_1', amount: '-1.50', count: 2 },
  ])
  const { totals } = await read()
  expect(totals.last_change_id).toBe('payout_5')
  expect(totals.totals.map(({ period_id, owed_amount, owed_count }) => [period_id, owed_amount, owed_count])).toEqual([
    ['period_1', '-3', 2],
    ['period_2', '0.3', 3],
  ])
})

test('what is open is the amount owed less the amount paid, and below zero if more was paid', async () => {
  const owed = [
    { period: 'period_1', amount: '10.50', count: 1 },
    { period: 'period_2', amount: '3', count: 1 },
    { period: 'period_3', amount: '0.3', count: 1 },
  ]
  const paid = [
    { period: 'period_1', amount: '10.5000', count: 1 },
    { period: 'period_2', currency: 'USD', amount: '3', count: 1 },
    { period: 'period_3', amount: '0.1', count: 4 },
  ]
  const { totals } = await totalsOver(owed, undefined, paid).read()
  expect(totals.totals.map(({ period_id, currency, open_amount }) => [period_id, currency, open_amount])).toEqual([
    ['period_1', 'EUR', '0'],
    // Paid in another currency: nothing says how much of the debt this is.
    ['period_2', 'EUR', '3'],
    ['period_2', 'USD', '-3'],
    ['period_3', 'EUR', '-0.1'],
  ])
})

test.each([
  ['p-g2-payouts', {}],
  ['p-g1-reps', {}],
  ['p-g1-payouts', { ordinal: 1 }],
])(
  'totals are unavailable if the last change is in %s with the fields %j: its id is not certain',
  async (index, more) => {
    const { lastHit, read } = totalsOver([])
    Object.assign(lastHit, { index, more })
    await expect(read()).rejects.toMatchObject({ code: 'unavailable', reason: 'elasticsearch_malformed_search' })
  },
)

test('totals are summed once for all requests at the same time, a second time later, and again only after a change', async () => {
  const { asked, read, change, pass } = totalsOver([{ period: 'period_1', amount: '1', count: 1 }])
  await Promise.all([read(), read(), read()])
  const once = asked.length
  await read()
  expect(asked.length).toBe(once)
  pass(AGREED_AFTER)
  await Promise.all([read(), read(), read()])
  expect(asked.length).toBe(2 * once)
  pass(60 * AGREED_AFTER)
  await read()
  expect(asked.length).toBe(2 * once)
  change()
  await read()
  expect(asked.length).toBe(3 * once)
})

test('a sum of an old copy is answered for a second only, and never kept', async () => {
  const amounts = [{ period: 'period_1', amount: '1', count: 1 }]
  const { asked, read, pass } = totalsOver(amounts)
  const answers = async () => (await read()).totals.totals.map(({ owed_amount }) => owed_amount)
  expect(await answers()).toEqual(['1'])
  amounts.push({ period: 'period_1', amount: '2', count: 1 })
  pass(AGREED_AFTER)
  expect(await answers()).toEqual(['3'])
  pass(AGREED_AFTER)
  expect(await answers()).toEqual(['3'])
  const { length } = asked
  pass(AGREED_AFTER)
  expect([await answers(), asked.length]).toEqual([['3'], length])
})

test('totals are summed again after indices were adopted: an earlier sum may be one of a restored copy', async () => {
  const amounts = [{ period: 'period_1', amount: '1', count: 1 }]
  const { adopt, read } = totalsOver(amounts)
  await read()
  amounts.push({ period: 'period_1', amount: '2', count: 1 })
  adopt()
  const { totals } = await read()
  expect(totals.totals).toMatchObject([{ owed_amount: '3', owed_count: 2 }])
})

test('periods with many records are summed one after the other, small periods together', async () => {
  const { asked, read } = totalsOver(
    [15_000, 4_000, 1_000, 2, 90_000, 3].map((count, place) => ({ period: `period_${place}`, amount: '1', count })),
  )
  const { totals } = await read()
  expect(totals.totals.map(({ owed_count }) => owed_count)).toEqual([15_000, 4_000, 1_000, 2, 90_000, 3])
  const portions = asked.flatMap(({ query, aggs }) =>
    aggs?.all.composite.sources.length === 3 ? [JSON.stringify(query).match(/period_\d/g)] : [],
  )
  expect(portions).toEqual([['period_0', 'period_1', 'period_2'], ['period_3'], ['period_4'], ['period_5']])
})

test('the cache of totals is bounded by the bytes of their rows, however many moments are requested', async () => {
  const periods = Math.ceil(TOTALS_BYTES_REMEMBERED / TOTALS_BYTES.row / 10)
  const { asked, read, change } = totalsOver(
    Array.from({ length: periods }, (_, place) => ({ period: `period_${place}`, amount: '1', count: 1 })),
  )
  const first = asked.length
  for (let moment = 0; moment < 11; moment++) {
    await read()
    change()
  }
  const before = asked.length
  change()
  await read()
  const one = asked.length - before
  expect(asked.length - first).toBe(12 * one)
  change(-12)
  await read()
  expect(asked.length - first).toBe(13 * one)
})

test('the cache of totals is bounded by the names of totals too: those of many organizations without a row', async () => {
  const { asked, read } = totalsOver([])
  const orgOf = (place: number): string => `org_${String(place).padStart(64, '0')}`
  const most = Math.ceil(TOTALS_BYTES_REMEMBERED / (TOTALS_BYTES.each + 64 * TOTALS_BYTES.character))
  await read(orgOf(0))
  const first = asked.length
  await read(orgOf(0))
  const known = asked.length - first
  for (let place = 1; place < most; place++) await read(orgOf(place))
  const before = asked.length
  await read(orgOf(most - 1))
  expect(asked.length - before).toBe(known)
  const later = asked.length
  await read(orgOf(0))
  expect(asked.length - later).toBeGreaterThan(known)
})

test('a request over the limit waits until another sum is done, or until its own time is up', async () => {
  const gate = Promise.withResolvers<void>()
  const { read } = totalsOver([], gate.promise)
  const running = Array.from({ length: TOTALS_AT_ONCE }, (_, place) => read(`org_${place}`))
  const over = new AbortController()
  const [impatient, patient] = [read('org_impatient', over.signal), read('org_patient')]
  over.abort(new DOMException('time_is_up', 'AbortError'))
  await expect(impatient).rejects.toMatchObject({ code: 'unavailable', reason: 'time_is_up' })
  gate.resolve()
  await Promise.all([...running, patient])
})

test('one organization computes one sum at a time, for whatever moments: others find room', async () => {
  const gate = Promise.withResolvers<void>()
  const { asked, read, change } = totalsOver([], gate.promise)
  const turn = () => new Promise(setImmediate)
  const greedy: Promise<unknown>[] = []
  for (let moment = 0; moment < 10; moment++) {
    greedy.push(read('org_greedy'))
    await turn()
    change()
  }
  const others = Array.from({ length: TOTALS_AT_ONCE - 1 }, (_, place) => read(`org_${place}`))
  await turn()
  const organizations = asked.map(({ query }) => /"org_id":"(\w+)"/.exec(JSON.stringify(query))?.[1])
  expect(organizations.toSorted()).toEqual(['org_0', 'org_1', 'org_2', 'org_3', 'org_greedy'])
  gate.resolve()
  await Promise.all([...greedy, ...others])
})

test('a period with more amounts than a function call takes arguments is summed', async () => {
  const amounts = Array.from({ length: 150_000 }, (_, place) => ({ period: 'period_1', amount: `${place}`, count: 1 }))
  const { totals } = await totalsOver(amounts).read()
  expect(totals.totals).toMatchObject([{ owed_amount: `${(150_000 * 149_999) / 2}`, owed_count: 150_000 }])
})

test('a sum holds its rows, not the amounts of the organization: the memory does not grow from page to page', async () => {
  const pages = 40
  const amounts = Array.from({ length: pages * TOTALS_AMOUNTS }, (_, place) => ({
    period: 'period_1',
    amount: `${place}.01`,
    count: 1,
  }))
  const heap: number[] = []
  let asked = 0
  const onPage = (): void => {
    asked++
    if (asked % 10 !== 0) return
    heap.push(heapInUse())
  }
  const { totals } = await totalsOver(amounts, undefined, amounts, onPage).read()
  expect(totals.totals).toMatchObject([{ owed_count: amounts.length, paid_count: amounts.length }])
  expect(heap.length).toBeGreaterThanOrEqual((2 * pages) / 10)
  const [first = 0, ...later] = heap
  // One page takes more than half a megabyte.
  expect(Math.max(...later) - first).toBeLessThan(5 * 1024 * 1024)
})

/** Adds amounts as whole numbers of 10^-40, and writes the sum like an amount. */
const sumOf = (amounts: readonly Amount[]): string => {
  const sum = amounts.reduce((all, { amount, count }) => {
    const [whole = '', fraction = ''] = amount.replace('-', '').split('.')
    const units = BigInt(whole + fraction.padEnd(40, '0')) * BigInt(count)
    return amount.startsWith('-') ? all - units : all + units
  }, 0n)
  const digits = `${sum < 0n ? -sum : sum}`.padStart(41, '0')
  const text = `${digits.slice(0, -40)}.${digits.slice(-40)}`.replace(/\.?0+$/, '')
  return sum < 0n ? `-${text}` : text
}

const negated = (one: Amount): Amount => ({
  ...one,
  amount: one.amount.startsWith('-') ? one.amount.slice(1) : `-${one.amount}`,
})

test.each([1, 2, 3])('totals of random amounts on many pages are exact to the last digit (seed %i)', async seed => {
  const random = createRandom(seed)
  const digits = (length: number): string => Array.from({ length }, () => random.below(10)).join('')
  const amount = (): Amount => ({
    period: `period_${random.below(4)}`,
    currency: random.pick(['EUR', 'USD', 'INR']),
    amount: `${random.chance(0.4) ? '-' : ''}${1 + random.below(9)}${digits(random.below(40))}.${digits(1 + random.below(40))}`,
    count: 1 + random.below(20_000),
  })
  const owed = Array.from({ length: 23_000 }, amount)
  const paid = Array.from({ length: 12_000 }, amount)
  const { totals } = await totalsOver(owed, undefined, paid).read()
  const ofRow = (amounts: readonly Amount[], period: string, currency: string) => {
    const of = amounts.filter(one => one.period === period && one.currency === currency)
    return [sumOf(of), of.reduce((all, { count }) => all + count, 0)]
  }
  const expected = [0, 1, 2, 3].flatMap(period =>
    ['EUR', 'INR', 'USD'].map(currency => {
      const [owed_amount, owed_count] = ofRow(owed, `period_${period}`, currency)
      const [paid_amount, paid_count] = ofRow(paid, `period_${period}`, currency)
      const [open_amount] = ofRow([...owed, ...paid.map(negated)], `period_${period}`, currency)
      const amounts = { owed_amount, owed_count, paid_amount, paid_count, open_amount }
      return { period_id: `period_${period}`, currency, ...amounts }
    }),
  )
  expect(JSON.stringify(totals.totals)).toBe(JSON.stringify(expected))
})

test.each(['documents_hidden', 'runtime_fields'] as const)(
  'sums that were cut before a check noticed it are not kept: %s',
  async reason => {
    const kinds = ['reps', 'periods', 'payouts', 'payroll_files', 'statements'].map(kind => `p-g1-${kind}`)
    const indices = Object.fromEntries(['p-control', ...kinds].map(name => [name, 'id']))
    const stored = { 'generation:g1': generationText('g1', 1, { indices }) }
    const whole: Amount = { period: 'period_1', amount: '100', count: 1 }
    const amounts = [whole]
    const indexIds = async () => {
      if (amounts.length === 0) throw unavailable(reason)
      return new Map(Object.entries(indices))
    }
    const checkWith = (elapsed: () => number) =>
      createIndexChecks('p', async names => multiGetAnswer(names, stored), indexIds, elapsed, scheduleTimer)
    const { read, change, pass, asked } = totalsOver(amounts, undefined, [], undefined, checkWith)
    const rows = async () => (await read()).totals.totals.length
    expect(await rows()).toBe(1)
    change()
    amounts.pop()
    pass(100)
    expect(await rows()).toBe(0)
    pass(AGREED_AFTER + 100)
    // The check runs beside this sum.
    expect(await rows()).toBe(0)
    await new Promise(setImmediate)
    await expect(read()).rejects.toMatchObject({ code: 'unavailable', reason })
    amounts.push(whole)
    pass(60_000)
    expect(await rows()).toBe(1)
    pass(60_000)
    expect(await rows()).toBe(1)
    const known = asked.length
    pass(60_000)
    expect([await rows(), asked.length]).toEqual([1, known])
  },
)
