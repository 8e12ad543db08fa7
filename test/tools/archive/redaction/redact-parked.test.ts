/** Parked records of API keys after a redaction, compared with those that a projection of the redacted topic has. */
import { expect, test } from 'vitest'
import { Cache } from '../../../../core/ledger/decide/cache.ts'
import { batchOfOne, decideBatch, readNothing } from '../../../../core/ledger/decide/decide-batch.ts'
import { decode } from '../../../../core/ledger/event/decode.ts'
import { builtInRules } from '../../../../core/ledger/rules/rules.ts'
import type { LogEntry } from '../../../../core/log/records/read-log.ts'
import { apiKeysParkedIndexOf } from '../../../../schemas/stored/documents.ts'
import { redactLogs } from '../../../../tools/archive/redaction/redact-log.ts'
import { redactParkedKeys } from '../../../../tools/archive/redaction/redact-parked.ts'
import { withText } from '../../../support/bad-event.ts'
import { payrollRecorded, repRecorded } from '../../../support/events.ts'
import { type Document, MemoryElasticsearch } from '../../../support/memory-elasticsearch.ts'
import { archiveOf, type Entries, entriesOf, redactedEntries } from './memory-log.ts'

const org = 'org_a'
const source = { stream: 'api-keys', topic: 'topic.api-keys', partition: 0, partitions: 1 } as const
const INDEX = apiKeysParkedIndexOf('p')

const parkedOf = async (entries: readonly LogEntry[]): Promise<Record<string, Document>> => {
  const all: Record<string, Document> = {}
  for (const record of entries) {
    const steps = { decode, source, rules: builtInRules }
    const cache = new Cache({ fromFirstRecord: true })
    const { documents } = await decideBatch(batchOfOne(record), steps, cache, readNothing)
    for (const { id, version, line } of documents) all[id] = { version, source: JSON.parse(line) }
  }
  return all
}

test('a parked record of API keys is stored as the redacted topic has it, and others stay', async () => {
  const named = repRecorded({ org_id: org, name: 'Canary' })
  const entries: Entries = {
    events: [],
    'api-keys': entriesOf([
      named,
      withText(named, '{"org_id":"org_a","id":"rep_1","name":"Canary"'),
      payrollRecorded({ org_id: org, destination: { type: 'other', label: 'Canary' } }),
      repRecorded({ org_id: org, id: 'rep_2', name: 'Other' }),
    ]),
  }
  const logs = archiveOf(entries)
  const passes = { onDone: async () => undefined, startAgain: () => undefined }
  const signal = new AbortController().signal
  const redaction = await redactLogs(logs, { org, rep: 'rep_1', also: [] }, passes, signal)
  const engine = new MemoryElasticsearch()
  const [first, ...read] = Object.entries(await parkedOf(entries['api-keys']))
  for (const [id, { version, source }] of read) engine.put(INDEX, id, version, source)
  const steps = { send: engine.send, prefix: 'p', sleep: async () => undefined, say: () => undefined }
  const expected = await parkedOf((await redactedEntries(entries, redaction))['api-keys'])
  // As one that the projector has not read yet.
  delete expected[first?.[0] ?? '']
  for (const _ of ['at first', 'repeated']) {
    await redactParkedKeys(redaction, logs.archived('api-keys'), steps)
    expect(engine.all(INDEX)).toEqual(expected)
  }
  expect(Object.keys(expected)).toHaveLength(3)
  const bytes = Object.values(engine.all(INDEX)).map(({ source: { body } }) => {
    return Buffer.from((body as { value: string }).value, 'base64').toString()
  })
  expect(bytes.join()).not.toContain('Canary')
  expect(bytes.join()).toContain('Other')
})
