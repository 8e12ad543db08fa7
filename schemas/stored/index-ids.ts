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

/** The field of `GET /…` that runtime fields are read from, as a `filter_path`. */
export const RUNTIME_FIELDS_FILTER = '*.mappings.runtime'

type Mappings = { readonly mappings?: { readonly runtime?: Readonly<Record<string, unknown>> } }

/**
 * Whether an index of the answer has a runtime field. Anybody may add one at any time; searches read it in place of the
 * indexed field of its name, so lists and totals would be wrong. No index of a projector has one.
 */
export const hasRuntimeFields = (answer: object): boolean =>
  Object.values(answer).some(({ mappings }: Mappings) => Object.keys(mappings?.runtime ?? {}).length > 0)
