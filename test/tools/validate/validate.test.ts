import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { CommandError } from '../../../tools/failures.ts'
import { type ValidateOptions, validateFile } from '../../../tools/validate/validate.ts'
import { storedRecords } from '../../contract/contract.ts'
import { dataOf, payoutCalculated, periodRecorded, repRecorded, step } from '../../support/events.ts'

const run = async (lines: readonly (string | Buffer)[], options: Partial<ValidateOptions> = {}) => {
  const out: string[] = []
  const said: string[] = []
  const code = await validateFile(
    { file: 'file', type: undefined, partitions: 6, live: false, json: false, ...options },
    {
      // In chunks that end within lines and within characters.
      open: async function* () {
        const bytes = Buffer.concat(lines.flatMap(line => [Buffer.from('\n'), Buffer.from(line)]).slice(1))
        for (let from = 0; from < bytes.length; from += CHUNK) yield bytes.subarray(from, from + CHUNK)
      },
      out: text => void out.push(text.trimEnd()),
      say: line => void said.push(line),
      draw: undefined,
      now: () => 1_700_000_000_000,
      context: () => {
        throw new Error('not called')
      },
      signal: new AbortController().signal,
    },
  )
  return { code, out, said }
}
const CHUNK = 1_001
const json = { json: true }

test('every record of contract/records.ndjson has the verdict that it says', async () => {
  const records = storedRecords()
  const { code, out } = await run(
    records.map(record => JSON.stringify(record)),
    json,
  )
  const verdicts = out.map(line => JSON.parse(line)).map(({ outcome, code = outcome }) => code)
  expect(verdicts).toEqual(records.map(({ verdict }) => verdict))
  expect(code).toBe(3)
})

