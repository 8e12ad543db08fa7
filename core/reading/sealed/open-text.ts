/**
 * In: a sealed text, its key, and the field that it was found in. Out: its plain text; undefined if it does not open
 *   there, or is no text that the field may have.
 * Promises: a text that was sealed for another organization, record or field does not open.
 */
import { isUtf8 } from 'node:buffer'
import { createDecipheriv } from 'node:crypto'
import { TEXT_LENGTH_MAX } from '../../../schemas/limits.ts'
import {
  additionalData,
  isReserved,
  SEAL_NONCE_BYTES,
  SEAL_TAG_BYTES,
  type SealedLocation,
  type SealedText,
} from '../../../schemas/sealed/sealed-text.ts'

export const openText = ({ base64url }: SealedText, key: Buffer, location: SealedLocation): string | undefined => {
  const bytes = decrypt(Buffer.from(base64url, 'base64url'), key, Buffer.from(additionalData(location)))
  if (bytes === undefined || !isUtf8(bytes)) return undefined
  const text = bytes.toString('utf8')
  return isReserved(text) || [...text].length > TEXT_LENGTH_MAX ? undefined : text
}

const decrypt = (sealed: Buffer, key: Buffer, additional: Buffer): Buffer | undefined => {
  const tagFrom = sealed.length - SEAL_TAG_BYTES
  const nonce = sealed.subarray(0, SEAL_NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: SEAL_TAG_BYTES })
  decipher.setAAD(additional)
  decipher.setAuthTag(sealed.subarray(tagFrom))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(SEAL_NONCE_BYTES, tagFrom)), decipher.final()])
  } catch {
    // The tag does not fit: another key, other additional data, or other bytes.
    return undefined
  }
}
