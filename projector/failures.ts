/**
 * The one table of what stops the projector. Anything else that goes wrong is either a record's own fault (parked, see
 * `schemas/errors.ts`) or is tried again until it works.
 */
export const stops = {
  settings_wrong: 'a setting is wrong or missing',
  port_unavailable: 'the admin port cannot be listened on',
  topic_missing: 'a topic does not exist',
  topic_unsuitable: 'a topic is configured so that records could be lost',
  source_changed: 'the topic is not the one this projection was made from',
  records_deleted: 'records of the topic that were not to be deleted are gone',
  position_went_back: 'a published position lies behind where it was: Elasticsearch was restored from a copy',
  index_missing: 'an index that was there is gone',
  index_replaced: 'an index is not the one that was projected into: it was restored from a copy, or made anew',
  index_unsuitable: 'an index has another mapping or other settings than this version writes',
  rules_changed: 'the projection was made by another version of the rules',
  group_shared: 'the consumer group has members of another installation',
  access_refused: 'Kafka or Elasticsearch refuses the credentials',
  write_refused: 'Elasticsearch refuses a document for good',
  content_differs: 'a document that was already written has other content',
  consumer_stopped: 'the Kafka client gave up',
  stuck: 'nothing moves, although work waits and both Kafka and Elasticsearch answer',
  defect: 'the program contradicts itself',
} as const
export type StopCode = keyof typeof stops

/** Values that may stand beside an error: places and counts, never content. */
export type Where = Readonly<Record<string, string | number | boolean | null>>

/** Ends the process with a non-zero code. Safe to log: it is made of our own words, codes and places only. */
export class StopError extends Error {
  override name = 'StopError'
  readonly code: StopCode
  readonly where: Where
  constructor(code: StopCode, detail: string, where: Where = {}) {
    super(`${stops[code]}: ${detail}`)
    this.code = code
    this.where = where
  }
}

/** What may be said of an error of another library: its class, never its message, which can quote a document. */
export const nameOf = (error: unknown): string => {
  if (error instanceof StopError) return error.code
  return error instanceof Error ? error.name : typeof error
}
