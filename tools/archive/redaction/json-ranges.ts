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

/** A member of an object: from its name to the end of its value. */
export type Member = Range & { readonly name: string; readonly value: Range }

/** Yields the members of the object that begins at an index; nothing if no object begins there. */
export const membersAt = function* (json: string, object: number): Generator<Member> {
  if (json[object] !== '{') return
  for (let at = skipSpace(json, object + 1); json[at] === '"'; ) {
    const endOfName = endOfString(json, at)
    const start = skipSpace(json, skipSpace(json, endOfName) + 1)
    const end = endOfValue(json, start)
    yield { start: at, end, name: JSON.parse(json.slice(at, endOfName)), value: { start, end } }
    at = skipSpace(json, skipSpace(json, end) + 1)
  }
}

/** Yields the elements of the array that begins at an index; nothing if no array begins there. */
export const elementsAt = function* (json: string, array: number): Generator<Range> {
  if (json[array] !== '[') return
  for (let start = skipSpace(json, array + 1); json[start] !== ']'; ) {
    const end = endOfValue(json, start)
    yield { start, end }
    const next = skipSpace(json, end)
    start = json[next] === ',' ? skipSpace(json, next + 1) : next
  }
}

const startOfMember = (json: string, object: number, name: string): number | undefined => {
  for (const member of membersAt(json, object)) if (member.name === name) return member.value.start
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
