/**
 * In: the query of a request as it came, and the id in its path. Out: the parameters of a list; a well-formed id.
 * Promises: what is unknown, repeated or not a value is refused, never ignored: a mistyped `starting_after` must not start over.
 */
import type { ListKind } from '../schemas/documents.ts'
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from '../schemas/limits.ts'
import { type IdPrefix, isId } from '../schemas/values.ts'
import { Refusal } from './failures.ts'

export type ListParameters = { readonly limit: number; readonly startingAfter: string | undefined }

/** The prefix of the ids of each list. */
export const idPrefixOf = {
  reps: 'rep',
  periods: 'period',
  payouts: 'payout',
  payroll_files: 'payroll',
} as const satisfies Record<ListKind, IdPrefix>

export const readListParameters = (kind: ListKind, query: string): ListParameters => {
  const given = readQuery(query, ['limit', 'starting_after'])
  const limit = given.has('limit') ? readLimit(given.get('limit')) : PAGE_LIMIT_DEFAULT
  const startingAfter = given.get('starting_after')
  if (given.has('starting_after') && !isId(idPrefixOf[kind], startingAfter)) throw new Refusal('invalid_cursor')
  return { limit, startingAfter }
}

/** On everything but lists every query parameter is unknown. */
export const refuseParameters = (query: string): void => void readQuery(query, [])

/** An id in a path; what is none names nothing. */
export const readId = (prefix: IdPrefix, value: string | undefined): string => {
  if (!isId(prefix, value)) throw new Refusal('not_found')
  return value
}

const readLimit = (text: string | undefined): number => {
  if (text === undefined || !/^[1-9][0-9]*$/.test(text)) {
    throw new Refusal('invalid_request', { message: '`limit` must be a whole number of at least 1, in digits.' })
  }
  return Math.min(Number(text), PAGE_LIMIT_MAX)
}

/** Parameters by name. A value that cannot be decoded is undefined: it is for its reader to refuse. */
const readQuery = (query: string, known: readonly string[]): Map<string, string | undefined> => {
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

/** Only a name that could be a mistyped one of ours is repeated in the message: nothing else of a request ever is. */
const unknownParameter = (name: string | undefined): Refusal =>
  new Refusal('invalid_request', {
    message:
      name !== undefined && /^[a-z_]{1,32}$/.test(name)
        ? `The parameter \`${name}\` is not known here.`
        : 'A query parameter is not known here.',
  })

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
