/** The ids of indices with a shard each, as projectors record them, and as Elasticsearch tells them to a command. */
import type { Answer } from '../../core/store/elasticsearch/client.ts'

/** Of these indices, in the document of their generation. */
export const recordedIds = (names: readonly string[]) => ({
  indices: Object.fromEntries(names.map(name => [name, `of ${name}`])),
  shards: Object.fromEntries(names.map(name => [`${name}/0`, `of ${name}/0`])),
})

/**
 * Answers a request for ids with the recorded ones; undefined for another request.
 * @param hidden shards that no answer tells, as of a node that is away
 * @param lost shards that have another id
 */
export const answerIds = (
  path: string,
  names: readonly string[],
  hidden: readonly string[] = [],
  lost: readonly string[] = [],
): Answer | undefined => {
  if (path.startsWith('/_security/')) return { status: 200, body: { indices: [] } }
  const { indices, shards } = recordedIds(names)
  if (path.endsWith('/_settings')) {
    const settings = Object.entries(indices).map(([name, uuid]) => [name, { settings: { index: { uuid } } }])
    return { status: 200, body: Object.fromEntries(settings) }
  }
  if (!path.endsWith('/_stats/get')) return undefined
  const told = names.map(name => {
    const commit = {
      user_data: { history_uuid: `${lost.includes(`${name}/0`) ? 'another than ' : ''}${shards[`${name}/0`]}` },
    }
    return [name, { shards: hidden.includes(`${name}/0`) ? {} : { 0: [{ routing: { primary: true }, commit }] } }]
  })
  return { status: 200, body: { indices: Object.fromEntries(told) } }
}
