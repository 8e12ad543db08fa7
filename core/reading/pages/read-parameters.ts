/**
 * In: the raw query of a request, and the id in its path. Out: the parameters of a list or of a single read; a
 *   well-formed id.
 * Promises: unknown or repeated parameters and invalid values are refused, never ignored: a mistyped `starting_after`
 *   must not start over.
 */

import { IDS_MAX, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, WAIT_SECONDS_MAX } from '../../../schemas/limits.ts'
import {
  type FilterName,
  feedFilters,
  type ListFilter,
  listFilters,
  listTraits,
  totalsFilters,
} from '../../../schemas/lists.ts'
import { type ListKind, listKinds } from '../../../schemas/stored/documents.ts'
import { type IdPrefix, instantToNanoseconds, isId } from '../../../schemas/values.ts'
import { Refusal } from '../../runtime/index.ts'
import { PARAMETER_NAME_SHOWN } from '../limits.ts'

/** A record of a list; with an ordinal, a version of it, which names a change of a rep or a period. */
export type RecordName = { readonly kind: ListKind; readonly id: string; readonly ordinal?: number }
/** Returns the text of a name, as a cursor or a change id. */
export const textOfName = ({ id, ordinal }: RecordName): string => (ordinal === undefined ? id : `${id}.${ordinal}`)

/** A moment of an organization: an instant (milliseconds since 1970), or just after a change. */
export type Moment =
  | { readonly kind: 'instant'; readonly milliseconds: number }
  | { readonly kind: 'change'; readonly name: RecordName }

/** A list of records, or the feed of changes: every record and version, in the order of their events. */
export type ListName = ListKind | 'changes'

export type ListParameters = {
  readonly limit: number
  readonly startingAfter: RecordName | undefined
  readonly asOf: Moment | undefined
  readonly filter?: ListFilter
  /** Of changes: the sequence of the change after which the page begins, instead of its id. 0: from the first one. */
  readonly after?: number
  /** The ids of the records to read, in this order. */
  readonly ids?: readonly string[]
  /** Seconds to wait for a change if there is none. */
  readonly wait?: number
}

/** Returns the parameters of a list. @throws Refusal `invalid_request` or `invalid_cursor` */
export const readListParameters = (list: ListName, query: string): ListParameters => {
  const filters: readonly FilterName[] = list === 'changes' ? feedFilters : listTraits[list].filters
  const more = list === 'changes' ? ['wait', 'after'] : ['ids']
  const given = readQuery(query, [...pageParameters, ...filters, ...more])
  if (list !== 'changes' && given.has('ids')) {
    const ids = idsIn(list, given)
    return { limit: ids.length, startingAfter: undefined, asOf: asOfIn(given), ids }
  }
  return {
    ...(filters.length > 0 && { filter: filterIn(given, filters) }),
    ...(given.has('wait') && { wait: waitIn(given) }),
    ...(given.has('after') && { after: afterIn(given) }),
    // Last, because `invalid_request` comes before `invalid_cursor`.
    ...pageIn(list, given),
  }
}

/** Returns the parameters of a history. @throws as `readListParameters` */
export const readHistoryParameters = (query: string): ListParameters =>
  pageIn('payouts', readQuery(query, pageParameters))

const pageParameters = ['limit', 'starting_after', 'as_of'] as const

const pageIn = (list: ListName, given: Given): ListParameters => {
  const limit = given.has('limit') ? readLimit(given.get('limit')) : PAGE_LIMIT_DEFAULT
  const asOf = asOfIn(given)
  const startingAfter = list === 'changes' ? readChange(given.get('starting_after')) : readName(list, given)
  if (given.has('starting_after') && startingAfter === undefined) throw new Refusal('invalid_cursor')
  return { limit, startingAfter, asOf }
}

const filterIn = <Name extends FilterName>(given: Given, names: readonly Name[]): { [Of in Name]?: string } => {
  const filter: { [Of in Name]?: string } = {}
  for (const name of names) {
    if (!given.has(name)) continue
    const value = given.get(name)
    const { pattern, expected } = listFilters[name]
    if (value === undefined || !new RegExp(pattern).test(value)) {
      throw new Refusal('invalid_request', { message: `\`${name}\` must be ${expected}.` })
    }
    filter[name] = value
  }
  return filter
}

