/**
 * The form of the API keys that `keys` makes: `ck_`, 43 random characters, `_`, 6 characters of checksum. The
 * API refuses a key with a wrong checksum without a lookup: it was never made. Keys without a checksum (`ck_` and 43
 * characters of base62, no second underscore) stay valid. Keys of any other form are looked up unchecked.
 */

export const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
export const KEY_PREFIX = 'ck_'
/** Base62 digits of 32 random bytes, and of a CRC-32. */
export const KEY_SECRET_LENGTH = 43
const CHECKSUM_LENGTH = 6

const checked = new RegExp(`^(${KEY_PREFIX}[0-9A-Za-z]{${KEY_SECRET_LENGTH}})_([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)

/** Returns the whole text of a key: `ck_` and the secret, with the checksum of both at the end. */
export const withChecksum = (text: string): string => `${text}_${checksumOf(text)}`

/** Whether the text has the form with a checksum, but a wrong one. Such a text is no key. */
export const hasWrongChecksum = (text: string): boolean => {
  const [, before, checksum] = checked.exec(text) ?? []
  return before !== undefined && checksum !== checksumOf(before)
}

const checksumOf = (text: string): string => {
  let rest = crc32(text)
  let digits = ''
  for (let index = 0; index < CHECKSUM_LENGTH; index++) {
    digits = `${BASE62[rest % 62]}${digits}`
    rest = Math.floor(rest / 62)
  }
  return digits
}

/** CRC-32 of ASCII text, as in zip and Ethernet. It detects mistyped and made-up keys; it protects no secret. */
const crc32 = (text: string): number => {
  let crc = 0xffffffff
  for (let index = 0; index < text.length; index++) {
    crc ^= text.charCodeAt(index)
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}
