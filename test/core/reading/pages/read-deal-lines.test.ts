import { describe, expect, test } from 'vitest'
import { DEAL_PAGE_BYTES, DEAL_PAGE_PAYOUTS } from '../../../../core/reading/limits.ts'
import { createPace, usualPace } from '../../../../core/reading/pace.ts'
import { sumDealLines } from '../../../../core/reading/pages/read-deal-lines.ts'
import type { ReaderParts } from '../../../../core/reading/pages/read-list.ts'
import { createReadPage } from '../../../../core/reading/pages/read-list.ts'
import { type Added, createReadTotals } from '../../../../core/reading/pages/read-totals.ts'
import { createSequences } from '../../../../core/reading/pages/sequences.ts'
import { abortReason } from '../../../../core/runtime/time-limits.ts'
import type { ScopedSearch } from '../../../../core/store/index.ts'
import { DEAL_BYTES_MAX } from '../../../../schemas/limits.ts'
import { layoutOf } from '../../../../schemas/stored/layout.ts'
import { recordText, searchAnswer } from '../../../api/answers.ts'
import { type Payout, payoutBodies } from '../../../support/bodies.ts'
import { generationOf } from '../../../support/layout.ts'
import type { Item } from '../../../support/model.ts'
import { createRandom } from '../../../support/random.ts'
import { scopeOf } from '../../../support/read-scope.ts'
import { lineTotalsOf } from '../../../support/totals.ts'

const generation = (name: string) => ({
  ...generationOf({ name }),
  layout: layoutOf('p', { generation: name, topic: 't', layout: 3 }),
})
const position = { generation: generation('g1'), publishedTo: 100_000, time: 7, takenBack: 0 }
const signal = new AbortController().signal

type Stored = { readonly id: string; readonly text: string; readonly place: number }
const stored = (payout: Payout, place: number): Stored => {
  const { period = 'period_1', currency = 'EUR' } = payout
  return {
    id: `org_a:${payout.id}`,
    text: recordText(place, payoutBodies(payout).body, { period_id: period, currency }),
    place,
  }
}

/** Payouts in an index, in pages. `asked`: the index of each search, and how many payouts it found. */
const listOf = (payouts: readonly Stored[], onSearch = (): void => undefined) => {
  const asked: [index: string, found: number][] = []
  const read: number[] = []
  const search = async ({ index }: { readonly index: string }, body: string) => {
    const { size, query } = JSON.parse(body) as { size: number; query: { bool: { filter: Filter[] } } }
    const after = query.bool.filter.find(({ range }) => range?.seq)?.range?.seq?.gt ?? -1
    const found = payouts.filter(({ place }) => place > after).slice(0, size)
    asked.push([index, found.length])
    onSearch()
    return searchAnswer(index, found)
  }
  const readPage = createReadPage(search)
  const sum = (deal = 'deal_1', pace = usualPace(signal)) =>
    sumDealLines(readPage, scopeOf('org_a'), position, { deal_id: deal }, pace, bytes => void read.push(bytes))
  const bytesRead = () => read.reduce((all, bytes) => all + bytes, 0)
  return { asked, readPage, sum, bytesRead }
}
type Filter = { readonly range?: { readonly seq?: { readonly gt: number } } }

const deals = ['deal_1', 'deal_2', 'deal_12']
const payoutsOf = (count: number, seed: number): Payout[] => {
  const random = createRandom(seed)
  const digits = (length: number) => Array.from({ length }, () => random.below(10)).join('')
  return Array.from({ length: count }, (_, at) => ({
    id: `payout_${at}`,
    period: `period_${random.below(3)}`,
    currency: random.pick(['EUR', 'USD', 'INR']),
    lines: Array.from({ length: 1 + random.below(4) }, (__, line) => ({
      id: `line_${line}`,
      category: random.pick(['earned', 'recovered', 'adjusted'] as const),
      amount: `${random.chance(0.4) ? '-' : ''}${1 + random.below(9)}${digits(random.below(39))}.${digits(1 + random.below(40))}`,
      description: random.pick(['', '","deal_id":"deal_1"}', '{"id":"line_1","category":"earned"', '\\', 'é']),
      // The first line has the deal: the search finds no other payout.
      deal: line === 0 ? 'deal_1' : random.pick(deals),
    })),
  }))
}

