/**
 * Strict JSON: JSON.parse without duplicate keys and without deep nesting.
 *
 * JSON.parse silently keeps the last of two equal keys. Members of the text are therefore counted and compared with
 * those of the parsed value. This finds every duplicate, also one written with escapes, in one pass over the bytes.
 */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const CLOSE_BRACE = 0x7d
const CLOSE_BRACKET = 0x5d

/**
 * Parses UTF-8 bytes.
 * @param depthMax levels of nesting allowed; an object or array at the top is level 1
 * @returns undefined if the text is not JSON, has a duplicate key or is nested too deep
 */
export const parseStrictJson = (bytes: Buffer, depthMax: number): { value: unknown } | undefined => {
  const members = countMembers(bytes, depthMax)
  if (members === undefined) return undefined
  try {
    const value: Json = JSON.parse(bytes.toString('utf8'))
    return countParsedMembers(value) === members ? { value } : undefined
  } catch {
    return undefined
  }
}

/** Counts the members of all objects: colons outside strings. Undefined if nested too deep or a string does not end. */
const countMembers = (bytes: Buffer, depthMax: number): number | undefined => {
  let members = 0
  let depth = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) {
      const end = endOfString(bytes, i + 1)
      if (end === -1) return undefined
      i = end
    } else if (byte === COLON) members++
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (++depth > depthMax) return undefined
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--
  }
  return members
}

/** Returns the index of the quote that ends the string begun before `from`; -1 if there is none. */
const endOfString = (bytes: Buffer, from: number): number => {
  for (let i = from; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) return i
    if (byte === BACKSLASH) i++
  }
  return -1
}

/** A parsed value; undefined only for its type: JSON has none. */
type Json = string | number | boolean | null | undefined | Json[] | { readonly [name: string]: Json }

const countParsedMembers = (value: Json): number => {
  if (typeof value !== 'object' || value === null) return 0
  let members = 0
  if (Array.isArray(value)) {
    for (const item of value) members += countParsedMembers(item)
    return members
  }
  // In parsed JSON, for-in visits own members only.
  for (const name in value) members += 1 + countParsedMembers(value[name])
  return members
}
