/**
 * Identifies an index among all that ever had its name. Elasticsearch gives each index a UUID when it is created, also
 * by a restore. A restore over a closed index keeps the UUID and sets a new history UUID: no restore keeps both.
 */

/** The fields of `GET /…` or `GET /…/_settings` that ids are read from, as a `filter_path`. */
export const INDEX_ID_FILTER = '*.settings.index.uuid,*.settings.index.history.uuid'

type Settings = { readonly settings?: { readonly index?: { readonly uuid?: unknown; readonly history?: History } } }
type History = { readonly uuid?: unknown }

/**
 * Returns the ids by index name, without indices that have no id.
 * @throws TypeError if the answer has another form: it must not pass for an answer without ids
 */
export const indexIdsIn = (answer: unknown): Map<string, string> => {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) throw new TypeError('no index ids')
  return new Map(
    Object.entries(answer).flatMap(([name, { settings }]: [string, Settings]) => {
      const { uuid, history } = settings?.index ?? {}
      const ids = [uuid, history?.uuid].filter(id => id !== undefined)
      if (!ids.every(id => typeof id === 'string')) throw new TypeError('no index ids')
      return uuid === undefined ? [] : [[name, ids.join('/')]]
    }),
  )
}

/** The fields of `GET /…` that `obstacleIn` reads, as a `filter_path`. */
export const OBSTACLES_FILTER = '*.mappings.runtime,*.settings.index.verified_before_close,*.settings.index.blocks.read'

type Obstructed = {
  readonly mappings?: { readonly runtime?: Readonly<Record<string, unknown>> }
  readonly settings?: { readonly index?: { readonly verified_before_close?: string; readonly blocks?: ReadBlock } }
}
type ReadBlock = { readonly read?: string }

/**
 * Why an index of the answer must not be read. Anybody may add a runtime field at any time; searches read it in place
 * of the indexed field of its name, so lists and totals would be wrong. No index of a projector has one. Elasticsearch
 * sets `verified_before_close` while an index is closed. With `blocks.read` it refuses searches of the index.
 */
export const obstacleIn = (answer: object): 'runtime_fields' | 'index_closed' | 'reads_blocked' | undefined => {
  const indices: Obstructed[] = Object.values(answer)
  if (indices.some(({ mappings }) => Object.keys(mappings?.runtime ?? {}).length > 0)) return 'runtime_fields'
  if (indices.some(({ settings }) => settings?.index?.verified_before_close === 'true')) return 'index_closed'
  if (indices.some(({ settings }) => settings?.index?.blocks?.read === 'true')) return 'reads_blocked'
  return undefined
}