describe('the lines of a deal', () => {
  test.each([1, 2, 3])('of payouts on many pages add up exactly, to the last digit (seed %i)', async seed => {
    const payouts = payoutsOf(2 * DEAL_PAGE_PAYOUTS + 10, seed)
    const { asked, sum, bytesRead } = listOf(payouts.map(stored))
    const bodies = payouts.map(payout => payoutBodies(payout).body)
    const bytes = bodies.reduce((all, body) => all + Buffer.byteLength(body), 0)
    const lines = lineTotalsOf(
      bodies.map(body => JSON.parse(body) as Item),
      'deal_1',
    )
    expect(lines.length).toBe(27)
    expect(await sum()).toEqual({ lines, bytes, isTooMuch: false })
    expect([asked.length > 2, bytesRead()]).toEqual([true, bytes])
  })

  test('of no payout are no rows', async () => {
    expect(await listOf([]).sum()).toEqual({ lines: [], bytes: 0, isTooMuch: false })
  })

  test('are read in pages of some bytes, and no further than a limit', async () => {
    const large = Array.from({ length: 40 }, (_, at) => ({
      id: `payout_${at}`,
      lines: Array.from({ length: 4_000 }, (__, line) => ({
        id: `line_${line}`,
        amount: '1',
        description: 'x'.repeat(900),
        ...(line === 0 && { deal: 'deal_1' }),
      })),
    }))
    const one = stored(large[0] ?? { id: '' }, 0)
    const size = one.text.length
    expect([40 * size > DEAL_BYTES_MAX, size > DEAL_PAGE_BYTES / 2]).toEqual([true, true])
    const { asked, sum, bytesRead } = listOf(
      large.map((payout, at) => ({ ...one, id: `org_a:${payout.id}`, place: at })),
    )
    const found = await sum()
    expect(found).toMatchObject({ lines: [], isTooMuch: true })
    expect([found.bytes > DEAL_BYTES_MAX, found.bytes < DEAL_BYTES_MAX + size]).toEqual([true, true])
    expect(bytesRead()).toBe(found.bytes)
    // A page has one of them and a look at the next one.
    expect(Math.max(...asked.map(([, payouts]) => payouts))).toBeLessThanOrEqual(3)
    const read = asked.length
    const few = listOf(Array.from({ length: 20 }, (_, at) => ({ ...one, id: `org_a:payout_${at}`, place: at })))
    expect(await few.sum()).toMatchObject({ lines: [{ amount: '20', line_count: 20 }], isTooMuch: false })
    expect(read).toBeLessThan(40)
  })

  test.each([
    ['has no line of the deal', (text: string) => text.replace('"deal_id":"deal_1"', '"deal_id":"deal_7"')],
    [
      'has a line in another form',
      (text: string) => text.replace('"category":"earned","desc', '"category":earned,"desc'),
    ],
    ['has a line without a beginning', (text: string) => text.replace('{"id":"line_1"', '{"no":"line_1"')],
    ['has no currency', (text: string) => text.replace('"currency":"EUR","hash"', '"currency":null,"hash"')],
  ])('are unavailable if a payout %s: a sum that lacks a line is never an answer', async (_, damage) => {
    const payout = stored({ id: 'payout_1', lines: [{ id: 'line_1', amount: '1', deal: 'deal_1' }] }, 1)
    const text = damage(payout.text)
    const bodyStart = text.indexOf('"body":') + '"body":'.length
    const sized = text.replace(/"body_bytes":\d+/, `"body_bytes":${Buffer.byteLength(text) - bodyStart - 1}`)
    expect(sized).not.toBe(payout.text)
    await expect(listOf([{ ...payout, text: sized }]).sum()).rejects.toMatchObject({
      code: 'unavailable',
      reason: 'elasticsearch_malformed_record',
    })
  })

  test('of a large payout are added in slices: a request that has ended stops them', async () => {
    const lines = Array.from({ length: 5_000 }, (_, at) => ({ id: `line_${at}`, amount: '1', deal: 'deal_1' }))
    const end = new AbortController()
    let rests = 0
    const turn = async () => {
      rests++
      if (rests === 3) end.abort(abortReason('client_gone'))
    }
    const pace = createPace({ items: 100, bytes: 1024 * 1024 }, turn)(end.signal)
    const { sum } = listOf([stored({ id: 'payout_1', lines }, 1)])
    await expect(sum('deal_1', pace)).rejects.toMatchObject({ reason: 'client_gone' })
    expect(rests).toBe(3)
  })
})

/** A clock that stands still. */
const stopped = () => 0

