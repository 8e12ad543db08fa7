/** Every place of the two topics in which bytes of a person can stand: they are gone, or the record is named. */
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { LogEntry } from '../../../../core/log/records/read-log.ts'
import type { Stream } from '../../../../schemas/events.ts'
import { redactLogs } from '../../../../tools/archive/redaction/redact-log.ts'
import { structured, withText } from '../../../support/bad-event.ts'
import {
  dataOf,
  keyCreated,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  withData,
} from '../../../support/events.ts'
import { archiveOf, decisionsOn, type Entries, entriesOf, redactedEntries } from './memory-log.ts'

const [org, rep] = ['org_a', 'rep_1']
const person = repRecorded({ org_id: org, name: 'Canary' })
const plain = JSON.stringify(dataOf(person))
const withHeaders = (event: Outgoing, more: Record<string, string>): Outgoing => ({
  ...event,
  headers: { ...event.headers, ...more },
})
const base64 = (bytes: Buffer | string): string => Buffer.from(bytes).toString('base64')
const cut = (text: string): string => text.slice(0, -1)

const redact = async (entries: Entries, also: readonly string[] = [], of = rep) => {
  const passes = { onDone: async () => undefined, startAgain: () => undefined }
  const redaction = await redactLogs(archiveOf(entries), { org, rep: of, also }, passes, new AbortController().signal)
  return { ...redaction, log: await redactedEntries(entries, redaction) }
}
/** All bytes of a log in which a text could be read. */
const bytesOf = (log: Entries): string =>
  [...log.events, ...log['api-keys']]
    .flatMap(({ key, value, headers }) => [key, value, headers.bytes])
    .map(part => part?.toString('latin1') ?? '')
    .join('\n')
const HIDDEN = [base64('Canary').slice(0, -4), Buffer.from('Canary', 'utf16le').toString('latin1'), '\\u0043anary']
const expectGone = (log: Entries): void => {
  for (const text of ['Canary', ...HIDDEN]) expect(bytesOf(log)).not.toContain(text)
}

const destination = { type: 'other', label: 'Canary' } as const
/** Personal fields in events whose types have none. */
const strayed: [string, Outgoing][] = [
  ['a destination in a payout', withData(payoutCalculated({ org_id: org }), { destination })],
  [
    'a destination in a payout in structured mode',
    structured(withData(payoutCalculated({ org_id: org, id: 'payout_3' }), { destination }), {}),
  ],
  ['a rep and a destination in a void', withData(payrollVoided({ org_id: org }), { rep_id: rep, destination })],
  ['a rep with the type of a period', withHeaders(person, { ce_type: 'commission.period.recorded.v1' })],
  ['a rep with the type of a payout', withHeaders(person, { ce_type: 'commission.payout.calculated.v1' })],
]

const copies: [string, Outgoing, Stream?][] = [
  ...strayed,
  ['an event of a rep in the topic of keys', person, 'api-keys'],
  ['a payment in the topic of keys', payrollRecorded({ org_id: org, destination }), 'api-keys'],
  ['a record in the topic of keys that cannot be decoded', withText(person, cut(plain)), 'api-keys'],
  ['data in base64', structured(person, { data: undefined, data_base64: base64(plain) })],
  ['data in base64 beside data', structured(repRecorded({ org_id: org, name: '' }), { data_base64: base64(plain) })],
  ['data in base64 of gzip', structured(person, { data: undefined, data_base64: base64(gzipSync(plain)) })],
  [
    'an id with an escape, in a record that cannot be decoded',
    withText(person, cut(plain).replace('rep_1', 'r\\u0065p_1')),
  ],
  ['a name with an escape', withText(person, plain.replace('Canary', '\\u0043anary'))],
  ['UTF-16', withText(person, Buffer.from(`\ufeff${plain}`, 'utf16le'))],
  ['gzip', withText(person, gzipSync(plain))],
  ['a text that is base64', withText(person, base64(plain))],
  ['two members of one name', withText(person, plain.replace('"name"', '"name":"Canary","name"'))],
  ['a list of reps', withText(person, `[${plain}]`)],
  [
    'the person within other data',
    withText(person, JSON.stringify({ org_id: org, person: { id: rep, full_name: 'Canary' } })),
  ],
  [
    'an unknown type',
    withHeaders(withText(person, JSON.stringify({ org_id: org, rep_id: rep, full_name: 'Canary' })), {
      ce_type: 'commission.rep.left.v1',
    }),
  ],
  ['a record key of another organization', { ...person, key: 'org_b' }],
  [
    'the record key of the person, and another organization in the data',
    { ...withData(person, { org_id: 'org_b' }), key: org },
  ],
  ['a record key that is a name', { ...withText(person, cut(plain)), key: 'Canary' }],
  ['a record key that is a name, of an event', { ...person, key: 'Canary of org_a' }],
  ['a header of an event', withHeaders(person, { 'x-name': 'Canary' })],
  ['a name of a header', withHeaders(person, { Canary: 'x' })],
  ['an extension attribute', withHeaders(person, { ce_subject: 'Canary' })],
  ['a parameter of the content type', withHeaders(person, { 'content-type': 'application/json; owner=Canary' })],
  ['a header of a record that cannot be decoded', withHeaders(withText(person, cut(plain)), { 'x-name': 'Canary' })],
  ['a header of a payout', withHeaders(payoutCalculated({ org_id: org }), { 'x-name': 'Canary' })],
  ['an extra attribute in structured mode', structured(person, { subject: 'Canary', canary: { deep: 'Canary' } })],
  ['an unknown field', withData(person, { full_name: 'Canary' })],
  ['the name of an unknown field', withData(person, { Canary: 1 })],
  [
    'an unknown field of a destination',
    payrollRecorded({ org_id: org, destination: { type: 'other', label: '', holder: 'Canary' } as never }),
  ],
  [
    'an unknown field of a line',
    withData(payoutCalculated({ org_id: org }), {
      line_items: [
        { ...(dataOf(payoutCalculated({ org_id: org })) as { line_items: object[] }).line_items[0], owner: 'Canary' },
      ],
    }),
  ],
]

