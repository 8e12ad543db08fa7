/**
 * Strict JSON: what JSON.parse accepts, less duplicate keys and deep nesting.
 *
 * JSON.parse silently keeps the last of two equal keys. Comparing the number of members in the text with the number in
 * the parsed value finds every duplicate, also one that is written with escapes, for the price of one pass over the bytes.
 */

const QUOTE = 0x22
const PLUS = 0x2b
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const UPPER_E = 0x45
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const LOWER_E = 0x65
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
/** Space, tab and ends of lines are not above it; every other byte of JSON is. */
const SPACE = 0x20

/** Whole numbers of up to so many digits are written as they were read. */
const WHOLE_DIGITS = 15

export type Parsed = {
  readonly value: unknown
  /** The text itself, where JSON.stringify makes the very same of the value: nothing else is known of texts without. */
  readonly text: string | undefined
}

/**
 * The value that UTF-8 bytes mean.
 * @param depthMax levels of nesting allowed; an object or array at the top is level 1
 * @returns undefined when the text is not JSON, has a duplicate key or is nested too deep
 */
export const parseStrictJson = (bytes: Buffer, depthMax: number): Parsed | undefined => {
  const scanned = scan(bytes, depthMax)
  if (scanned === undefined) return undefined
  try {
    const text = bytes.toString('utf8')
    const value: unknown = JSON.parse(text)
    if (countParsedMembers(value) !== scanned.members) return undefined
    return { value, text: scanned.isPlain ? text : undefined }
  } catch {
    return undefined
  }
}

type Scanned = {
  /** Members of all objects in the text: the colons outside strings. */
  readonly members: number
  /** No space between, nothing escaped, no number but short whole ones, and no key that is moved to the front for being a number. */
  readonly isPlain: boolean
}

/** Undefined when nested too deep or a string never ends. */
const scan = (bytes: Buffer, depthMax: number): Scanned | undefined => {
  let isPlain = !bytes.includes(BACKSLASH)
  let members = 0
  let depth = 0
  let digits = 0
  let string = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0
    if (isDigit(byte)) {
      if (++digits > WHOLE_DIGITS) isPlain = false
      continue
    }
    if (byte === QUOTE) {
      string = i + 1
      i = endOfString(bytes, string)
      if (i === -1) return undefined
    } else if (byte === COLON) {
      members++
      if (isDigit(bytes[string])) isPlain = false
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (++depth > depthMax) return undefined
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--
    else if (byte <= SPACE || byte === MINUS || byte === PLUS || byte === POINT || byte === UPPER_E) isPlain = false
    else if (byte === LOWER_E && digits > 0) isPlain = false
    digits = 0
  }
  return { members, isPlain }
}

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= ZERO && byte <= NINE

/** Where the quote stands that ends the string begun before `from`; -1 when there is none. */
const endOfString = (bytes: Buffer, from: number): number => {
  for (let i = from; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) return i
    if (byte === BACKSLASH) i++
  }
  return -1
}

const countParsedMembers = (value: unknown): number => {
  if (typeof value !== 'object' || value === null) return 0
  let members = 0
  if (Array.isArray(value)) {
    for (const item of value) members += countParsedMembers(item)
    return members
  }
  // Parsed JSON has no members but its own.
  for (const name in value) members += 1 + countParsedMembers((value as Record<string, unknown>)[name])
  return members
}
