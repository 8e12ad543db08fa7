/**
 * In: a page of changes, a page of a payout's history, or totals. Out: the answer: bytes, entity tag, projection time; or 304.
 * Promises: records are copied byte for byte, as they were just after their change; nothing gives an offset away.
 */
import { differenceBetween } from '../schemas/differences.ts'
import { instantOf } from '../schemas/values.ts'
import { answer, contentHash, entityTag } from './answer-page.ts'
import { bodyOf, type Cut, type Hit, numberOf, textOf } from './cut-documents.ts'
import { unavailable } from './failures.ts'
import type { HistoryPage } from './read-history.ts'
import { changeOf, type Page, recordIdOf } from './read-list.ts'
import { type RecordName, textOfName } from './read-parameters.ts'
import type { TotalsRead } from './read-totals.ts'
import { replacementOf, textOfListed, withoutBrace } from './record-text.ts'
import type { Context } from './request.ts'

export const answerChanges = (ctx: Context, page: Page, startingAfter: RecordName | undefined): void => {
  const names = page.hits.map(changeOf)
  const last = names.at(-1) ?? startingAfter
  const nextCursor = last ? textOfName(last) : ''
  const hashes = page.hits.map((hit, place) => `${names[place]?.id} ${contentHash(hit)}`).join()
  const etag = entityTag('changes', page.position, `${hashes} ${page.hasMore} ${nextCursor}`)
  answer(ctx, page.position, etag, () =>
    listOf(
      page.hits.map((hit, place) => changeText(hit, names[place] as RecordName)),
      page.hasMore,
      nextCursor,
    ),
  )
}

export const answerHistory = (ctx: Context, page: HistoryPage, startingAfter: RecordName | undefined): void => {
  const last = page.hits.at(-1)
  const nextCursor = last ? recordIdOf(last) : (startingAfter?.id ?? '')
  const { position, before } = page
  const hashes = page.hits.map(hit => `${contentHash(hit)} ${replacementOf(hit, position)}`).join()
  const etag = entityTag(
    'history',
    position,
    `${before && contentHash(before)} ${hashes} ${page.hasMore} ${nextCursor}`,
  )
  answer(ctx, position, etag, () =>
    listOf(
      page.hits.map((hit, place) => {
        const previous = place === 0 ? before : page.hits[place - 1]
        const difference = previous ? differenceBetween(payoutOf(previous), payoutOf(hit)) : null
        const more = `,"superseded_by_id":${replacementOf(hit, position)},"difference":${JSON.stringify(difference)}}`
        return Buffer.concat([withoutBrace(hit), Buffer.from(more)])
      }),
      page.hasMore,
      nextCursor,
    ),
  )
}

export const answerTotals = (ctx: Context, { position, totals }: TotalsRead): void => {
  const body = Buffer.from(JSON.stringify({ data: totals }))
  answer(ctx, position, entityTag('totals', position, body.toString('latin1')), () => body)
}

const listOf = (items: readonly Buffer[], hasMore: boolean, nextCursor: string): Buffer =>
  Buffer.concat([
    Buffer.from('{"data":['),
    ...items.flatMap((item, place) => (place === 0 ? [item] : [COMMA, item])),
    Buffer.from(`],"has_more":${hasMore},"next_cursor":"${nextCursor}"}`),
  ])
const COMMA = Buffer.from(',')

const payoutOf = (cut: Cut) => bodyOf(cut) as Parameters<typeof differenceBetween>[0]

const changeText = (hit: Hit, name: RecordName): Buffer => {
  const { kind, id, ordinal = 1 } = name
  const superseded = kind === 'payouts' ? supersededBy(hit) : ordinal > 1 ? `"${id}.${ordinal - 1}"` : 'null'
  const reversed = kind === 'payroll_files' ? JSON.stringify(textOf(hit, 'reverses_id')) : 'null'
  const at = instantOf(numberOf(hit, 'at'))
  const head = `{"id":"${textOfName(name)}","kind":"${kind}","published_at":"${at}","supersedes_id":${superseded},"reverses_id":${reversed},"record":`
  // Just then nothing had replaced it.
  return Buffer.concat([Buffer.from(head), textOfListed(kind, hit), Buffer.from('}')])
}

const SUPERSEDES = Buffer.from('"supersedes_id":')

/** What a payout replaced, as JSON. In front of it in the body are ids and amounts only: what is found first is the field. */
const supersededBy = ({ bytes, bodyStart, bodyEnd }: Cut): string => {
  const from = bytes.indexOf(SUPERSEDES, bodyStart) + SUPERSEDES.length
  const [value] =
    /^(?:null|"payout_[0-9A-Za-z]{1,64}")(?=,)/.exec(bytes.toString('latin1', from, Math.min(from + 80, bodyEnd))) ?? []
  if (value === undefined) throw unavailable('elasticsearch_malformed_record')
  return value
}
