/** Whole logs that are redacted, also twice: every record is decided as before. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Redaction, redactLogs } from '../../../../tools/archive/redaction/redact-log.ts'
import {
  type Outgoing,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  withData,
} from '../../../support/events.ts'
import { seal } from '../../../support/seal.ts'
import { archiveOf, decisionsOn, type Entries, entriesOf, redactedEntries } from './memory-log.ts'

const [org, rep] = ['org_a', 'rep_1']
const named = (name: string, data = {}): Outgoing => repRecorded({ org_id: org, name, ...data })
const paid = (id: string, label: string): Outgoing =>
  payrollRecorded({ org_id: org, id, destination: { type: 'other', label } })

const passes = { onDone: async () => undefined, startAgain: () => undefined }
const redact = (entries: Entries, also: readonly string[] = []): Promise<Redaction> =>
  redactLogs(archiveOf(entries), { org, rep, also }, passes, new AbortController().signal)

/** Redacts the log, adds events to it, redacts it again, and so on. Compares all decisions before and after each. */
const redactEach = async (parts: readonly (readonly Outgoing[])[]): Promise<Entries> => {
  let log: Entries = { events: [], 'api-keys': [] }
  for (const part of parts) {
    log = { ...log, events: [...log.events, ...entriesOf(part, log.events.length)] }
    const before = await decisionsOn('events', log.events)
    const redaction = await redact(log).catch(error => {
      if (!String(error).includes('nothing to redact')) throw error
      return undefined
    })
    if (redaction === undefined) continue
    log = await redactedEntries(log, redaction)
    expect(await decisionsOn('events', log.events)).toEqual(before)
  }
  return log
}

test('a rep that is redacted a second time: a new text never becomes equal to one of the first redaction', async () => {
  const first = [periodRecorded({ org_id: org }), named('Canary'), paid('payroll_1', 'Canary Konto')]
  const then = [named('Canary Anders'), paid('payroll_1', 'Canary Konto Anders'), named('Canary')]
  const { events } = await redactEach([first, then])
  const decisions = await decisionsOn('events', events)
  expect(decisions.map(text => text.split('\n')[0])).toEqual([
    'applied',
    'applied',
    'applied',
    'applied',
    'id_reused',
    'applied',
  ])
  expect(events.map(({ value }) => String(value)).join()).not.toContain('Canary')
})

test('whatever is published between redactions, every record is decided as before', async () => {
  // With a space: a sealed text is base64, and can have any three letters.
  const text = fc.constantFrom<unknown>(
    'Ann Doe',
    'Ben Doe',
    '',
    seal('Ann Doe', { org, record: rep, field: 'name', keyId: 'k1' }),
    7,
  )
  const event = fc.oneof(
    fc.record({ name: text, email: text }).map(data => withData(named('x'), data)),
    fc
      .record({
        id: fc.constantFrom('payroll_1', 'payroll_2'),
        destination: fc.record({ type: fc.constant('other'), label: text }),
      })
      .map(data => withData(paid('x', 'x'), data)),
    fc.constantFrom(
      payrollVoided({ org_id: org }),
      payrollRecorded({ org_id: org, rep_id: 'rep_2' }),
      repRecorded({ org_id: org, id: 'rep_2' }),
    ),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(event, { maxLength: 8 }), { maxLength: 4 }), async parts => {
      const { events } = await redactEach([[periodRecorded({ org_id: org })], ...parts])
      expect(events.map(({ value }) => String(value)).join()).not.toMatch(/Ann Doe|Ben Doe/)
    }),
  )
})

test('the same archive gives the same list, and a longer one another key', async () => {
  const log = { events: entriesOf([named('Canary')]), 'api-keys': [] }
  expect((await redact(log)).list).toEqual((await redact(log)).list)
  const longer = { ...log, events: entriesOf([named('Canary'), named('Other')]) }
  expect((await redact(longer)).list.key_id).not.toBe((await redact(log)).list.key_id)
})
