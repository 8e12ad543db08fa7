/**
 * What tells an index from any other that ever had its name. Elasticsearch gives each index a UUID when it is created,
 * also when it is created by a restore; a restore over a closed index keeps that, and gives it a new history. So no
 * snapshot carries an id over.
 */

/** The part of an answer to `GET /…/_settings` that ids are read from. */
export const INDEX_ID_FILTER = '*.settings.index.uuid,*.settings.index.history.uuid'

type Settings = { readonly settings?: { readonly index?: { readonly uuid?: unknown; readonly history?: History } } }
type History = { readonly uuid?: unknown }

/**
 * By name of the index; without those that have no id in the answer.
 * @throws TypeError where it is no such answer: that an index has no id must not be read from it
 */
export const indexIdsIn = (answer: unknown): Map<string, string> => {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) throw new TypeError('no index ids')
  return new Map(
    Object.entries(answer as Record<string, Settings>).flatMap(([name, { settings }]) => {
      const { uuid, history } = settings?.index ?? {}
      const ids = [uuid, history?.uuid].filter(id => id !== undefined)
      if (!ids.every(id => typeof id === 'string')) throw new TypeError('no index ids')
      return uuid === undefined ? [] : [[name, ids.join('/')]]
    }),
  )
}