describe('a line', () => {
  const { type, data } = {
    type: 'commission.rep.recorded.v1',
    data: dataOf(repRecorded({ org_id: 'org_1', id: 'rep_1' })),
  }
  const outcomeOf = async (line: string, options: Partial<ValidateOptions> = {}) =>
    (await run([line], { ...options, ...json })).out.map(text => JSON.parse(text))
  const applied = [{ line: 1, outcome: 'applied' }]

  test('can be an event, a CloudEvents event, or data of a given type', async () => {
    expect(await outcomeOf(JSON.stringify({ type, data }))).toEqual(applied)
    const cloudEvent = { specversion: '1.0', id: '1', source: '/test', type, data }
    expect(await outcomeOf(JSON.stringify(cloudEvent))).toEqual(applied)
    expect(await outcomeOf(JSON.stringify(data), { type })).toEqual(applied)
    const parked = (code: string) => [
      { line: 1, outcome: 'parked', code, detail: expect.stringMatching(/expected .*, got /) },
    ]
    expect(await outcomeOf(JSON.stringify({ ...cloudEvent, source: undefined }))).toEqual(parked('record_undecodable'))
    expect(await outcomeOf('{"org_id":', { type })).toEqual(parked('record_undecodable'))
    expect(await outcomeOf(JSON.stringify({ type: 'other', data }))).toEqual(parked('type_unknown'))
  })

  test('whose type is named as a member of every object has an unknown type of the events topic', async () => {
    const [{ code, detail }] = await outcomeOf(JSON.stringify({ type: 'constructor', data }))
    expect({ code, detail }).toEqual({ code: 'type_unknown', detail: expect.stringContaining(type) })
  })

  test('ends at a line feed only, and a carriage return before it is no part of it', async () => {
    const lines = ['Line\u2028separator', 'Next\u0085line'].map(name =>
      JSON.stringify({ type, data: { ...data, name } }),
    )
    expect((await run([`${lines[0]}\r`, ...lines])).said).toEqual(['2 applied, 1 duplicate, 0 parked'])
  })

  test('of data keeps its bytes: a name twice is found', async () => {
    const twice = JSON.stringify(data).replace('{', '{"name":"x",')
    const detail = 'value: expected strict JSON, got an object that has a key twice'
    const undecodable = [{ line: 1, outcome: 'parked', code: 'record_undecodable', detail }]
    expect(await outcomeOf(twice, { type })).toEqual(undecodable)
    expect(await outcomeOf(`{"Typ\u00fc": 1, "type": "${type}", "data" : ${twice} }`)).toEqual(undecodable)
  })

  test.each([
    ['no JSON', 'line 2: expected an object with `value` (a record) or with `type` and `data` (an event)'],
    ['no JSON', ', got no JSON: wrong at character 2'],
    ['{"rep_1":', ', got no JSON: it ends too early, after 9 characters'],
    ['[{"rep_1":1},{}]', ", got a list of 2 items: write each in a line of its own (jq -c '.[]' FILE)"],
    ['[]', 'line 2: expected an object'],
    ['{"type":"x"}', 'line 2: expected an object'],
    ['{"type":"x"}', ', got an object without them'],
    ['7', ', got a number'],
    ['  {  ', 'got a record over several lines: jq -c . FILE writes lines'],
    ['[', "got a list over several lines: jq -c '.[]' FILE writes lines"],
    ['\ufeff{}', 'got a byte-order mark (EF BB BF) in front of UTF-8: write it as UTF-8 without a byte-order mark'],
    ['{"type":"x","data":{},"data":{"a":1}}', 'line 2: `data` must be there once'],
    ['{"value":7}', 'line 2: `value` must be a text'],
    ['{"value":null,"headers":[["x"]]}', 'line 2: `headers` must be a text'],
    ['{"value":null,"partition":-1}', 'line 2: `partition` must be a whole number'],
    ['{"value":null,"stream":"x"}', 'line 2: `stream` must be events or api-keys'],
  ])('that is %s ends the command, and the message names it', async (line, message) => {
    const failed = await run([JSON.stringify({ type, data }), line]).catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(CommandError)
    expect(String(failed)).toContain(message)
    expect(String(failed)).not.toContain('rep_1')
  })

  test.each<[string, Buffer, string]>([
    [
      'UTF-16 with its mark',
      Buffer.from('\ufeff{"rep_1":1}', 'utf16le'),
      'UTF-16 (it begins with FF FE): write it as UTF-8',
    ],
    ['UTF-16', Buffer.from('{"rep_1":1}', 'utf16le'), 'UTF-16 without a byte-order mark: write it as UTF-8'],
    ['gzip', gzipSync('{"rep_1":1}'), 'gzip (it begins with 1F 8B): decompress it first'],
    [
      'of a schema registry',
      Buffer.from('\0\0\0\0\x07{}'),
      'a zero byte in front, as clients of a schema registry write it: write the JSON alone',
    ],
  ])('that is %s ends the command, also with --type, and the message says what to do', async (_, line, message) => {
    for (const options of [{}, { type }]) {
      const failed = await run([line], options).catch((error: unknown) => error)
      expect(failed).toBeInstanceOf(CommandError)
      expect(String(failed)).toContain(`line 1: expected JSON in UTF-8, one record in each line, got ${message}`)
      expect(String(failed)).not.toContain('rep_1')
    }
  })

  test('that is empty is passed over; parked ones are listed with their place', async () => {
    const payout = payoutCalculated({ org_id: 'org_1', id: 'payout_1', rep_id: 'rep_1', period_id: 'period_1' })
    const { code, out, said } = await run([
      JSON.stringify({ type, data }),
      '',
      JSON.stringify({ type: 'commission.payout.calculated.v1', data: dataOf(payout) }),
      JSON.stringify({ type, data }),
    ])
    expect([code, out]).toEqual([
      3,
      [expect.stringMatching(/^line 3: parked as period_unknown: \/period_id: expected /)],
    ])
    expect(said).toEqual(['1 applied, 1 duplicate, 1 parked (period_unknown 1; see docs/errors.md)'])
  })

  test.each([
    [{ status: 'Active' }, '/status must be active or departed, got a text of 6 characters'],
    [{ departed_on: undefined }, "data must have required property 'departed_on'"],
    [{ started_on: '2026-02-30' }, '/started_on must match format "date", got a text of 10 characters'],
    [{ name: 7 }, '/name must be string, got a number'],
  ])('with wrong data names the field and the rule, not the value: %j', async (wrong, detail) => {
    const line = JSON.stringify({ type, data: { ...data, ...wrong } })
    expect(await outcomeOf(line)).toEqual([{ line: 1, outcome: 'parked', code: 'data_invalid', detail }])
    expect((await run([line])).out).toEqual([`line 1: parked as data_invalid: ${detail}`])
  })

  test('with a wrong input of a step does not name the input', async () => {
    const inputs = { 'Deal with Nordlicht': 7 } as unknown as Record<string, string>
    const payout = payoutCalculated({ org_id: 'org_1', calculation_trace: [step({ inputs })] })
    const line = JSON.stringify({ type: 'commission.payout.calculated.v1', data: dataOf(payout) })
    expect((await run([line])).out).toEqual([
      'line 1: parked as data_invalid: /calculation_trace/0/inputs/* must be string, got a number',
    ])
  })

  test('sees the lines before it', async () => {
    const period = dataOf(periodRecorded({ org_id: 'org_1', id: 'period_1' }))
    const payout = payoutCalculated({ org_id: 'org_1', id: 'payout_1', rep_id: 'rep_1', period_id: 'period_1' })
    const { code, said } = await run([
      JSON.stringify({ type, data }),
      JSON.stringify({ type: 'commission.period.recorded.v1', data: period }),
      JSON.stringify({ type: 'commission.payout.calculated.v1', data: dataOf(payout) }),
    ])
    expect([code, said]).toEqual([0, ['3 applied, 0 duplicate, 0 parked']])
  })
})

test('the next line is read when the output has taken the outcome of the last one', async () => {
  let read = 0
  const readAtEnd: number[] = []
  const file = { file: 'file', type: undefined, partitions: 6, live: false, json: true }
  await validateFile(file, {
    open: async function* () {
      for (; read < 3; ) {
        read++
        yield Buffer.from('{"type":"unknown","data":{}}\n')
      }
    },
    out: async () => {
      await new Promise(resolve => setImmediate(resolve))
      readAtEnd.push(read)
    },
    say: () => undefined,
    draw: undefined,
    now: () => 1_700_000_000_000,
    context: () => {
      throw new Error('not called')
    },
    signal: new AbortController().signal,
  })
  expect(readAtEnd).toEqual([1, 2, 3])
})
