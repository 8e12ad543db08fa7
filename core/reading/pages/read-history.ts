/**
 * In: an organization, the id of a payout and the parameters of a list. Out: a page of the payouts of its rep for its
 *   period, oldest first, and the payout before the page.
 * Promises: every payout at the position, replaced or not, in the order of replacement.
 * Can go wrong: an unknown payout → `not_found`. A cursor that is not one of these payouts → `invalid_cursor`.
 */
import { recordId } from '../../../schemas/stored/documents.ts'
import { Refusal } from '../../runtime/index.ts'
import { type DocumentSlice, isVisible, numberOf, type ReadScope, textOfSlice } from '../../store/index.ts'
import { HISTORY_BYTES_MAX } from '../limits.ts'
import type { Page, ReaderParts } from './read-list.ts'
import type { ListParameters } from './read-parameters.ts'
import { createReadDocumentsAsOf, requireVisible } from './read-record.ts'

/** `before` is undefined if the page begins with the very first payout. */
export type HistoryPage = Page & { readonly before: DocumentSlice | undefined }
export type HistoryAsked = ListParameters & { readonly id: string }
export type ReadHistory = (scope: ReadScope, asked: HistoryAsked) => Promise<HistoryPage>

/** Creates the reader of histories. */
export const createReadHistory = (parts: ReaderParts): ReadHistory => {
  const readDocumentsAsOf = createReadDocumentsAsOf(parts)
  return async (scope, { id, limit, startingAfter, asOf }) => {
    const ids = startingAfter === undefined ? [id] : [id, startingAfter.id]
    const { position, documents } = await readDocumentsAsOf(
      scope,
      ({ layout }) => ids.map(id => ({ ...layout.addressOf('payouts', recordId(scope.org, id)), form: 'record' })),
      asOf,
    )
    const chain = chainOf(requireVisible(documents[0], position))
    const before = documents[1]
    if (startingAfter !== undefined) {
      const isOfChain = before && isVisible(numberOf(before, 'seq'), position) && isSame(chainOf(before), chain)
      if (!isOfChain) throw new Refusal('invalid_cursor')
    }
    const asked = {
      list: 'payouts',
      where: position.generation.layout.searchOf(['payouts'], scope.org),
      chain,
      after: before ? numberOf(before, 'seq') : -1,
      limit,
      position,
      bytesMax: HISTORY_BYTES_MAX,
    } as const
    return { position, before, ...(await parts.readPage(scope, asked)) }
  }
}

type Chain = { readonly rep_id: string; readonly period_id: string }

const chainOf = (payout: DocumentSlice): Chain => ({
  rep_id: textOfSlice(payout, 'rep_id') ?? '',
  period_id: textOfSlice(payout, 'period_id') ?? '',
})

const isSame = (a: Chain, b: Chain): boolean => a.rep_id === b.rep_id && a.period_id === b.period_id
