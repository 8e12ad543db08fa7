/** The text of an API key, which a client sends. It is shown once and stored nowhere. */
import { createHash, randomBytes } from 'node:crypto'
import { BASE62, KEY_PREFIX, KEY_SECRET_LENGTH, withChecksum } from '../../schemas/key-text.ts'

/** Encodes 32 random bytes in 43 characters, one text for each value, and appends a checksum. */
export const newKeyText = (bytes: Buffer = randomBytes(32)): string =>
  withChecksum(`${KEY_PREFIX}${base62(bytes, KEY_SECRET_LENGTH)}`)

/** Returns a new, unique key id. Ids are not secret. */
export const newKeyId = (): string => `key_${base62(randomBytes(12), 17)}`

export const publishedOf = (text: string): { readonly secret_sha256: string; readonly last4: string } => ({
  secret_sha256: createHash('sha256').update(text).digest('hex'),
  last4: text.slice(-4),
})

/** The lowest `digits` base-62 digits of the bytes as a number, highest digit first. */
const base62 = (bytes: Buffer, digits: number): string => {
  let rest = BigInt(`0x${bytes.toString('hex')}`)
  let text = ''
  for (let digit = 0; digit < digits; digit++) {
    text = `${BASE62[Number(rest % 62n)]}${text}`
    rest /= 62n
  }
  return text
}
