/**
 * The address of a view: the fragment of the page. It says everything that is shown, the moment too, so that it can be
 * sent to a colleague. It never has a key: `takeKey` removes one, and no parameter takes another text than its own.
 */
const views = ['overview', 'payouts', 'payout', 'history', 'compare', 'payroll', 'changes', 'corrections'] as const
/** `unknown` is the view of an address that no view has. */
export type ViewName = (typeof views)[number] | 'unknown'

export type ViewAddress = {
  readonly view: ViewName
  /** Of a payout, or of a payroll record: views of one record have it. */
  readonly id?: string
  readonly rep?: string
  readonly period?: string
  /** Payouts that have a line of this deal. */
  readonly deal?: string
  /** `only`: payouts of which something is open. */
  readonly open?: string
  /** Corrections that were published since: a date, an instant or a change. */
  readonly since?: string
  /** The two payouts that are compared. */
  readonly from?: string
  readonly to?: string
  /** An instant, or the id of a change. Absent: now. */
  readonly asOf?: string
}

const parameters = {
  ...({ rep: 'rep', period: 'period', deal: 'deal', open: 'open' } as const),
  ...({ since: 'since', from: 'from', to: 'to', as_of: 'asOf' } as const),
}
type Field = (typeof parameters)[keyof typeof parameters]

const isId = (kind: string) => {
  const form = new RegExp(`^${kind}_[0-9A-Za-z]{1,64}$`)
  return (text: string): boolean => form.test(text)
}
const isMoment = (text: string): boolean => momentIn(text) !== undefined
/** Whether a text has the form of a field. No address has another text, such as a key that somebody pasted. */
export const isOfField: Readonly<Record<Field, (text: string) => boolean>> = {
  ...{ rep: isId('rep'), period: isId('period'), deal: isId('deal'), from: isId('payout'), to: isId('payout') },
  ...{ open: text => text === 'only', since: isMoment, asOf: isMoment },
}

/** Views of one record: their paths have its id. */
const viewsOfRecords: readonly string[] = ['payout', 'history', 'compare', 'payroll']

/** Returns the path of a fragment, and its parameters. `#key=…` has no path, `#x` has the path `/x`. */
const split = (fragment: string): { readonly path: string; readonly query: URLSearchParams } => {
  const text = fragment.replace(/^#/, '')
  if (/^[^/?]*=[^?]*$/.test(text)) return { path: '/', query: queryOf(text) }
  const [path = '', ...parts] = text.split('?')
  return { path: path.startsWith('/') ? path : `/${path}`, query: queryOf(parts.join('?')) }
}

/** A plus sign is itself, as in an instant that somebody types: `+01:00`. */
const queryOf = (text: string): URLSearchParams => new URLSearchParams(text.replaceAll('+', '%2B'))
/** Each plus sign that `URLSearchParams` writes is a space. */
const textOf = (query: URLSearchParams): string => (query.size === 0 ? '' : `?${String(query).replaceAll('+', '%20')}`)

/**
 * Any fragment is an address. One with a value that is not of its field is unknown: without the value, a view would
 * show something else than the address asks for.
 */
export const readAddress = (fragment: string): ViewAddress => {
  const { path, query } = split(fragment)
  const [, name = '', ...parts] = path.split('/')
  const [id = '', ...others] = parts
  const found = Object.entries(parameters).flatMap(([parameter, field]) => {
    const value = query.get(parameter)
    return value === null || value === '' ? [] : [[field, value] as const]
  })
  const taken = found.filter(([field, value]) => isOfField[field](value))
  const parameterFields = Object.fromEntries(taken)
  const needsId = viewsOfRecords.includes(name)
  const isLonger = (needsId ? others : parts).some(part => part !== '')
  const view = name === '' ? 'overview' : views.find(known => known === name)
  if (view === undefined || isLonger || taken.length < found.length) return { view: 'unknown', ...parameterFields }
  if (needsId && id === '') return { view: 'payouts', ...parameterFields }
  return { view, ...(needsId && { id: decode(id) }), ...parameterFields }
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const fragmentOf = (address: ViewAddress): string => {
  const query = new URLSearchParams()
  for (const [parameter, field] of Object.entries(parameters)) {
    const value = address[field]
    if (value !== undefined && isOfField[field](value)) query.set(parameter, value)
  }
  const path = address.id === undefined ? address.view : `${address.view}/${encodeURIComponent(address.id)}`
  return `#/${path}${textOf(query)}`
}

/**
 * Returns the moment that somebody typed, as the API takes it: a change, or an instant, which may be a date (its begin
 * in UTC) or have the form in which the page shows it. Undefined for another text, such as a key: no address has it.
 */
export const momentIn = (text: string): string | undefined => {
  if (/^(?:(?:payout|payroll)_[0-9A-Za-z]{1,64}|(?:rep|period)_[0-9A-Za-z]{1,64}\.[1-9][0-9]*)$/.test(text)) return text
  const [, date, time = '00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(?: ?(UTC|Z|[+-]\d\d:\d\d))?$/.exec(text) ?? []
  if (date === undefined) return undefined
  const seconds = time.length === 5 ? ':00' : ''
  return `${date}T${time}${seconds}${zone === 'UTC' ? 'Z' : zone}`
}

/**
 * Returns the address of a record, for somebody who has only its id. A version of a rep or period is a change,
 * and its address is as of it. Undefined for another text: no address has it.
 */
export const addressOfId = (text: string): ViewAddress | undefined => {
  const [, id = '', kind, version] =
    /^((rep|period|deal|payout|payroll)_[0-9A-Za-z]{1,64})(\.[1-9][0-9]*)?$/.exec(text) ?? []
  const isVersioned = kind === 'rep' || kind === 'period'
  if (kind === undefined || (version !== undefined && !isVersioned)) return undefined
  const asOf = version === undefined ? {} : { asOf: text }
  if (kind === 'payout' || kind === 'payroll') return { view: kind, id }
  return { view: 'payouts', [kind]: id, ...asOf }
}

/** Whether a text can be a key: a header takes no other characters. */
export const isKeyText = (text: string): boolean => /^[!-~]+$/.test(text)

/** Returns the key of a fragment, and the fragment without it. */
export const takeKey = (fragment: string): { readonly key: string | undefined; readonly rest: string } => {
  const { path, query } = split(fragment)
  const key = query.get('key') ?? undefined
  if (key === undefined) return { key, rest: fragment }
  query.delete('key')
  return { key, rest: `#${path}${textOf(query)}` }
}
