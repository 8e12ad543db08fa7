/** A Kafka record as the stages of the flow get it: its bytes, not yet decoded. */

/** `rawName`: the bytes of a name that is not UTF-8; its text then has replacement characters. Absent for any other. */
export type Header = readonly [name: string, value: Buffer | null, rawName?: Buffer]

/** The headers of a record, read from its bytes each time. */
export type RecordHeaders = Iterable<Header> & {
  readonly bytes: Buffer
  /**
   * The text of the header of each of these names: undefined where there is none, null where it is repeated, has no
   * value or is not UTF-8.
   */
  readonly textsOf: (names: readonly Buffer[]) => (string | null | undefined)[]
}

/** A record as it was read. `timestamp` is in milliseconds since 1970; the offset is the record's own. */
export type RawRecord = {
  readonly offset: number
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: RecordHeaders
}
