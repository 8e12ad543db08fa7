/** Compares the records that were read with the expected ones. Returns every difference: what, expected, got. */
import { isDeepStrictEqual } from 'node:util'
import { type ApiRecord, type Expected, type ExpectedParked, sumByCurrency } from '../data/expected.ts'

export type AnswerDifference = { readonly what: string; readonly expected: string; readonly got: string }

/** The lists of the API. */
export const lists = ['reps', 'periods', 'payouts', 'payroll_files'] as const
export type Lists = Pick<Expected, (typeof lists)[number]>

/** Compares whole lists, their order, and the sums of their amounts. */
export const compareLists = (organization: string, expected: Lists, got: Lists): AnswerDifference[] => [
  ...lists.flatMap(list => compareList(`${organization}, /${list}`, expected[list], got[list])),
  ...compareSums(`${organization}, owed`, 'net_amount', expected.payouts, got.payouts),
  ...compareSums(`${organization}, left through payroll`, 'amount', expected.payroll_files, got.payroll_files),
]

const compareList = (what: string, expected: readonly ApiRecord[], got: readonly ApiRecord[]): AnswerDifference[] => {
  const indexById = new Map(got.map((record, index) => [record.id, index]))
  const wanted = new Set(expected.map(({ id }) => id))
  return [
    ...compareValues(`${what}: records`, expected.length, got.length),
    ...compareValues(`${what}: different ids`, wanted.size, indexById.size),
    ...expected.flatMap(record => compareRecord(what, record, got[indexById.get(record.id) ?? -1])),
    ...got
      .filter(({ id }) => !wanted.has(id))
      .flatMap(({ id }) => compareValues(`${what}, ${id}`, 'not there', 'there')),
    ...compareOrder(what, expected, indexById),
  ]
}

/** Finds the first record that comes before the record that it must follow. */
const compareOrder = (
  what: string,
  expected: readonly ApiRecord[],
  indexById: ReadonlyMap<string, number>,
): AnswerDifference[] => {
  const there = expected.filter(({ id }) => indexById.has(id))
  const indexOf = (record: ApiRecord | undefined) => indexById.get(record?.id ?? '') ?? -1
  const index = there.findIndex((record, nth) => indexOf(record) < indexOf(there[nth - 1]))
  return index < 1
    ? []
    : compareValues(`${what}: order`, `${there[index]?.id} after ${there[index - 1]?.id}`, 'before it')
}

/** Compares field by field, as exact characters. */
export const compareRecord = (what: string, expected: ApiRecord, got: ApiRecord | undefined): AnswerDifference[] => {
  if (got === undefined) return compareValues(`${what}, ${expected.id}`, 'there', 'not there')
  const fields = new Set([...Object.keys(expected), ...Object.keys(got)])
  return [...fields].flatMap(field => compareValues(`${what}, ${expected.id}: ${field}`, expected[field], got[field]))
}

const compareSums = (
  what: string,
  field: 'net_amount' | 'amount',
  expected: readonly ApiRecord[],
  got: readonly ApiRecord[],
): AnswerDifference[] => {
  const [wanted, found] = [sumByCurrency(expected, field), sumByCurrency(got, field)]
  const currencies = new Set([...wanted.keys(), ...found.keys()])
  return [...currencies].flatMap(currency =>
    compareValues(`${what} in ${currency}`, wanted.get(currency), found.get(currency)),
  )
}

/** Compares parked records: code and bytes. No other record may be parked. */
export const compareParked = (
  expected: readonly ExpectedParked[],
  got: readonly ExpectedParked[],
): AnswerDifference[] => {
  const asRecords = (parked: readonly ExpectedParked[]): ApiRecord[] =>
    parked.map(({ event_id, code, value }) => ({ id: event_id, code, value })).sort((a, b) => (a.id < b.id ? -1 : 1))
  return compareList('parked', asRecords(expected), asRecords(got))
}

/** Returns the difference of two values; none if they are deeply equal. */
export const compareValues = (what: string, expected: unknown, got: unknown): AnswerDifference[] =>
  isDeepStrictEqual(expected, got) ? [] : [{ what, expected: shown(expected), got: shown(got) }]

const shown = (value: unknown): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
