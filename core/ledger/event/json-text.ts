/** JSON that is already text, and the JSON of values that have such text in them. */

/**
 * JSON that is already text. Most of a payout is its lists, and no decision reads them. They are serialized once, for
 * the hash, and stay text until they are written. This saves a tenth of the projector's time for a payout.
 */
export class JsonText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Returns the JSON of a value; JsonText is not serialized again. */
export const textOf = (value: unknown): string => (value instanceof JsonText ? value.text : JSON.stringify(value))

/** Returns one object: the members of `before`, then the lists. */
export const withLists = (before: object, lists: Readonly<Record<string, JsonText>>): JsonText => {
  let text = JSON.stringify(before).slice(0, -1)
  for (const [name, list] of Object.entries(lists)) text += `,"${name}":${list.text}`
  return new JsonText(`${text}}`)
}
