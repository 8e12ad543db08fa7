/**
 * The form of the API keys that `npm run keys` makes: `ck_`, 43 characters of chance, `_`, 6 characters of checksum.
 * The command writes it and the API reads it: a key whose checksum is wrong was never made, and needs no look-up.
 *
 * Older keys have no checksum and stay good. They are told apart by the second underscore: the older command wrote none
 * behind `ck_` (`ck_` and 43 characters of base62). A key of any other form is looked up as it is.
 */

export const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
export const KEY_PREFIX = 'ck_'
/** Base62 digits of 32 random bytes, and of a CRC-32. */
export const KEY_SECRET_LENGTH = 43
const CHECKSUM_LENGTH = 6

const checked = new RegExp(`^(${KEY_PREFIX}[0-9A-Za-z]{${KEY_SECRET_LENGTH}})_([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)

/** The whole text of a key: `ck_` and the secret, with the checksum of both behind them. */
export const withChecksum = (text: string): string => `${text}_${checksumOf(text)}`

/** Whether the text has the form with a checksum, and another checksum than its own. Such a text is no key. */
export const hasWrongChecksum = (text: string): boolean => {
  const [, before, checksum] = checked.exec(text) ?? []
  return before !== undefined && checksum !== checksumOf(before)
}

const checksumOf = (text: string): string => {
  let rest = crc32(text)
  let digits = ''
  for (let place = 0; place < CHECKSUM_LENGTH; place++) {
    digits = `${BASE62[rest % 62]}${digits}`
    rest = Math.floor(rest / 62)
  }
  return digits
}

/** The CRC-32 of zip and Ethernet, of ASCII text. It finds mistyped and made-up keys; it keeps no secret. */
const crc32 = (text: string): number => {
  let crc = 0xffffffff
  for (let place = 0; place < text.length; place++) {
    crc ^= text.charCodeAt(place)
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}
