/**
 * In: an organization at a position, and a deal; optionally one rep and one period. Out: the sums of the lines of the
 *   deal by period, currency and category, over the payouts that are current at the position.
 * Promises: the sums are exact, over exactly the lines of the deal in the payouts that the list has at that position.
 *   One page of payouts is held at a time.
 * Can go wrong: the payouts have more bytes than DEAL_BYTES_MAX → `isTooMuch`, without sums. A payout without a line of
 *   the deal, or in another form → `unavailable`.
 */
import { DEAL_BYTES_MAX } from '../../../schemas/limits.ts'
import type { ListFilter } from '../../../schemas/lists.ts'
import { Exact, textOfSum } from '../../../schemas/money.ts'
import type { Totals } from '../../../schemas/resources.ts'
import { unavailable } from '../../runtime/index.ts'
import { type DocumentSlice, type ReadPosition, type ReadScope, textOfSlice } from '../../store/index.ts'
import { DEAL_PAGE_BYTES, DEAL_PAGE_PAYOUTS } from '../limits.ts'
import type { Pace } from '../pace.ts'
import type { ReadPage } from './read-list.ts'

export type DealSums = {
  readonly lines: readonly LineRow[]
  /** Bytes of the payouts that were read. */
  readonly bytes: number
  readonly isTooMuch: boolean
}
type LineRow = NonNullable<Totals['line_totals']>[number]

/** A line as it is stored: its fields are in this order. */
type StoredLine = Pick<LineRow, 'category' | 'amount'> & { readonly deal_id: string }
type Sum = Omit<LineRow, 'amount'> & { amount: Exact; line_count: number }
/** By period, currency and category. */
type Sums = Map<string, Sum>

/** Adds up the lines of a deal. @param filter with the deal */
export const sumDealLines = async (
  readPage: ReadPage,
  scope: ReadScope,
  position: ReadPosition,
  filter: ListFilter & { readonly deal_id: string },
  pace: Pace,
  /** Called with the bytes of each page that arrived. */
  onRead: (bytes: number) => void,
): Promise<DealSums> => {
  const where = position.generation.layout.searchOf(['payouts'], scope.org)
  const asked = { list: 'payouts', where, filter, position, limit: DEAL_PAGE_PAYOUTS } as const
  const sums: Sums = new Map()
  let bytes = 0
  for (let after = -1; ; ) {
    const { hits, hasMore } = await readPage(scope, { ...asked, after, bytesMax: DEAL_PAGE_BYTES })
    const arrived = hits.reduce((sum, hit) => sum + hit.bodyEnd - hit.bodyStart, 0)
    bytes += arrived
    onRead(arrived)
    if (bytes > DEAL_BYTES_MAX) return { lines: [], bytes, isTooMuch: true }
    for (const hit of hits) await addLines(sums, hit, filter.deal_id, pace)
    after = hits.at(-1)?.sortValue ?? after
    if (!hasMore) return { lines: rowsOf(sums), bytes, isTooMuch: false }
  }
}

/**
 * Adds the lines of a payout that have the deal. Only these are parsed, whatever the size of the payout. No text of a
 * line has LINE or the end that is searched: a quote in a text is escaped.
 */
const addLines = async (sums: Sums, payout: DocumentSlice, deal: string, pace: Pace): Promise<void> => {
  const body = payout.bytes.subarray(payout.bodyStart, payout.bodyEnd)
  const [period_id, currency] = [textOfSlice(payout, 'period_id'), textOfSlice(payout, 'currency')]
  if (period_id === null || currency === null) throw malformed()
  const end = Buffer.from(`,"deal_id":"${deal}"}`)
  let from = 0
  for (let at = body.indexOf(end); at !== -1; at = body.indexOf(end, from)) {
    const start = body.lastIndexOf(LINE, at)
    if (start < from) throw malformed()
    from = at + end.length
    const { category, amount, deal_id } = lineIn(body.toString('utf8', start, from))
    if (deal_id !== deal) throw malformed()
    const name = `${period_id} ${currency} ${category}`
    const sum = sums.get(name) ?? { period_id, currency, category, amount: new Exact(0), line_count: 0 }
    sum.amount = sum.amount.plus(amount)
    sum.line_count++
    sums.set(name, sum)
    if (pace.countWork(1, end.length)) await pace.rest()
  }
  // The search found the payout by a line of the deal.
  if (from === 0) throw malformed()
  if (pace.countWork(1, body.length)) await pace.rest()
}
const LINE = Buffer.from('{"id":"line_')

const lineIn = (text: string): StoredLine => {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed()
  }
}

const rowsOf = (sums: Sums): LineRow[] =>
  [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { period_id, currency, category, amount, line_count }]) => ({
      period_id,
      currency,
      category,
      amount: textOfSum(amount),
      line_count,
    }))

const malformed = () => unavailable('elasticsearch_malformed_record')
