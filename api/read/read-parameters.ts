/**
 * In: the query of a request as it came, and the id in its path. Out: the parameters of a list or of a single read; a
 * well-formed id.
 * Promises: what is unknown, repeated or not a value is refused, never ignored: a mistyped `starting_after` must not
 * start over.
 */

import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from '../../schemas/limits.ts'
import type { ListKind } from '../../schemas/stored/documents.ts'
import { type IdPrefix, instantToNanoseconds, isId } from '../../schemas/values.ts'
import { Refusal } from '../failures.ts'
import { PARAMETER_NAME_SHOWN } from '../limits.ts'
import type { ListName } from './read-page.ts'

/** A record of a list; with an ordinal that version of it, which is how a change of a rep or a period is named. */
export type RecordName = { readonly kind: ListKind; readonly id: string; readonly ordinal?: number }
export const textOfName = ({ id, ordinal }: RecordName): string => (ordinal === undefined ? id : `${id}.${ordinal}`)

/** A moment of an organization: an instant (milliseconds since 1970), or just after a change. */
export type Moment =
  | { readonly kind: 'instant'; readonly milliseconds: number }
  | { readonly kind: 'change'; readonly name: RecordName }

export type ListParameters = {
  readonly limit: number
  readonly startingAfter: RecordName | undefined
  readonly asOf: Moment | undefined
}

/** The prefix of the ids of each list. */
export const idPrefixOf = {
  reps: 'rep',
  periods: 'period',
  payouts: 'payout',
  payroll_files: 'payroll',
} as const satisfies Record<ListKind, IdPrefix>

export const readListParameters = (list: ListName, query: string): ListParameters => {
  const given = readQuery(query, ['limit', 'starting_after', 'as_of'])
  const limit = given.has('limit') ? readLimit(given.get('limit')) : PAGE_LIMIT_DEFAULT
  const asOf = readMoment(given)
  const startingAfter = list === 'changes' ? readChange(given.get('starting_after')) : readName(list, given)
  if (given.has('starting_after') && startingAfter === undefined) throw new Refusal('invalid_cursor')
  return { limit, startingAfter, asOf }
}

/** Of a single read: which moment it is about. */
export const readAsOf = (query: string): Moment | undefined => readMoment(readQuery(query, ['as_of']))

/** On what is about no record every query parameter is unknown. */
export const refuseParameters = (query: string): void => void readQuery(query, [])

/** An id in a path; what is none names nothing. */
export const readId = (prefix: IdPrefix, value: string | undefined): string => {
  if (!isId(prefix, value)) throw new Refusal('not_found')
  return value
}

const readName = (kind: ListKind, given: Given): RecordName | undefined => {
  const id = given.get('starting_after')
  return isId(idPrefixOf[kind], id) ? { kind, id } : undefined
}

/** A change has its record's id; that of a rep or a period says which version it made. */
const readChange = (text = ''): RecordName | undefined => {
  if (isId('payout', text)) return { kind: 'payouts', id: text }
  if (isId('payroll', text)) return { kind: 'payroll_files', id: text }
  const [, id, ordinal] = /^([^.]*)\.([1-9][0-9]{0,8})$/.exec(text) ?? []
  for (const kind of ['reps', 'periods'] as const) {
    if (isId(idPrefixOf[kind], id)) return { kind, id, ordinal: Number(ordinal) }
  }
  return undefined
}

const readMoment = (given: Given): Moment | undefined => {
  if (!given.has('as_of')) return undefined
  const moment = momentOf(given.get('as_of') ?? '')
  if (moment) return moment
  throw notAMoment()
}

/** What a text says of a moment; undefined where it says none. */
export const momentOf = (text: string): Moment | undefined => {
  const nanoseconds = instantToNanoseconds(text)
  // Records have whole milliseconds.
  if (nanoseconds !== undefined) return { kind: 'instant', milliseconds: Number(nanoseconds / 1_000_000n) }
  const name = readChange(text)
  return name && { kind: 'change', name }
}

/** What is no moment, an unknown change and another organization's are refused with the same words. */
export const notAMoment = (): Refusal =>
  new Refusal('invalid_request', {
    message:
      '`as_of` must be an instant (RFC 3339, as 2026-02-01T08:30:00Z; a plus sign is written %2B) or the id of a change that this key can read, as `/changes` has it.',
  })

type Given = ReadonlyMap<string, string | undefined>

const readLimit = (text: string | undefined): number => {
  if (text === undefined || !/^[1-9][0-9]*$/.test(text)) {
    throw new Refusal('invalid_request', { message: '`limit` must be a whole number of at least 1, in digits.' })
  }
  return Math.min(Number(text), PAGE_LIMIT_MAX)
}

/** Parameters by name. A value that cannot be decoded is undefined: it is for its reader to refuse. */
const readQuery = (query: string, known: readonly string[]): Given => {
  const given = new Map<string, string | undefined>()
  for (const part of query.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = decode(equals === -1 ? part : part.slice(0, equals))
    if (name === undefined || !known.includes(name)) throw unknownParameter(name)
    if (given.has(name)) {
      throw new Refusal('invalid_request', { message: `The parameter \`${name}\` is given more than once.` })
    }
    given.set(name, decode(equals === -1 ? '' : part.slice(equals + 1)))
  }
  return given
}

/**
 * The name is repeated, so that its client finds it: as far as it is made of usual characters, and never so much of it
 * that it could be a whole key.
 */
const unknownParameter = (name = ''): Refusal => {
  const [usual = ''] = /^[A-Za-z0-9_.[\]-]*/.exec(name) ?? []
  const shown = usual.slice(0, PARAMETER_NAME_SHOWN)
  const cut = shown.length < name.length ? '…' : ''
  const message = shown === '' ? 'Unknown query parameter.' : `Unknown query parameter \`${shown}${cut}\`.`
  return new Refusal('invalid_request', { message })
}

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
