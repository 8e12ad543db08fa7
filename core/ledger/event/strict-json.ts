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

/** Says why `parseStrictJson` refuses these bytes: a position or a count, nothing of the content. */
export const whyNotStrictJson = (bytes: Buffer, depthMax: number): string => {
  if (bytes.length === 0) return 'a value of no bytes'
  if (depthOf(bytes) > depthMax) return `more than ${depthMax} levels of nesting`
  const text = bytes.toString('utf8')
  const end = failureOf(text)
  if (end === undefined) return 'an object that has a key twice'
  if (end === text.length) return `no JSON: it ends too early, after ${end} characters`
  return `no JSON: wrong at character ${end + 1}`
}

/** Returns how many characters of the text JSON can begin with; undefined if the whole text is JSON. */
const failureOf = (text: string): number | undefined => {
  if (parses(text)) return undefined
  // A parser that fails in the middle of a text also fails there if more follows.
  let [good, bad] = [0, text.length + 1]
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    if (endsEarly(text.slice(0, middle))) good = middle
    else bad = middle
  }
  return good
}

const parses = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Whether the text is JSON, or can become JSON if more follows. */
const endsEarly = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    return message === 'Unexpected end of JSON input' || Number(POSITION.exec(message)?.[1]) === text.length
  }
}

/** The position in the messages of V8, except in those that quote the text. */
const POSITION = /^[^"]* at position ([0-9]+)(?: \(line [0-9]+ column [0-9]+\))?$/

/** Returns the levels of nesting, up to a string that does not end. */
const depthOf = (bytes: Buffer): number => {
  let depth = 0
  let deepest = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) {
      const end = endOfString(bytes, i + 1)
      if (end === -1) break
      i = end
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) deepest = Math.max(deepest, ++depth)
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--
  }
  return deepest
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
