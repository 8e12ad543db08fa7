/** The text of an API key: what a client sends, shown once and stored nowhere. */
import { createHash, randomBytes } from 'node:crypto'
import { BASE62, KEY_PREFIX, KEY_SECRET_LENGTH, withChecksum } from '../../schemas/key-text.ts'

/** 32 random bytes as 43 characters, so that each text is one number and each number one text; and a checksum. */
export const newKeyText = (bytes: Buffer = randomBytes(32)): string =>
  withChecksum(`${KEY_PREFIX}${base62(bytes, KEY_SECRET_LENGTH)}`)

/** An id of a key: not secret, and never the same twice. */
export const newKeyId = (): string => `key_${base62(randomBytes(12), 17)}`

/** What is published of a key in place of its text. */
export const publishedOf = (text: string): { readonly secret_sha256: string; readonly last4: string } => ({
  secret_sha256: createHash('sha256').update(text).digest('hex'),
  last4: text.slice(-4),
})

/** So many digits of the number that the bytes are, the first being the highest. */
const base62 = (bytes: Buffer, digits: number): string => {
  let rest = BigInt(`0x${bytes.toString('hex')}`)
  let text = ''
  for (let place = 0; place < digits; place++) {
    text = `${BASE62[Number(rest % 62n)]}${text}`
    rest /= 62n
  }
  return text
}
