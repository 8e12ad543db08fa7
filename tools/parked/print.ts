/** Output of parked records: text for a terminal, without control characters, or JSON with bytes in base64. */
import { isUtf8 } from 'node:buffer'
import { SHOWN_BYTES, SHOWN_CHARACTERS } from '../limits.ts'
import { aligned, fitColumn, printable, timeOf } from '../terminal.ts'
import { type Details, type Parked, type ParkedFields, positionOf } from './find.ts'
import type { Result } from './publish-again.ts'

/** A line for each record, below a line of headings. The column of details is there if any record has one. */
export const tableOf = (records: readonly ParkedFields[], details: Details): string => {
  const detailColumn = (text: string | undefined): string[] => (details.size > 0 ? [text ?? '-'] : [])
  const rows = [
    ['POSITION', 'AT', 'CODE', 'ORGANIZATION', 'TYPE', 'EVENT', ...detailColumn('DETAIL')],
    ...records.map(record => [
      positionOf(record),
      timeOf(record.at),
      record.code,
      record.org_id ?? '-',
      fitColumn(record.type ?? '-'),
      fitColumn(record.event_id ?? '-'),
      ...detailColumn(details.get(positionOf(record))),
    ]),
  ]
  return aligned(rows)
}

export const countsOf = (counts: readonly (readonly [string, number])[]): string => {
  const total = counts.reduce((sum, [, count]) => sum + count, 0)
  const width = String(total).length
  return [...counts, ['in all', total] as const]
    .map(([code, count]) => `${String(count).padStart(width)}  ${code}`)
    .join('\n')
}

/** The whole record; cuts what is too long for a screen. @param detail why it is parked */
export const parkedText = ({ fields, record, leftOut }: Parked, detail: string | undefined): string => {
  const { key, headers, value } = record
  const rows = [
    ['parked as', fields.code],
    ...(detail === undefined ? [] : [['detail', detail]]),
    ['at', timeOf(fields.at)],
    ['organization', fields.org_id ?? '-'],
    ['type', printable(fields.type ?? '-')],
    ['event', printable(fields.event_id ?? '-')],
    ...(leftOut ? [['too large to be kept', `${leftOut.bytes} bytes, SHA-256 ${leftOut.sha256}; Kafka has it`]] : []),
    ['key', bytesOf(key)],
    ...Array.from(headers, ([name, header, rawName]) => [
      `header ${rawName === undefined ? printable(name) : bytesOf(rawName)}`,
      bytesOf(header),
    ]),
    ['value', value === null ? 'none' : `${value.length} bytes`],
  ]
  const shown = value === null ? [] : [bytesOf(value)]
  return [positionOf(fields), aligned(rows), ...shown].join('\n')
}

/** JSON of a record, without its bytes. @param detail why it is parked */
export const jsonOf = (
  { topic, partition, offset, at, code, org_id, type, event_id }: ParkedFields,
  detail: string | undefined,
) => ({
  position: positionOf({ topic, partition, offset }),
  topic,
  partition,
  offset,
  at: timeOf(at),
  code,
  detail: detail ?? null,
  org_id: org_id ?? null,
  type: type ?? null,
  event_id: event_id ?? null,
})

/** JSON of a record, with its bytes. */
export const wholeJsonOf = (
  { fields, record: { key, headers, value }, leftOut }: Parked,
  detail: string | undefined,
) => ({
  ...jsonOf(fields, detail),
  key: base64(key),
  headers: Array.from(headers, ([name, header, rawName]) => [
    name,
    base64(header),
    ...(rawName ? [base64(rawName)] : []),
  ]),
  value: base64(value),
  left_out: leftOut ?? null,
})

/** JSON of the result of publishing a record again. */
export const resultOf = ({ fields, outcome, reason, published }: Result) => ({
  position: positionOf(fields),
  code: fields.code,
  outcome,
  reason,
  published: published === null ? null : positionOf(published),
})

const base64 = (bytes: Buffer | null): string | null => (bytes === null ? null : bytes.toString('base64'))

/** Text unchanged, other bytes in hex; both cut. */
const bytesOf = (bytes: Buffer | null): string => {
  if (bytes === null) return 'none'
  if (!isUtf8(bytes)) return hexOf(bytes)
  const text = bytes.toString('utf8')
  const shown = printable(text.slice(0, SHOWN_CHARACTERS))
  return text.length <= SHOWN_CHARACTERS ? shown : `${shown}… (${text.length - SHOWN_CHARACTERS} characters more)`
}

const hexOf = (bytes: Buffer): string => {
  const more = bytes.length - SHOWN_BYTES
  const hex = bytes.subarray(0, SHOWN_BYTES).toString('hex')
  return `not UTF-8: ${hex}${more > 0 ? `… (${more} bytes more)` : ''}`
}
