/** Strict JSON parser of the model. Objects become Maps: no key is special, and a duplicate key is an error. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export type JsonObject = ReadonlyMap<string, Json>

/** @returns undefined for invalid JSON, a duplicate key, or more than `levels` nested objects and arrays */
export const parseJson = (text: string, levels: number): { json: Json } | undefined => {
  const reader = new Reader(text)
  try {
    return { json: reader.document(levels) }
  } catch (error) {
    if (error instanceof NotJson) return undefined
    throw error
  }
}

class NotJson extends Error {}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  document(levels: number): Json {
    const json = this.#value(levels)
    this.#space()
    if (this.#at !== this.#text.length) throw new NotJson()
    return json
  }

  #value(levels: number): Json {
    this.#space()
    if (this.#takes('{')) return this.#object(levels - 1)
    if (this.#takes('[')) return this.#array(levels - 1)
    if (this.#takes('"')) return this.#string()
    for (const [word, json] of words) if (this.#takes(word)) return json
    return Number(this.#match(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y))
  }

  #object(levels: number): JsonObject {
    if (levels < 0) throw new NotJson()
    const members = new Map<string, Json>()
    this.#space()
    if (this.#takes('}')) return members
    do {
      this.#space()
      this.#expect('"')
      const name = this.#string()
      if (members.has(name)) throw new NotJson()
      this.#space()
      this.#expect(':')
      members.set(name, this.#value(levels))
      this.#space()
    } while (this.#takes(','))
    this.#expect('}')
    return members
  }

  #array(levels: number): Json[] {
    if (levels < 0) throw new NotJson()
    const items: Json[] = []
    this.#space()
    if (this.#takes(']')) return items
    do {
      items.push(this.#value(levels))
      this.#space()
    } while (this.#takes(','))
    this.#expect(']')
    return items
  }

  /** Reads a string after its opening quote. */
  #string(): string {
    let text = ''
    for (;;) {
      text += this.#match(plain)
      if (this.#takes('"')) return text
      const escaped = this.#match(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y)
      text += escaped[1] === 'u' ? String.fromCharCode(Number.parseInt(escaped.slice(2), 16)) : escapes.get(escaped)
    }
  }

  #space(): void {
    this.#match(/[ \t\n\r]*/y)
  }

  #takes(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false
    this.#at += word.length
    return true
  }

  #expect(word: string): void {
    if (!this.#takes(word)) throw new NotJson()
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const [found] = pattern.exec(this.#text) ?? []
    if (found === undefined) throw new NotJson()
    this.#at += found.length
    return found
  }
}

const words = [
  ['true', true],
  ['false', false],
  ['null', null],
] as const

/** Characters other than quotes, backslashes and control characters. */
const plain = /[ !#-[\]-\uffff]*/y

const escapes = new Map([
  ['\\"', '"'],
  ['\\\\', '\\'],
  ['\\/', '/'],
  ['\\b', '\b'],
  ['\\f', '\f'],
  ['\\n', '\n'],
  ['\\r', '\r'],
  ['\\t', '\t'],
])
