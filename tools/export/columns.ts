/**
 * Types of the columns of Parquet tables. In: the values of a column as the API answers them. Out: a schema element and
 * the values in it. Promises: no value is rounded. A column with a value that its type cannot hold is text instead.
 */
import type { SchemaElement } from 'hyparquet-writer'
import { instantToNanoseconds, isCalendarDate } from '../../schemas/values.ts'
import { isAmount } from '../documents/sums.ts'

export type ColumnKind = 'text' | 'amount' | 'instant' | 'date' | 'number'
export type ColumnValue = string | number | bigint | null

export type Column = {
  readonly name: string
  /** Measures a value. Every value must be measured before `schema` and `cellOf` are used. */
  readonly measure: (text: string) => void
  readonly schema: () => SchemaElement
  readonly cellOf: (text: string) => ColumnValue
  /** Why the column is text; undefined if it has the type of its kind. */
  readonly asText: () => string | undefined
}

/** Most digits of a decimal that DuckDB, Arrow, Spark and others read. */
const DECIMAL_DIGITS_MAX = 38
const DECIMAL_BYTES = 16
/**
 * Decimal places of an amount column, unless an amount has more. Nearly all exports have this type. With the least
 * scale of each export, types would differ: DuckDB would read several exports together as the type of the first, and
 * would round the others. A second column for large amounts would have nulls, and sums of one column would lack them.
 */
const DECIMAL_SCALE = 10
const DAY_MS = 86_400_000
const INT32_MAX = 2 ** 31 - 1

const repetition_type = 'OPTIONAL'
const textOf = (name: string): SchemaElement => ({ name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type })

/**
 * @param former the column in the first part of the same copy. It is text if it cannot have the same type: of two
 *   decimals, DuckDB would take one scale and round; of a decimal and a text it makes texts. Counts are never text: no
 *   reader rounds INT32 or INT64.
 */
export const createColumn = (name: string, kind: ColumnKind, former?: SchemaElement): Column => {
  if (kind === 'text' || former?.type === 'BYTE_ARRAY') return fixed(textOf(name), text => text)
  if (kind === 'number') return whole(name)
  return kind === 'amount' ? decimal(name, former?.scale) : timed(name, kind)
}

/** A type that holds every value of its kind. */
const fixed = (schema: SchemaElement, cellOf: Column['cellOf']): Column => ({
  name: schema.name,
  measure: () => undefined,
  schema: () => schema,
  cellOf,
  asText: () => undefined,
})

/** INT32, or INT64 if a count needs it. */
const whole = (name: string): Column => {
  let type: 'INT32' | 'INT64' = 'INT32'
  return {
    name,
    measure: text => {
      if (Number(text) > INT32_MAX) type = 'INT64'
    },
    schema: () => ({ name, type, repetition_type }),
    cellOf: text => (type === 'INT32' ? Number(text) : BigInt(text)),
    asText: () => undefined,
  }
}

/** DECIMAL with 38 digits, of which 10 or more are decimal places. @param only the scale that it must have */
const decimal = (name: string, only?: number): Column => {
  let [digits, scale, areAmounts] = [0, only ?? DECIMAL_SCALE, true]
  const isSame = (): boolean => only === undefined || scale === only
  const fits = (): boolean => areAmounts && digits + scale <= DECIMAL_DIGITS_MAX && isSame()
  return {
    name,
    measure: text => {
      if (!isAmount(text)) areAmounts = false
      const [integer = '', fraction = ''] = text.replace(/^-/, '').split('.')
      digits = Math.max(digits, integer === '0' ? 0 : integer.length)
      scale = Math.max(scale, fraction.length)
    },
    schema: () => {
      if (!fits()) return textOf(name)
      const logical_type = { type: 'DECIMAL', precision: DECIMAL_DIGITS_MAX, scale } as const
      return {
        name,
        type: 'FIXED_LEN_BYTE_ARRAY',
        type_length: DECIMAL_BYTES,
        converted_type: 'DECIMAL',
        precision: DECIMAL_DIGITS_MAX,
        scale,
        logical_type,
        repetition_type,
      }
    },
    cellOf: text => {
      if (!fits()) return text
      const [integer = '', fraction = ''] = text.split('.')
      return BigInt(integer + fraction.padEnd(scale, '0'))
    },
    asText: () => (fits() ? undefined : `an amount does not fit DECIMAL(${DECIMAL_DIGITS_MAX}, ${only ?? scale})`),
  }
}

/** DATE for calendar dates; TIMESTAMP in microseconds, adjusted to UTC, for instants. */
const timed = (name: string, kind: 'instant' | 'date'): Column => {
  const parse = kind === 'date' ? daysOf : microsecondsOf
  let fits = true
  const typed: SchemaElement =
    kind === 'date'
      ? { name, type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' }, repetition_type }
      : {
          name,
          type: 'INT64',
          converted_type: 'TIMESTAMP_MICROS',
          logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
          repetition_type,
        }
  return {
    name,
    measure: text => {
      fits &&= parse(text) !== undefined
    },
    schema: () => (fits ? typed : textOf(name)),
    cellOf: text => (fits ? (parse(text) ?? null) : text),
    asText: () => (fits ? undefined : 'an instant is finer than a microsecond'),
  }
}

/** Days since 1970. */
const daysOf = (text: string): number | undefined =>
  isCalendarDate(text) ? Date.parse(`${text}T00:00:00Z`) / DAY_MS : undefined

/** Microseconds since 1970; undefined for a finer instant. */
const microsecondsOf = (text: string): bigint | undefined => {
  const nanoseconds = instantToNanoseconds(text)
  return nanoseconds === undefined || nanoseconds % 1_000n !== 0n ? undefined : nanoseconds / 1_000n
}
