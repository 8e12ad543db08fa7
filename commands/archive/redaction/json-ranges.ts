/**
 * Finds values in the text of JSON, so that one value can be replaced and all other characters stay. The text must be
 * valid JSON without duplicate keys.
 */
export type Range = { readonly start: number; readonly end: number }

/** Returns where the value at a path of member names is; undefined if there is none. */
export const rangeOf = (json: string, path: readonly string[]): Range | undefined => {
  let start = skipSpace(json, 0)
  for (const name of path) {
    const found = startOfMember(json, start, name)
    if (found === undefined) return undefined
    start = found
  }
  return { start, end: endOfValue(json, start) }
}

/** Returns the text with other values at some ranges. */
export const replaceRanges = (json: string, replaced: readonly (Range & { readonly by: string })[]): string => {
  let text = json
  // From the end, so that the ranges before stay where they are.
  for (const { start, end, by } of replaced.toSorted((a, b) => b.start - a.start)) {
    text = text.slice(0, start) + by + text.slice(end)
  }
  return text
}

const startOfMember = (json: string, object: number, name: string): number | undefined => {
  if (json[object] !== '{') return undefined
  for (let at = skipSpace(json, object + 1); json[at] === '"'; ) {
    const end = endOfString(json, at)
    const start = skipSpace(json, skipSpace(json, end) + 1)
    if (JSON.parse(json.slice(at, end)) === name) return start
    const next = skipSpace(json, endOfValue(json, start))
    at = skipSpace(json, next + 1)
  }
  return undefined
}

const matchEnd = (pattern: RegExp, json: string, from: number): number => {
  pattern.lastIndex = from
  pattern.test(json)
  return pattern.lastIndex
}

const space = /[ \t\n\r]*/y
const literal = /[^ \t\n\r,\]}]*/y
const skipSpace = (json: string, from: number): number => matchEnd(space, json, from)
const endOfString = (json: string, from: number): number => {
  let at = from + 1
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at + 1
}

const endOfValue = (json: string, from: number): number => {
  if (json[from] === '"') return endOfString(json, from)
  if (json[from] !== '{' && json[from] !== '[') return matchEnd(literal, json, from)
  let depth = 0
  for (let at = from; ; ) {
    const character = json[at]
    if (character === undefined) throw new Error('the text is no JSON')
    if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    at = character === '"' ? endOfString(json, at) : at + 1
    if (depth === 0) return at
  }
}
