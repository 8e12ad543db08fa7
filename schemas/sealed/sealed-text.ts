/**
 * Sealed texts: personal texts that a publisher has encrypted. `sealed:v1:<key id>:<base64url>`: AES-256-GCM with the
 * key of this id; the bytes are the nonce (12), the ciphertext and the tag (16). The additional data bind a text to its
 * organization, record and field, so that nobody can move it to another one.
 */

/** The fields that may be sealed, by the type of the event that has them. */
export const sealedFields = {
  'commission.rep.recorded.v1': ['name', 'email'],
  'commission.payroll.recorded.v1': ['destination.label'],
} as const
export type SealedField = (typeof sealedFields)[keyof typeof sealedFields][number]

export const SEAL_KEY_BYTES = 32
export const SEAL_NONCE_BYTES = 12
export const SEAL_TAG_BYTES = 16

/** Lower case only, so that an id is one file name on every file system. */
export const SEAL_KEY_ID = '[0-9a-z][0-9a-z_-]{0,63}'

/** How the text of a sealed field begins. */
export const SEALED_PREFIX = 'sealed:v1:'

/** A text that begins like this is a sealed text of some version. It is never plain text. */
export const reservedPattern = '^sealed:v[0-9]+:'

/** Base64url without padding, of nonce and tag at least: 28 bytes are 38 characters. */
const QUAD = '(?:[0-9A-Za-z_-]{4})'
const SEALED_BYTES = `(?:${QUAD}{9}[0-9A-Za-z_-]{2,3}|${QUAD}{10,}(?:[0-9A-Za-z_-]{2,3})?)`
export const sealedPattern = `^${SEALED_PREFIX}${SEAL_KEY_ID}:${SEALED_BYTES}$`

const reserved = new RegExp(reservedPattern)
const sealed = new RegExp(sealedPattern)

export const isReserved = (text: string): boolean => reserved.test(text)

/** A sealed text in its parts. */
export type SealedText = { readonly keyId: string; readonly base64url: string }

/** Returns the parts of a sealed text; undefined for any other text. */
export const parseSealedText = (text: string): SealedText | undefined => {
  if (!sealed.test(text)) return undefined
  const [, , keyId = '', base64url = ''] = text.split(':')
  return { keyId, base64url }
}

/** A field of a record of an organization. Of a void, the record is the one that it reverses: its label is copied. */
export type SealedLocation = { readonly org: string; readonly record: string; readonly field: SealedField }

/** The additional data, as UTF-8. Ids and names of fields have no line end, so two fields never have equal data. */
export const additionalData = ({ org, record, field }: SealedLocation): string =>
  `commission sealed v1\n${org}\n${record}\n${field}`

/** The id of the record that the label of a payroll record is sealed for. */
export const sealedRecordOf = ({ id, reverses_id }: { readonly id: string; readonly reverses_id: string | null }) =>
  reverses_id ?? id