describe('these copies are gone, and every record is decided as before', () => {
  test.each(copies)('%s', async (_, copy, stream = 'events') => {
    const events = [periodRecorded({ org_id: org }), repRecorded({ org_id: org, name: '' })]
    const log: Entries = { events: entriesOf(events), 'api-keys': entriesOf([keyCreated({ org_id: org })]) }
    const entries = { ...log, [stream]: [...log[stream], ...entriesOf([copy, copy], log[stream].length)] }
    const { log: redacted, list } = await redact(entries)
    expectGone(redacted)
    expect(list.unclear).toEqual([])
    for (const one of ['events', 'api-keys'] as const) {
      expect(await decisionsOn(one, redacted[one])).toEqual(await decisionsOn(one, entries[one]))
    }
    expect(list.changes.map(change => [change.stream, change.offset])).toEqual(
      [0, 1].map(after => [stream, log[stream].length + after]),
    )
    expect(JSON.stringify(list)).not.toContain('Canary')
  })
})

test('a void of a payment of the person has no headers and fields that nobody reads', async () => {
  const log = {
    events: entriesOf([
      periodRecorded({ org_id: org }),
      person,
      payrollRecorded({ org_id: org }),
      withHeaders(withData(payrollVoided({ org_id: org }), { note: 'Canary' }), { 'x-name': 'Canary' }),
    ]),
    'api-keys': [],
  }
  expectGone((await redact(log)).log)
})

test('a redacted log that is redacted again changes nothing of what was replaced', async () => {
  const all = copies.filter(([, , stream = 'events']) => stream === 'events').map(([, copy]) => copy)
  const { log } = await redact({ events: entriesOf([periodRecorded({ org_id: org }), ...all]), 'api-keys': [] })
  await expect(redact(log)).rejects.toThrow('nothing to redact')
})

test('a second person is redacted after the first: nothing that was blanked then is unclear, or can be replaced', async () => {
  const broken = withText(person, cut(plain))
  const events = entriesOf([person, broken, { ...broken, key: 'Canary' }, repRecorded({ org_id: org, id: 'rep_2' })])
  const { log } = await redact({ events, 'api-keys': entriesOf([broken]) })
  const { list, log: after } = await redact(log, [], 'rep_2')
  expect(list.unclear).toEqual([])
  expect(list.changes.map(({ stream, offset }) => [stream, offset])).toEqual([['events', 3]])
  expect(after.events.slice(0, 3)).toEqual(log.events.slice(0, 3))
  await expect(redact(log, ['topic.events:0:1'], 'rep_2')).rejects.toThrow('was redacted before')
})

test('records of others stay as they are, whatever they have', async () => {
  const others = [
    repRecorded({ org_id: 'org_b', name: 'Canary' }),
    withHeaders(repRecorded({ org_id: org, id: 'rep_2', name: 'Canary' }), { 'x-name': 'Canary' }),
    withData(repRecorded({ org_id: org, id: 'rep_2' }), { status: 'rep_1', more: 'Canary' }),
    payrollVoided({ org_id: org, id: 'payroll_8', reverses_id: 'payroll_9' }),
    withText(repRecorded({ org_id: 'org_b' }), cut(JSON.stringify(dataOf(repRecorded({ org_id: 'org_b' }))))),
  ]
  const log = { events: entriesOf([person, ...others]), 'api-keys': [] }
  const { list, log: after } = await redact(log)
  expect(list.changes.map(({ offset }) => offset)).toEqual([0])
  expect(after.events.slice(1)).toEqual(log.events.slice(1))
  // They have the name of the person, so they are named.
  expect(list.mentions).toEqual([1, 2, 3].map(offset => `topic.events:0:${offset}`))
})

