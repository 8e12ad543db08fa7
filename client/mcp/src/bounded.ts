/** Keeps answers small: an answer has a page, and says whether more follows and how to ask for it. */
import type { List, Page } from '../../src/index.ts'
import { arraySchema, type JsonSchema, objectSchema } from './contract.ts'

/** Characters of the records of an answer: some ten thousand tokens. One record may have more. */
const ANSWER_CHARACTERS_MAX = 40_000

/** Records of a page: the default and the maximum. */
export const LIMIT_DEFAULT = 20
export const LIMIT_MAX = 100

/** Returns the first items that have room, at least one. */
export const firstOf = <Item>(items: readonly Item[], characters = ANSWER_CHARACTERS_MAX): readonly Item[] => {
  let left = characters
  const end = items.findIndex((item, at) => {
    left -= JSON.stringify(item).length
    return left < 0 && at > 0
  })
  return end === -1 ? items : items.slice(0, end)
}

/** A part of the lines of a payout, or of the steps of its calculation. */
export type AnswerPart<Item> = {
  readonly data: readonly Item[]
  readonly count: number
  readonly has_more: boolean
  readonly next: number | null
}

/** @param from the number of the first item: 1 is the first of all */
export const answerPart = <Item>(
  items: readonly Item[],
  from: number,
  limit: number,
  characters?: number,
): AnswerPart<Item> => {
  const data = firstOf(items.slice(from - 1, from - 1 + limit), characters)
  const next = from + data.length
  const hasMore = next <= items.length
  return { data, count: items.length, has_more: hasMore, next: hasMore ? next : null }
}

export const answerPartSchema = (item: JsonSchema, what: string, parameter: string): JsonSchema =>
  objectSchema({
    data: arraySchema(item, `The ${what}, in order.`),
    count: { type: 'integer', minimum: 0, description: `How many ${what} there are in all.` },
    has_more: { type: 'boolean', description: `Whether more ${what} follow.` },
    next: { type: ['integer', 'null'], description: `Send it as \`${parameter}\` to read on. Null at the end.` },
  })

export type PageAnswer<Item> = {
  readonly data: readonly Item[]
  readonly has_more: boolean
  readonly next_cursor: string | null
  readonly projection_time: string
}

/**
 * Reads one page, and keeps the records that have room. A cursor is the id of a record. A list that was read by `ids`
 * has none: a cursor would continue another list.
 */
export const readPage = async <Item extends { readonly id: string }, Shown>(
  list: List<Item>,
  show: (item: Item) => Shown,
): Promise<PageAnswer<Shown>> => {
  const { data, hasMore, nextCursor, projectionTime } = await firstPage(list)
  const shown = firstOf(data.map(show))
  const isCut = shown.length < data.length
  const cursor = isCut && nextCursor !== '' ? (data[shown.length - 1]?.id ?? '') : nextCursor
  return {
    data: shown,
    has_more: hasMore || isCut,
    next_cursor: cursor === '' ? null : cursor,
    projection_time: projectionTime,
  }
}

const firstPage = async <Item>(list: List<Item>): Promise<Page<Item>> => {
  for await (const page of list.pages()) return page
  return { data: [], nextCursor: '', hasMore: false, projectionTime: '' }
}

export const pageSchema = (item: JsonSchema): JsonSchema =>
  objectSchema({
    data: arraySchema(item, 'The records of this page.'),
    has_more: {
      type: 'boolean',
      description: 'Whether more records follow. Then this page alone has no complete sum.',
    },
    next_cursor: {
      type: ['string', 'null'],
      description:
        'Send it as `starting_after` to read on, now or later. Null if the list is empty, or was read by `ids`.',
    },
    projection_time: { type: 'string', description: 'Everything published up to this instant is included.' },
  })
