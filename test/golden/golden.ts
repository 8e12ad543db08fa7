/**
 * The golden log holds some hundred published events: every type, every park code but one, and long chains.
 * `documents.ndjson` holds the documents that one version of the rules makes of them.
 *
 * A line of `log.ndjson` is a record, with its bytes in base64. A line of `documents.ndjson` is a document: stream,
 * key, the offset of the last event that wrote it, and its content.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cache } from '../../core/ledger/decide/cache.ts'
import { batchOfOne, decideBatch, outcomeOf, readNothing } from '../../core/ledger/decide/decide-batch.ts'
import type { DecidedDocument } from '../../core/ledger/decide/project.ts'
import { decode, type RawRecord } from '../../core/ledger/event/decode.ts'
import { builtInRules } from '../../core/ledger/rules/rules.ts'
import { encodeHeaders } from '../../core/log/kafka/encoded-headers.ts'
import type { Stream } from '../../schemas/events.ts'
import type { Outgoing } from '../support/events.ts'
import { place } from '../support/topics.ts'

export const PARTITIONS = 6

export type GoldenRecord = {
  readonly stream: Stream
  readonly partition: number
  readonly timestamp: number
  readonly key: string | null
  readonly headers: readonly (readonly [name: string, value: string | null])[]
  readonly value: string | null
}

const FIRST_TIME = 1_790_000_000_000
/** Other tests cover larger records. These logs must stay small, because people read them. */
const BASE64_MAX = 5_400

export const isSmall = ({ value }: GoldenRecord): boolean => (value?.length ?? 0) <= BASE64_MAX

/** @param index of the record in its log: each is a second later than the one before */
export const goldenRecordOf = (record: Outgoing, index: number): GoldenRecord => {
  const { stream, partition, key, headers, value } = place(record, PARTITIONS)
  return {
    stream,
    partition,
    timestamp: FIRST_TIME + index * 1_000,
    key: base64(key),
    headers: Object.entries(headers).flatMap(([name, values]) =>
      [values].flat().map(one => [name, base64(one ?? null)] as const),
    ),
    value: base64(value),
  }
}

const base64 = (bytes: string | Buffer | null): string | null =>
  bytes === null ? null : Buffer.from(bytes as string).toString('base64')

const fileOf = (name: string): string => join(import.meta.dirname, name)
export const LOG = fileOf('log.ndjson')
export const DOCUMENTS = fileOf('documents.ndjson')
export const linesIn = (file: string): string[] => readFileSync(file, 'utf8').trimEnd().split('\n')

/**
 * Projects the log under the current rules. Returns the lines of `documents.ndjson`, the outcomes, partition by
 * partition, and the verdict on each record: `applied`, `duplicate` or the code under which it is parked.
 * @param firstKeyRulesUntil offset before which version 1 of the rules decides about API keys
 */
export const projectLog = async (log: readonly GoldenRecord[], firstKeyRulesUntil = 0) => {
  const documents = new Map<string, string>()
  const outcomes: string[] = []
  const verdicts = new Map<GoldenRecord, string>()
  for (const stream of ['events', 'api-keys'] as const) {
    for (let partition = 0; partition < (stream === 'events' ? PARTITIONS : 1); partition++) {
      const records = log.filter(record => record.stream === stream && record.partition === partition)
      for await (const { record, documents: decided, type, verdict } of projectPartition(
        records,
        stream,
        partition,
        firstKeyRulesUntil,
      )) {
        outcomes.push(`${type}${verdict}`)
        verdicts.set(record, verdict)
        for (const { key, version, line } of decided) {
          documents.set(`${stream}/${key}`, `${JSON.stringify([stream, key, version]).slice(0, -1)},${line.trimEnd()}]`)
        }
      }
    }
  }
  const lines = [...documents].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, line]) => line)
  return { lines, outcomes, verdicts }
}

/** Projects one record after the other. The cache holds all earlier decisions. */
async function* projectPartition(
  records: readonly GoldenRecord[],
  stream: Stream,
  partition: number,
  firstKeyRulesUntil: number,
): AsyncGenerator<{ record: GoldenRecord; documents: readonly DecidedDocument[]; type: string; verdict: string }> {
  const cache = new Cache({ fromFirstRecord: true })
  const topic = stream === 'events' ? 'commission.events' : 'commission.api-keys'
  const source = { stream, topic, partition, partitions: stream === 'events' ? PARTITIONS : 1, firstKeyRulesUntil }
  const steps = { source, decode, rules: builtInRules }
  for (const [offset, record] of records.entries()) {
    const decided = await decideBatch(batchOfOne(rawOf(record, offset)), steps, cache, readNothing)
    cache.addDecided(decided.documents)
    const [assessed] = decided.assessed
    const type = assessed?.rules === undefined ? '' : `${assessed.verdict.type} `
    yield { record, documents: decided.documents, type, verdict: outcomeOf(decided) }
  }
}

export const rawOf = ({ timestamp, key, headers, value }: GoldenRecord, offset: number): RawRecord => ({
  offset,
  timestamp,
  key: bytes(key),
  value: bytes(value),
  headers: encodeHeaders(headers.map(([name, header]) => [name, bytes(header)])),
})

const bytes = (base64: string | null): Buffer | null => (base64 === null ? null : Buffer.from(base64, 'base64'))
