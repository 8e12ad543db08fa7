/**
 * The values of the contract: ids, money, currency, instants, dates, time zones and texts. Each is a TypeBox schema:
 * JSON Schema for ajv and the documents, and a TypeScript type. Rules beyond JSON Schema are formats (at the end).
 */
import Type, { type Static, type TString } from 'typebox'
import {
  KEY_NETWORKS_MAX,
  MONEY_FRACTION_DIGITS_MAX,
  MONEY_INTEGER_DIGITS_MAX,
  SEALED_TEXT_LENGTH_MAX,
  TEXT_LENGTH_MAX,
} from './limits.ts'
import { objectOf } from './objects.ts'
import { reservedPattern, sealedPattern } from './sealed/sealed-text.ts'
import { timezones } from './timezones.ts'

export const idPrefixes = ['org', 'rep', 'period', 'payout', 'payroll', 'deal', 'line', 'key'] as const
export type IdPrefix = (typeof idPrefixes)[number]

/** An id: its prefix, an underscore and 1 to 64 of `0-9A-Za-z`. Only the prefix has a meaning. */
export const idPattern = (prefix: IdPrefix): string => `^${prefix}_[0-9A-Za-z]{1,64}$`
export const Id = (prefix: IdPrefix) =>
  Type.String({ pattern: idPattern(prefix), description: `An opaque id: \`${prefix}_\` and 1 to 64 of 0-9A-Za-z.` })

const idGrammars = objectOf(idPrefixes, prefix => new RegExp(idPattern(prefix)))
export const isId = (prefix: IdPrefix, value: unknown): value is string =>
  typeof value === 'string' && idGrammars[prefix].test(value)

/** A text or null. Not a union of schemas: to accept a value by one, ajv first collects the errors of the other. */
export const Nullable = (schema: TString) => Type.Unsafe<string | null>({ ...schema, type: ['string', 'null'] })

/**
 * Refuses minus zero. This is a keyword of its own because a look-ahead in the pattern would not load in Go and Rust:
 * their regular expressions have none.
 */
const notMinusZero = { not: { type: 'string', pattern: '^-0(?:\\.0+)?$' } }

const integerDigits = `(?:0|[1-9][0-9]{0,${MONEY_INTEGER_DIGITS_MAX - 1}})`
/** The form of an amount. It permits minus zero. */
export const moneyPattern = `^-?${integerDigits}(?:\\.[0-9]{1,${MONEY_FRACTION_DIGITS_MAX}})?$`

/** An amount as a decimal string, never minus zero. The API returns the characters that were published. */
export const Money = Type.String({
  pattern: moneyPattern,
  ...notMinusZero,
  description: 'A decimal amount as a string, at the precision it was recorded to. Parse it into a decimal type.',
  examples: ['1234.5000'],
})

/** An exact sum or difference of amounts: it may have more digits than any of them. */
export const Sum = Type.String({
  pattern: '^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$',
  ...notMinusZero,
  description: 'An exact sum of decimal amounts as a string.',
  examples: ['1034.6'],
})

export const Currency = Type.String({ pattern: '^[A-Z]{3}$', description: 'A currency code.', examples: ['EUR'] })

/** RFC 3339 with an upper-case T, Z or ±hh:mm, seconds up to 59 and at most 9 fraction digits. */
export const Instant = Type.String({
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})$',
  description: 'An RFC 3339 instant, returned with the characters it was published with.',
  examples: ['2026-02-01T08:30:00Z'],
})

export const CalendarDate = Type.String({
  format: 'date',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$',
  description: 'A calendar date, YYYY-MM-DD.',
  examples: ['2024-02-29'],
})

export const Timezone = Type.String({
  format: 'timezone',
  description: 'An IANA time zone name (zone or link, case-sensitive).',
  examples: ['Europe/Berlin'],
})

export const Text = Type.String({
  format: 'text',
  maxLength: TEXT_LENGTH_MAX,
  description: `Up to ${TEXT_LENGTH_MAX} code points of well-formed Unicode; may be empty.`,
})

/** `if` instead of a union: to accept a value by one schema of a union, ajv first collects the errors of the other. */
const sealable = {
  format: 'text',
  maxLength: SEALED_TEXT_LENGTH_MAX,
  // biome-ignore-start lint/suspicious/noThenProperty: keywords of JSON Schema
  if: { type: 'string', pattern: reservedPattern },
  then: { type: 'string', pattern: sealedPattern },
  else: { maxLength: TEXT_LENGTH_MAX },
  // biome-ignore-end lint/suspicious/noThenProperty: keywords of JSON Schema
  description: [
    'A personal text, plain or sealed.',
    `Plain: up to ${TEXT_LENGTH_MAX} code points of well-formed Unicode, may be empty,`,
    'and does not begin like a sealed text.',
    `Sealed: \`sealed:v1:<key id>:<base64url>\`, up to ${SEALED_TEXT_LENGTH_MAX} characters.`,
  ].join(' '),
}