test('a name in a text that decisions read, in any spelling, is told by its position', async () => {
  const described = withData(payoutCalculated({ org_id: org, rep_id: 'rep_2' }), {
    calculated_at: 'for Zo\u00eb "Z" Canary',
  })
  const log = {
    events: entriesOf([
      repRecorded({ org_id: org, name: 'Zo\u00eb "Z" Canary' }),
      described,
      withText(described, String(described.value).replace('Zo\u00eb', 'Zo\\u00eb')),
      withText(repRecorded({ org_id: 'org_b' }), Buffer.from('rep_9 is Zo\u00eb "Z" Canary', 'utf16le')),
      repRecorded({ org_id: org, id: 'rep_3', name: 'Zo\u00eb' }),
    ]),
    'api-keys': entriesOf([keyCreated({ org_id: org, name: 'Zo\u00eb "Z" Canary' })]),
  }
  const { list } = await redact(log)
  expect(list.mentions).toEqual([...[1, 2, 3].map(offset => `topic.events:0:${offset}`), 'topic.api-keys:0:0'])
})

test('a name in another case or composition, or of two characters, is told by its position, and one of one is counted', async () => {
  const noted = (note: string) => withData(payoutCalculated({ org_id: org, rep_id: 'rep_2' }), { calculated_at: note })
  const names = ['Zo\u00eb Canary', 'Li', '\u674e', 'Q']
  const log = {
    events: entriesOf([
      ...names.map(name => repRecorded({ org_id: org, name, email: null })),
      ...['of ZOE\u0308 CANARY', '\nLi, too', 'a list'].map(noted),
    ]),
    'api-keys': [],
  }
  const { list } = await redact(log)
  expect(list).toMatchObject({ mentions: ['topic.events:0:4', 'topic.events:0:5'], unsearched: 2 })
})

describe('records that nobody can read', () => {
  const unread: Outgoing[] = [
    withText(person, Buffer.from([1, 2, 3, 0xff])),
    { ...withText(person, 'Canary has left'), key: null },
    structured(person, { data: undefined, data_base64: base64(Buffer.from([1, 2, 3])) }),
  ]
  const log: Entries = { events: entriesOf([person, ...unread]), 'api-keys': entriesOf(unread) }
  const positions = (stream: Stream, from: number) => unread.map((_, index) => `topic.${stream}:0:${from + index}`)
  const all = [...positions('events', 1), ...positions('api-keys', 0)]

  test('are named by their positions, and stay', async () => {
    const { list, log: after } = await redact(log)
    expect(list.unclear).toEqual(all)
    expect(after.events.slice(1)).toEqual(log.events.slice(1))
  })

  test('are replaced if the operator names them, with their decisions kept', async () => {
    const { list, log: after } = await redact(log, all)
    expect(list).toMatchObject({ unclear: [], also: all })
    expectGone(after)
    expect(await decisionsOn('events', after.events)).toEqual(await decisionsOn('events', log.events))
    const contents = [...after.events.slice(1), ...after['api-keys']].map(
      ({ key, value }: LogEntry) => `${key} ${value}`,
    )
    expect(contents.join()).not.toContain('\u0001')
  })

  test('personal fields are replaced where the type of the event has none', async () => {
    const events = entriesOf([person, ...strayed.map(([, event]) => event)])
    const named = strayed.map((_, index) => `topic.events:0:${index + 1}`)
    const { log: after } = await redact({ events, 'api-keys': [] }, named)
    expectGone(after)
    expect(await decisionsOn('events', after.events)).toEqual(await decisionsOn('events', events))
  })

  test('of an event, everything is replaced that no decision reads', async () => {
    const event = withHeaders(repRecorded({ org_id: org, id: 'rep_2' }), {
      ce_id: 'Canary',
      ce_source: '/Canary',
      'x-name': 'Canary',
    })
    const inStructured = structured(repRecorded({ org_id: org, id: 'rep_3' }), {
      id: 'Canary',
      source: '/Canary',
      subject: 'Canary',
    })
    const events = entriesOf([person, event, inStructured])
    const { log: after } = await redact({ events, 'api-keys': [] }, ['topic.events:0:1', 'topic.events:0:2'])
    expectGone(after)
    expect(await decisionsOn('events', after.events)).toEqual(await decisionsOn('events', events))
  })

  test('of a batch that nobody can read, the record with its bytes is named, also if they name the person', async () => {
    const batch = (value: string | null): Outgoing => ({
      ...withText(person, value),
      key: null,
      headers: { 'commission-undecodable-batch': '1 3 4 not_decompressed' },
    })
    const events = entriesOf([person, batch(`${plain}\u0000of org_a and others`), batch(null), batch(null)])
    const { list } = await redact({ events, 'api-keys': [] })
    expect(list.unclear).toEqual(['topic.events:0:1'])
    const { log: after } = await redact({ events, 'api-keys': [] }, ['topic.events:0:1'])
    expectGone(after)
    expect(after.events[1]?.headers.bytes).toEqual(events[1]?.headers.bytes)
    expect(await decisionsOn('events', after.events)).toEqual(await decisionsOn('events', events))
  })

  test.each([
    ['topic.events:0:9', /the archive has no such record/],
    ['other:0:1', /the archive has no such record/],
    ['topic.events:1:0', /the archive has no such record/],
    ['topic.events:0:1x', /the archive has no such record/],
  ])('%s is refused', async (position, refusal) => {
    await expect(redact(log, [position])).rejects.toThrow(refusal)
  })
})
