/** Turns a stored parked record back into the record that Kafka delivered. */
import type { ParkedDocument } from '../../../schemas/stored/documents.ts'
import type { RawRecord } from '../../ledger/index.ts'
import { encodeHeaders } from './encoded-headers.ts'

/** A record that was too large to be kept has neither key nor value. */
export const toRawRecord = ({ body, offset, at }: Pick<ParkedDocument, 'body' | 'offset' | 'at'>): RawRecord => {
  const bytes = (base64: string | null): Buffer | null => (base64 === null ? null : Buffer.from(base64, 'base64'))
  const headers = encodeHeaders(
    body.headers.map(([name, value, rawName]) => {
      const header = [name, bytes(value)] as const
      return rawName === undefined ? header : [...header, Buffer.from(rawName, 'base64')]
    }),
  )
  return { offset, timestamp: at, key: bytes(body.key), headers, value: bytes(body.value) }
}

/** The record of a parked document; undefined if it was too large to be kept. */
export const keptRecord = (document: Pick<ParkedDocument, 'body' | 'offset' | 'at'>): RawRecord | undefined =>
  document.body.left_out === undefined ? toRawRecord(document) : undefined