describe('totals of a deal', () => {
  /** Totals over these payouts. `swapDuringReads`: at the next search, another generation becomes live. */
  const totalsOver = (payouts: readonly Stored[]) => {
    let live = 'g1'
    let onSearch = (): void => undefined
    const { asked, readPage } = listOf(payouts, () => onSearch())
    const parts = {
      readAt: async () => ({ position: { ...position, generation: generation(live) }, documents: [] }),
      positionAsOf: async (_: unknown, found: object) => found,
      cursors: { remembered: () => undefined, remember: () => undefined, forget: () => undefined },
      projectionTime: async () => 7,
      readPage,
    } as unknown as ReaderParts
    const last = { id: 'org_a:payout_0', text: '{"seq":5,"at":1}', place: 5 }
    const counted = { all: { buckets: [{ doc_count: 9 }] } }
    const search: ScopedSearch = async ({ index }) => {
      if (index.endsWith('-periods')) return searchAnswer(index, [])
      const { hits, ...head } = JSON.parse(searchAnswer(index, [last]).toString())
      return Buffer.from(JSON.stringify({ ...head, hits, aggregations: counted }))
    }
    const read = createReadTotals(parts, search, createSequences(search, stopped), stopped)
    const added: Added[] = []
    const ask = (deal = 'deal_1', period?: string, end = signal) =>
      read({ ...scopeOf('org_a'), signal: end }, { asOf: undefined, deal, period }, one => void added.push(one))
    const onRead = (then: () => void): void => {
      onSearch = then
    }
    const swapDuringReads = (): void =>
      onRead(() => {
        live = 'g2'
      })
    return { asked, added, ask, onRead, swapDuringReads }
  }

  test('come from one generation, also if another one becomes live between two pages', async () => {
    const payouts = payoutsOf(DEAL_PAGE_PAYOUTS + 500, 4)
    const { asked, ask, swapDuringReads } = totalsOver(payouts.map(stored))
    swapDuringReads()
    const { totals, position: at } = await ask()
    const bodies = payouts.map(payout => JSON.parse(payoutBodies(payout).body) as Item)
    const line_totals = lineTotalsOf(bodies, 'deal_1')
    expect(totals).toEqual({ last_change_id: 'payout_0', last_sequence: 9, totals: [], line_totals })
    expect([at.generation.name, new Set(asked.map(([index]) => index))]).toEqual(['g1', new Set(['p-g1-payouts'])])
    await ask()
    expect(new Set(asked.map(([index]) => index)).size).toBe(2)
  })

  test('are read once for the same moment, and again for another deal or period', async () => {
    const payouts = payoutsOf(3, 5)
    const { asked, added, ask } = totalsOver(payouts.map(stored))
    const [one, same] = await Promise.all([ask(), ask()])
    expect([same.totals, (await ask()).totals]).toEqual([one.totals, one.totals])
    const bytes = payouts.reduce((all, payout) => all + Buffer.byteLength(payoutBodies(payout).body), 0)
    // The price is the same for all. Only the first one also pays if its answer is 304.
    const shared = { bytes, isFirst: false }
    expect(added).toEqual([{ bytes, isFirst: true }, shared, shared])
    const once = asked.length
    await ask('deal_1', 'period_1')
    expect(asked.length).toBeGreaterThan(once)
  })

  test('that would add up too much are refused, each time, and read once', async () => {
    const lines = Array.from({ length: 6_000 }, (_, at) => ({
      id: `line_${at}`,
      amount: '1',
      description: 'x'.repeat(990),
    }))
    const one = stored({ id: 'payout_0', lines: [...lines, { id: 'line_x', amount: '1', deal: 'deal_1' }] }, 0)
    const count = Math.ceil(DEAL_BYTES_MAX / (6_000 * 990))
    const { asked, added, ask } = totalsOver(
      Array.from({ length: count }, (_, at) => ({ ...one, id: `org_a:payout_${at}`, place: at })),
    )
    const refused = { code: 'invalid_request', message: expect.stringContaining('more than 128 MiB') }
    await expect(ask()).rejects.toMatchObject(refused)
    const once = asked.length
    await expect(ask()).rejects.toMatchObject(refused)
    expect(asked.length).toBe(once)
    const [first, second] = added
    expect([first?.isFirst, second?.isFirst, first?.bytes === second?.bytes]).toEqual([true, false, true])
    expect(first?.bytes).toBeGreaterThan(DEAL_BYTES_MAX)
  })

  test('tell the payouts that were read so far if the request ends before its answer', async () => {
    const end = new AbortController()
    const { asked, added, ask, onRead } = totalsOver(payoutsOf(3 * DEAL_PAGE_PAYOUTS, 6).map(stored))
    onRead(() => {
      if (asked.length === 3) end.abort(abortReason('client_gone'))
    })
    await expect(ask('deal_1', undefined, end.signal)).rejects.toMatchObject({ reason: 'client_gone' })
    expect(added).toEqual([{ bytes: expect.any(Number), isFirst: true }])
    expect(added[0]?.bytes).toBeGreaterThan(DEAL_PAGE_PAYOUTS * 100)
  })
})