/** Clients in Python that are generated send the default limit with each request of a list. */
const isDefaultLimit = (name: string, given: Given): boolean =>
  name === 'limit' && given.get('limit') === String(PAGE_LIMIT_DEFAULT)

/** Returns the ids of the records to read. Beside them stands only a moment; the default limit is ignored. */
const idsIn = (list: ListKind, given: Given): readonly string[] => {
  const refuse = (message: string) => new Refusal('invalid_request', { message: `\`ids\` ${message}` })
  const other = [...given.keys()].find(name => name !== 'ids' && name !== 'as_of' && !isDefaultLimit(name, given))
  if (other !== undefined) throw refuse(`and \`${other}\` cannot be combined: beside \`ids\` there is only \`as_of\`.`)
  const text = given.get('ids') ?? ''
  const ids = text === '' ? [] : text.split(',')
  if (ids.length === 0 || ids.length > IDS_MAX) {
    throw refuse(`must have 1 to ${IDS_MAX} ids, separated by commas; it has ${ids.length}.`)
  }
  const prefix = listTraits[list].idPrefix
  const wrong = ids.findIndex(id => !isId(prefix, id))
  if (wrong !== -1) {
    const form = `\`${prefix}_\` and 1 to 64 of 0-9A-Za-z`
    throw refuse(
      `must have ids of this list, separated by commas: ${form}. Number ${wrong + 1} of ${ids.length} is none.`,
    )
  }
  const again = ids.findIndex((id, index) => ids.indexOf(id) < index)
  if (again !== -1) {
    const first = ids.indexOf(ids[again] ?? '') + 1
    throw refuse(`must have each id once: number ${again + 1} of ${ids.length} is the same as number ${first}.`)
  }
  return ids
}

const waitIn = (given: Given): number => {
  const text = given.get('wait')
  if (text === undefined || !/^(?:0|[1-9][0-9]*)$/.test(text)) {
    throw new Refusal('invalid_request', { message: '`wait` must be a whole number of seconds, in digits.' })
  }
  if (given.has('as_of')) {
    const message = '`wait` and `as_of` cannot be combined: an earlier moment gets no new changes.'
    throw new Refusal('invalid_request', { message })
  }
  return Math.min(Number(text), WAIT_SECONDS_MAX)
}

const afterIn = (given: Given): number => {
  const text = given.get('after')
  if (text === undefined || !/^(?:0|[1-9][0-9]{0,14})$/.test(text)) {
    throw new Refusal('invalid_request', { message: '`after` must be the `sequence` of a change, in digits, or 0.' })
  }
  const other = ['starting_after', 'wait'].find(name => given.has(name))
  if (other !== undefined) {
    const message = `\`after\` and \`${other}\` cannot be combined: go on with \`starting_after\`.`
    throw new Refusal('invalid_request', { message })
  }
  return Number(text)
}

/** Returns the parameters of a single record. @throws Refusal `invalid_request` */
export const readRecordParameters = (query: string): { asOf: Moment | undefined } => ({
  asOf: asOfIn(readQuery(query, ['as_of'])),
})

/** Returns the parameters of the totals. @throws Refusal `invalid_request` */
export const readTotalsParameters = (query: string): TotalsAsked => {
  const given = readQuery(query, ['as_of', ...totalsFilters])
  const { rep_id, period_id, deal_id, ...others } = filterIn(given, totalsFilters)
  // A filter that totals do not have yet does not compile here. Accepted and ignored, it would give wrong sums.
  return { asOf: asOfIn(given), period: period_id, rep: rep_id, deal: deal_id, ...(others satisfies NoOther) }
}

type NoOther = Readonly<Record<string, never>>

/** Parameters of totals. `period` and `rep`: the id of the only one to add. `deal`: only the lines of this deal. */
export type TotalsAsked = {
  readonly asOf: Moment | undefined
  readonly period?: string | undefined
  readonly rep?: string | undefined
  readonly deal?: string | undefined
}

