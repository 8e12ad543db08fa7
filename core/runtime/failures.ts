/**
 * Everything that stops the projector. Any other failure is either a record's own fault (parked, see
 * `schemas/errors.ts`) or is retried until it works.
 */
export const stops = {
  settings_wrong: 'a setting is wrong or missing',
  port_unavailable: 'cannot listen on the admin port or the port of receipts',
  topic_missing: 'a topic does not exist',
  topic_unsuitable: 'a topic is configured so that records could be lost',
  source_changed: 'the topic is not the one this projection was made from',
  records_deleted: 'records of the topic were deleted',
  batch_changed: 'a batch of records is not as the broker stored it: its checksum is wrong at each read',
  position_went_back: 'a published position went back: a snapshot was restored, or `adopt` ran',
  index_missing: 'an index or control document is missing',
  index_replaced: 'an index was replaced: it was restored from a snapshot, or created again, or a shard lost documents',
  index_unsuitable: 'an index has another mapping or other settings than this version writes',
  rules_changed: 'the projection was made by another version of the rules',
  group_shared: 'the consumer group has members of another installation',
  access_refused: 'Kafka or Elasticsearch refuses the credentials or a right',
  documents_hidden: 'a role hides documents or fields of an index from this user',
  write_refused: 'Elasticsearch refuses a document or an index for good, or answers something unexpected',
  content_differs: 'a document that was already written has other content',
  consumer_stopped: 'the Kafka client gave up',
  stuck: 'nothing moves, although work waits and both Kafka and Elasticsearch answer',
  defect: 'the program contradicts itself',
} as const
type StopCode = keyof typeof stops

/** Context of an error: locations and counts, never content. */
export type Where = Readonly<Record<string, string | number | boolean | null>>

/** Ends the process with a non-zero code. Safe to log: made only of our own words, codes and locations. */
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

/** Returns the code or class of an error. Never the message of another library: it can quote a document. */
export const nameOf = (error: unknown): string => {
  if (error instanceof StopError) return error.code
  return error instanceof Error ? error.name : typeof error
}