/** A text that may be sealed. */
export const PersonalText = Type.Unsafe<string>({ type: 'string', ...sealable })
export const NullablePersonalText = Type.Unsafe<string | null>({ type: ['string', 'null'], ...sealable })

export type Money = Static<typeof Money>

/** The parts of the API that a key may read. `read` stands for all of them. */
export const KeyPermission = Type.Union([
  Type.Literal('read'),
  Type.Literal('reps:read'),
  Type.Literal('periods:read'),
  Type.Literal('payouts:read'),
  Type.Literal('statements:read'),
  Type.Literal('payroll:read'),
  Type.Literal('totals:read'),
  Type.Literal('changes:read'),
])
export type KeyPermission = Static<typeof KeyPermission>
export const keyPermissions: readonly KeyPermission[] = KeyPermission.anyOf.map(literal => literal.const)

const permissionNames: ReadonlySet<unknown> = new Set(keyPermissions)
export const isKeyPermission = (value: unknown): value is KeyPermission => permissionNames.has(value)

const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const ipv4Network = `${octet}(?:\\.${octet}){3}/(?:3[0-2]|[12]?[0-9])`
const group = '[0-9A-Fa-f]{1,4}'
/** Eight groups, or `::` in place of one or more of them. */
const ipv6Address = [
  `(?:${group}:){7}${group}`,
  ...[1, 2, 3, 4, 5, 6].map(before => `(?:${group}:){1,${before}}(?::${group}){1,${7 - before}}`),
  `(?:${group}:){1,7}:`,
  `:(?::${group}){1,7}`,
  '::',
].join('|')
const ipv6Network = `(?:${ipv6Address})/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])`
/** A network in CIDR notation. An address has its length too: `203.0.113.7/32`. */
export const networkPattern = `^(?:${ipv4Network}|${ipv6Network})$`

const networkGrammar = new RegExp(networkPattern)
export const isNetwork = (value: unknown): value is string => typeof value === 'string' && networkGrammar.test(value)
export const isIPv6Network = (network: string): boolean => network.includes(':')

/** Networks of clients; null for none. */
export const NullableNetworks = Type.Unsafe<string[] | null>({
  type: ['array', 'null'],
  items: Type.String({
    pattern: networkPattern,
    description: 'A network of IPv4 or IPv6 addresses in CIDR notation.',
    examples: ['203.0.113.0/24', '2001:db8::/32'],
  }),
  minItems: 1,
  maxItems: KEY_NETWORKS_MAX,
})

const daysOfMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Whether `YYYY-MM-DD` is a day of the Gregorian calendar. */
export const isCalendarDate = (text: string): boolean => {
  const fields = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  if (!fields) return false
  const [year, month, day] = [Number(fields[1]), Number(fields[2]), Number(fields[3])]
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  const days = month === 2 && leap ? 29 : daysOfMonth[month - 1]
  return days !== undefined && day >= 1 && day <= days
}

const instantFields = /^(\d{4}-\d{2}-\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:Z|([+-])(\d{2}):(\d{2}))$/

/**
 * Returns the exact nanoseconds since 1970 of an RFC 3339 instant; undefined if the text is none. Date alone drops
 * digits below a millisecond and accepts February 30th.
 */
export const instantToNanoseconds = (text: string): bigint | undefined => {
  const fields = fieldsOfInstant(text)
  if (!fields) return undefined
  const [, date, hour, minute, second, fraction = '', sign, offsetHour = '00', offsetMinute = '00'] = fields
  const milliseconds = Date.parse(`${date}T${hour}:${minute}:${second}Z`)
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * 60_000 * (sign === '-' ? -1 : 1)
  return BigInt(milliseconds - offset) * 1_000_000n + BigInt(fraction.padEnd(9, '0'))
}

/** The last millisecond that RFC 3339 can express. A publisher's clock may be beyond it. */
const INSTANT_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Returns milliseconds since 1970 as an instant in UTC. */
export const instantOf = (milliseconds: number): string => new Date(Math.min(milliseconds, INSTANT_MAX)).toISOString()

const fieldsOfInstant = (text: string): RegExpExecArray | undefined => {
  const fields = instantFields.exec(text)
  if (!fields) return undefined
  const [, date = '', hour, minute, second, , , offsetHour = '00', offsetMinute = '00'] = fields
  if (!isCalendarDate(date) || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  return Number(offsetHour) > 23 || Number(offsetMinute) > 59 ? undefined : fields
}

const isText = (text: string): boolean => text.isWellFormed()

/** The formats that the schemas name, for ajv. */
export const formats = {
  'date-time': (text: string): boolean => fieldsOfInstant(text) !== undefined,
  date: isCalendarDate,
  timezone: (text: string): boolean => timezones.has(text),
  text: isText,
}