/** Refuses every query parameter. */
export const refuseParameters = (query: string): void => void readQuery(query, [])

/** Returns an id from a path. @throws Refusal `not_found` if the id is malformed */
export const readId = (prefix: IdPrefix, value: string | undefined): string => {
  if (!isId(prefix, value)) throw new Refusal('not_found')
  return value
}

const readName = (kind: ListKind, given: Given): RecordName | undefined => {
  const id = given.get('starting_after')
  return isId(listTraits[kind].idPrefix, id) ? { kind, id } : undefined
}

/** Returns the record that a change names: by its id, and the version's ordinal for a rep or a period. */
const readChange = (text = ''): RecordName | undefined => {
  const [, ofVersion, ordinal] = /^([^.]*)\.([1-9][0-9]{0,8})$/.exec(text) ?? []
  for (const kind of listKinds) {
    const { idPrefix, hasVersions } = listTraits[kind]
    const id = hasVersions ? ofVersion : text
    if (isId(idPrefix, id)) return hasVersions ? { kind, id, ordinal: Number(ordinal) } : { kind, id }
  }
  return undefined
}

const asOfIn = (given: Given): Moment | undefined => {
  if (!given.has('as_of')) return undefined
  const asOf = momentOf(given.get('as_of') ?? '')
  if (asOf) return asOf
  throw invalidAsOf()
}

/** Returns the moment that a text names; undefined if it names none. */
export const momentOf = (text: string): Moment | undefined => {
  const nanoseconds = instantToNanoseconds(text)
  // Times of records are whole milliseconds.
  if (nanoseconds !== undefined) return { kind: 'instant', milliseconds: Number(nanoseconds / 1_000_000n) }
  const name = readChange(text)
  return name && { kind: 'change', name }
}

/** The same message refuses a malformed `as_of`, an unknown change and another organization's change. */
export const invalidAsOf = (): Refusal =>
  new Refusal('invalid_request', {
    message: [
      '`as_of` must be an instant (RFC 3339, for example 2026-02-01T08:30:00Z;',
      'write a plus sign as %2B) or the id of a change in `/changes` that this key can read.',
    ].join(' '),
  })

type Given = ReadonlyMap<string, string | undefined>

const readLimit = (text: string | undefined): number => {
  if (text === undefined || !/^[1-9][0-9]*$/.test(text)) {
    throw new Refusal('invalid_request', { message: '`limit` must be a whole number of at least 1, in digits.' })
  }
  return Math.min(Number(text), PAGE_LIMIT_MAX)
}

/** Returns the parameters by name. A value that cannot be decoded is undefined, and its reader refuses it. */
const readQuery = (query: string, known: readonly string[]): Given => {
  const given = new Map<string, string | undefined>()
  for (const { name, value } of parametersIn(query)) {
    if (name === undefined || !known.includes(name)) throw unknownParameter(name)
    if (given.has(name)) {
      throw new Refusal('invalid_request', { message: `The parameter \`${name}\` is given more than once.` })
    }
    given.set(name, value)
  }
  return given
}

/** Whether a query has a parameter, with whatever value. */
export const hasParameter = (query: string, name: string): boolean =>
  parametersIn(query).some(parameter => parameter.name === name)

/** A name or a value that cannot be decoded is undefined. */
const parametersIn = (query: string) =>
  query.split('&').flatMap(part => {
    if (part === '') return []
    const equals = part.indexOf('=')
    const [name, value] = equals === -1 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)]
    return [{ name: decode(name), value: decode(value) }]
  })

/** Shows the client the first letters, digits and `_.[]-` of the name, and fewer characters than a key has. */
const unknownParameter = (name = ''): Refusal => {
  const [usual = ''] = /^[A-Za-z0-9_.[\]-]*/.exec(name) ?? []
  const shown = usual.slice(0, PARAMETER_NAME_SHOWN)
  const ellipsis = shown.length < name.length ? '…' : ''
  const message = shown === '' ? 'Unknown query parameter.' : `Unknown query parameter \`${shown}${ellipsis}\`.`
  return new Refusal('invalid_request', { message })
}

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
