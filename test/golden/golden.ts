/**
 * The golden log holds some hundred published events: every type, every park code but one, and long chains.
 * `documents.ndjson` holds the documents that one version of the rules makes of them.
 *
 * A line of `log.ndjson` is a record, with its bytes in base64. A line of `documents.ndjson` is a document: stream,
 * key, the offset of the last event that wrote it, and its content.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decode } from '../../projector/event/decode.ts'
import type { RawRecord } from '../../projector/event/raw-record.ts'
import { assess } from '../../projector/flow/assess.ts'
import { Cache } from '../../projector/flow/cache.ts'
import { load, type PendingEvent } from '../../projector/flow/load.ts'
import { project } from '../../projector/flow/project.ts'
import { type Rendered, render } from '../../projector/flow/serialize.ts'
import { encodeHeaders } from '../../projector/kafka/patch-headers.ts'
import { builtInRules } from '../../projector/rules/rules.ts'
import type { Stream } from '../../schemas/events.ts'

export const PARTITIONS = 6

export type GoldenRecord = {
  readonly stream: Stream
  readonly partition: number
  readonly timestamp: number
  readonly key: string | null
  readonly headers: readonly (readonly [name: string, value: string | null])[]
  readonly value: string | null
}

const fileOf = (name: string): string => join(import.meta.dirname, name)
export const LOG = fileOf('log.ndjson')
export const DOCUMENTS = fileOf('documents.ndjson')
export const linesIn = (file: string): string[] => readFileSync(file, 'utf8').trimEnd().split('\n')

/** Projects the log under the current rules. Returns the lines of `documents.ndjson` and the outcome of each record. */
export const projectLog = async (log: readonly GoldenRecord[]) => {
  const documents = new Map<string, string>()
  const outcomes: string[] = []
  for (const stream of ['events', 'api-keys'] as const) {
    for (let partition = 0; partition < (stream === 'events' ? PARTITIONS : 1); partition++) {
      const records = log.filter(record => record.stream === stream && record.partition === partition)
      for await (const { rendered, outcome } of projectPartition(records, stream, partition)) {
        outcomes.push(outcome)
        for (const { key, version, line } of rendered) {
          documents.set(`${stream}/${key}`, `${JSON.stringify([stream, key, version]).slice(0, -1)},${line.trimEnd()}]`)
        }
      }
    }
  }
  const lines = [...documents].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, line]) => line)
  return { lines, outcomes }
}

/** Projects one record after the other. The cache holds all earlier decisions. */
async function* projectPartition(
  records: readonly GoldenRecord[],
  stream: Stream,
  partition: number,
): AsyncGenerator<{ rendered: readonly Rendered[]; outcome: string }> {
  const cache = new Cache(true)
  const source = { stream, partition, partitions: stream === 'events' ? PARTITIONS : 1 }
  const topic = stream === 'events' ? 'commission.events' : 'commission.api-keys'
  let atBefore = 0
  for (const [offset, record] of records.entries()) {
    const assessed = assess(rawOf(record, offset), { decode, source, rules: builtInRules })
    const { verdict, reads, rules } = assessed
    const events: PendingEvent[] =
      rules === undefined ? [] : [{ event: verdict, reads, rules, seq: offset, at: record.timestamp }]
    const { state } = await load(events, cache, async keys => new Map(keys.map(key => [key, null])))
    const { changes, counts, parkedCodes, at } = project([assessed], state, { topic, partition }, atBefore)
    atBefore = at
    const rendered = changes.map(render)
    cache.addDecided(rendered)
    const type = typeof verdict === 'string' ? '' : `${verdict.type} `
    yield { rendered, outcome: `${type}${parkedCodes[0] ?? (counts.applied === 1 ? 'applied' : 'duplicate')}` }
  }
}

const rawOf = ({ timestamp, key, headers, value }: GoldenRecord, offset: number): RawRecord => ({
  offset,
  timestamp,
  key: bytes(key),
  value: bytes(value),
  headers: encodeHeaders(headers.map(([name, header]) => [name, bytes(header)])),
})

const bytes = (base64: string | null): Buffer | null => (base64 === null ? null : Buffer.from(base64, 'base64'))
