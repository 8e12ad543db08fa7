/** Checks of the values in section 1 of the contract. Sums are exact: they use integers. */
import { timezones } from '../../schemas/timezones.ts'
import type { Json } from './model-json.ts'

export type Check = (json: Json | undefined) => boolean

export const isId =
  (prefix: string): Check =>
  json => {
    if (typeof json !== 'string' || !json.startsWith(`${prefix}_`)) return false
    const own = json.slice(prefix.length + 1)
    return own.length >= 1 && own.length <= 64 && [...own].every(isAlphanumeric)
  }

const isAlphanumeric = (character: string): boolean =>
  (character >= '0' && character <= '9') ||
  (character >= 'A' && character <= 'Z') ||
  (character >= 'a' && character <= 'z')

export const isMoney: Check = json => {
  if (typeof json !== 'string' || !/^-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,40})?$/.test(json)) return false
  return !(json.startsWith('-') && unscaled(json) === 0n)
}

/** Decimal places of every amount as an integer. */
const SCALE = 40

const unscaled = (money: string): bigint => {
  const [whole = '', fraction = ''] = money.replace('-', '').split('.')
  const digits = BigInt(whole + fraction.padEnd(SCALE, '0'))
  return money.startsWith('-') ? -digits : digits
}

export const sumsTo = (amounts: readonly string[], total: string): boolean =>
  amounts.reduce((sum, amount) => sum + unscaled(amount), 0n) === unscaled(total)

export const isCurrency: Check = json => typeof json === 'string' && /^[A-Z]{3}$/.test(json)
export const isTimezone: Check = json => typeof json === 'string' && timezones.has(json)
export const isText: Check = json => typeof json === 'string' && json.isWellFormed() && [...json].length <= 1_000
/** Plain, or sealed: base64url of at least 28 bytes. A text that begins like a sealed one must be one. */
export const isPersonalText: Check = json => {
  if (typeof json !== 'string' || !/^sealed:v[0-9]+:/.test(json)) return isText(json)
  const [, base64url = ''] = /^sealed:v1:[0-9a-z][0-9a-z_-]{0,63}:([0-9A-Za-z_-]*)$/.exec(json.slice(0, 8_001)) ?? []
  return json.length <= 8_000 && !json.endsWith('\n') && base64url.length >= 38 && base64url.length % 4 !== 1
}
export const isSha256: Check = json => typeof json === 'string' && /^[0-9a-f]{64}$/.test(json)
export const isLast4: Check = json => typeof json === 'string' && /^[0-9A-Za-z_-]{4}$/.test(json)

export const isOneOf =
  (...values: readonly Json[]): Check =>
  json =>
    json !== undefined && values.includes(json)

export const isNullOr =
  (check: Check): Check =>
  json =>
    json === null || check(json)

export const isDate: Check = json => {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(typeof json === 'string' ? json : '') ?? []
  return year !== undefined && isDay(Number(year), Number(month), Number(day))
}

const isDay = (year: number, month: number, day: number): boolean => {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0
  return day >= 1 && day <= days
}

export const isInstant: Check = json => typeof json === 'string' && nanoseconds(json) !== undefined

/** Returns an instant in nanoseconds; undefined for an invalid text. */
export const nanoseconds = (text: string): bigint | undefined => {
  const parts = /^(.{10})T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|([+-])(\d\d):(\d\d))$/.exec(text)
  if (!parts) return undefined
  const [, date = '', hour, minute, second, fraction = '', , sign, offsetHour = '00', offsetMinute = '00'] = parts
  if (!isDate(date) || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined
  const days = daysBefore(Number(date.slice(0, 4)), Number(date.slice(5, 7))) + Number(date.slice(8))
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? 60 : -60)
  const seconds = days * 86_400 + Number(hour) * 3_600 + Number(minute) * 60 + Number(second) + offset
  return BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'))
}

const daysBefore = (year: number, month: number): number => {
  const past = year - 1
  let days = year * 365 + (year > 0 ? Math.floor(past / 4) - Math.floor(past / 100) + Math.floor(past / 400) + 1 : 0)
  for (let before = 1; before < month; before++) {
    for (let day = 28; isDay(year, before, day); day++) if (!isDay(year, before, day + 1)) days += day
  }
  return days
}
