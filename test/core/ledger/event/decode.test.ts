import { describe, expect, test } from 'vitest'
import { decode } from '../../../../core/ledger/event/decode.ts'
import { binaryHeaders, type Headers, record } from '../../../projector/records.ts'

const type = 'commission.rep.recorded.v1'
const headers = binaryHeaders(type)

/** The headers with one of them changed. `undefined` removes it. */
const withHeader = (name: string, value: string | Buffer | null | undefined): Headers => [
  ...headers.filter(([present]) => present !== name),
  ...(value === undefined ? [] : [[name, value] as const]),
]
const decodeBinary = (changed: Headers, value: string | Buffer | null = '{"a":1}') =>
  decode(record({ value, headers: changed }))

const invalidUtf8 = Buffer.from([0x22, 0xff, 0x22])

describe('binary mode', () => {
  test('the headers are the envelope and the value is the data', () => {
    expect(decodeBinary(headers, '{"org_id":"org_1","x":[1]}')).toEqual({
      type,
      id: 'event-1',
      data: { org_id: 'org_1', x: [1] },
    })
  })

  test.each([
    undefined,
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8;x=y',
    'application/json ; charset=utf-8',
    'Application/JSON',
    ' application/json ',
    'application/json;',
  ])('is selected by a content-type of %j', contentType => {
    expect(decodeBinary(withHeader('content-type', contentType))).toMatchObject({ data: { a: 1 } })
  })

  test.each([
    '',
    'text/plain',
    'application/jsonx',
    'application/json, application/json',
    'application/vnd.api+json',
    'application/avro',
    'application/cloudevents',
    'application/cloudevents-batch+json',
    'json',
    'invalid',
    null,
    invalidUtf8,
  ])('a content-type of %j is undecodable', contentType => {
    expect(decodeBinary(withHeader('content-type', contentType))).toBe('record_undecodable')
  })

  test('accepts JSON null as data: the schema refuses it', () => {
    expect(decodeBinary(headers, 'null')).toEqual({ type, id: 'event-1', data: null })
    expect(decodeBinary(headers, ' "text" ')).toMatchObject({ data: 'text' })
  })
})

describe('the value', () => {
  const wide = Buffer.from('{"a":1}', 'utf16le')

  test.each<[string, string | Buffer | null]>([
    ['no value', null],
    ['an empty value', ''],
    ['white space', '  '],
    ['a byte-order mark', '\ufeff{}'],
    ['UTF-16, little-endian', wide],
    ['UTF-16 with a byte-order mark', Buffer.concat([Buffer.from([0xff, 0xfe]), wide])],
    ['UTF-16, big-endian', Buffer.from(wide).swap16()],
    ['Latin 1', Buffer.from('{"a":"é"}', 'latin1')],
    ['a lone byte of a sequence', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0x80]), Buffer.from('"}')])],
    ['an overlong sequence', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')])],
    [
      'a surrogate as bytes',
      Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
    ],
    ['a sequence cut short', Buffer.concat([Buffer.from('{"a":"x"}'), Buffer.from([0xe2, 0x82])])],
    ['no JSON', '{"a":}'],
    ['a duplicate key', '{"a":1,"\\u0061":1}'],
    ['33 levels', `${'['.repeat(33)}${']'.repeat(33)}`],
    ['100,000 levels', '['.repeat(100_000)],
    ['XML', '<a/>'],
    ['a byte over 8 MiB', `"${'a'.repeat(8 * 1024 * 1024 - 1)}"`],
  ])('is undecodable in both modes if it is %s', (_, value) => {
    expect(decodeBinary(headers, value)).toBe('record_undecodable')
    expect(decode(record({ value, headers: [['content-type', 'application/cloudevents+json']] }))).toBe(
      'record_undecodable',
    )
  })

  test('may be as large as 8 MiB', () => {
    expect(decodeBinary(headers, `"${'a'.repeat(8 * 1024 * 1024 - 2)}"`)).not.toBe('record_undecodable')
  })

  test('may be nested 32 levels deep, and may have an escaped surrogate', () => {
    expect(decodeBinary(headers, `${'['.repeat(32)}${']'.repeat(32)}`)).not.toBe('record_undecodable')
    expect(decodeBinary(headers, '"\\ud800"')).toMatchObject({ data: '\ud800' })
  })
})

describe('attributes', () => {
  const accepted: [string, string[]][] = [
    ['id', ['1', 'invalid', 'a b', 'ü', '😀', 'x'.repeat(5_000), 'undefined', 'null']],
    ['type', ['invalid', 'commission.rep.recorded.v2', '__proto__', 'toString', 'a type']],
    ['source', ['/payouts', 'invalid', 'https://example.com/a?b=c#d', 'urn:uuid:1', 'a%20b', '#', '?']],
    [
      'time',
      [
        '2026-02-01T08:30:00Z',
        '2026-02-01t08:30:00z',
        '2026-02-01T08:30:00.1234567890123+05:30',
        '2016-12-31T23:59:60Z',
        '2024-02-29T00:00:00-23:59',
      ],
    ],
  ]
  const refused: [string, (string | Buffer | null | undefined)[]][] = [
    ['specversion', ['0.3', '1', '1.0 ', '1.0.0', 'v1.0', '', null, undefined, invalidUtf8]],
    ['id', ['', 'a\nb', '\u0000', 'a\u0085b', '\u007f', null, undefined, invalidUtf8]],
    ['type', ['', 'a\tb', null, undefined, invalidUtf8]],
    ['source', ['', 'a b', 'ü', '%', '%2', '%zz', '<x>', 'a\\b', '/a\n', null, undefined, invalidUtf8]],
    [
      'time',
      [
        '',
        'yesterday',
        '2026-02-01',
        '2026-02-01T08:30:00',
        '2026-02-30T08:30:00Z',
        '2026-02-01T24:00:00Z',
        '2026-02-01T08:60:00Z',
        '2026-02-01T08:30:61Z',
        '2026-02-01T08:30:00.Z',
        '2026-02-01T08:30:00+24:00',
        '2026-02-01 08:30:00Z',
        '1770000000',
        null,
        invalidUtf8,
      ],
    ],
  ]
  const each = <Value>(rows: [string, Value[]][]) =>
    rows.flatMap(([name, values]) => values.map(value => [name, value] as const))

  test.each(each(accepted))('in binary mode: %s may be %j', (name, value) => {
    expect(decodeBinary(withHeader(`ce_${name}`, value))).toMatchObject({ data: { a: 1 } })
  })

  test.each(each(refused))('in binary mode: a record whose %s is %j is undecodable', (name, value) => {
    expect(decodeBinary(withHeader(`ce_${name}`, value))).toBe('record_undecodable')
  })

  test.each(['specversion', 'id', 'type', 'source', 'time'])('in binary mode: %s must not occur twice', name => {
    const header =
      name === 'time' ? (['ce_time', '2026-02-01T08:30:00Z'] as const) : headers.find(([n]) => n === `ce_${name}`)
    const once = header && name === 'time' ? [...headers, header] : headers
    expect(decodeBinary(once)).not.toBe('record_undecodable')
    expect(decodeBinary([...once, ...(header ? [header] : [])])).toBe('record_undecodable')
    expect(decodeBinary([...once, [`ce_${name}`, null]])).toBe('record_undecodable')
  })

  test('in binary mode: content-type must not occur twice', () => {
    expect(decodeBinary([...headers, ['content-type', 'application/json']])).toBe('record_undecodable')
  })

  test('in binary mode: time may be absent, and unknown headers change nothing', () => {
    const extra: Headers = [
      ['toString', 'x'],
      ['__proto__', 'x'],
      ['constructor', 'x'],
      ['ce_extension', ''],
      ['ce_extension', 'twice'],
      ['ce_null', null],
      ['trace', invalidUtf8],
      ['', 'x'],
      ['CE_ID', 'other'],
      ['Content-Type', 'text/plain'],
    ]
    expect(decodeBinary([...extra, ...headers])).toEqual(decodeBinary(headers))
    expect(decodeBinary(extra)).toBe('record_undecodable')
  })

  const structured = (change: object) =>
    decode(
      record({
        value: JSON.stringify({
          specversion: '1.0',
          id: 'event-1',
          type,
          source: '/payouts',
          data: { a: 1 },
          ...change,
        }),
        headers: [['content-type', 'application/cloudevents+json']],
      }),
    )

  test.each(each(accepted))('in structured mode: %s may be %j', (name, value) => {
    expect(structured({ [name]: value })).toMatchObject({ data: { a: 1 } })
  })

  test.each(each(refused).filter(([, value]) => !Buffer.isBuffer(value)))(
    'in structured mode: a record whose %s is %j is undecodable',
    (name, value) => {
      // A null attribute counts as absent. Only time may be absent.
      const expected = name === 'time' && value === null ? { data: { a: 1 } } : 'record_undecodable'
      expect(structured({ [name]: value })).toEqual(
        typeof expected === 'string' ? expected : expect.objectContaining(expected),
      )
    },
  )

  test.each(['specversion', 'id', 'type', 'source', 'time'])('in structured mode: %s is a string', name => {
    for (const wrong of [1, 1.0, true, {}, [], ['1.0']])
      expect(structured({ [name]: wrong })).toBe('record_undecodable')
  })

  test('in structured mode: a lone surrogate is malformed', () => {
    for (const name of ['id', 'type']) expect(structured({ [name]: 'a\ud800' })).toBe('record_undecodable')
  })
})

describe('structured mode', () => {
  const decodeText = (value: string, contentType = 'application/cloudevents+json', more: Headers = []) =>
    decode(record({ value, headers: [['content-type', contentType], ...more] }))
  const event = (members: string) =>
    `{"specversion":"1.0","id":"event-1","type":"${type}","source":"/payouts"${members}}`

  test('reads the envelope from the value and ignores the headers', () => {
    const expected = { type, id: 'event-1', data: { a: 1 } }
    expect(decodeText(event(',"data":{"a":1}'))).toEqual(expected)
    expect(decodeText(event(',"data":{"a":1}'), 'Application/CloudEvents+JSON; charset=utf-8')).toEqual(expected)
    expect(
      decodeText(event(',"data":{"a":1}'), undefined, [
        ['ce_id', 'other'],
        ['ce_id', null],
      ]),
    ).toEqual(expected)
  })

  test.each([
    [',"datacontenttype":"application/json","data":{"a":1}', { a: 1 }],
    [',"datacontenttype":"application/json; charset=utf-8","data":{"a":1}', { a: 1 }],
    [',"datacontenttype":null,"data":{"a":1}', { a: 1 }],
    [',"subject":null,"extension":[1],"toString":1,"__proto__":{"id":"x"},"data":{"a":1}', { a: 1 }],
    [',"data":"text"', 'text'],
    [',"data":null', undefined],
    ['', undefined],
    [',"data_base64":"e30="', undefined],
  ])('accepts an envelope with %s', (members, data) => {
    expect(decodeText(event(members))).toEqual({ type, id: 'event-1', data })
  })

  test.each([
    'null',
    '[]',
    '"text"',
    '1',
    '{}',
    event(',"datacontenttype":"text/plain","data":{}'),
    event(',"datacontenttype":"","data":{}'),
    event(',"datacontenttype":1,"data":{}'),
    event(',"id":"event-1","data":{}'),
    event(',"data":{},"data":{}'),
    event(',"data":{"a":1,"a":1}'),
    `[${event(',"data":{}')}]`,
  ])('refuses %s as undecodable', value => {
    expect(decodeText(value)).toBe('record_undecodable')
  })

  test('counts the data object as level 1 of nesting, as in binary mode', () => {
    const nested = (depth: number) => event(`,"data":${'['.repeat(depth)}${']'.repeat(depth)}`)
    expect(decodeText(nested(32))).not.toBe('record_undecodable')
    expect(decodeText(nested(33))).toBe('record_undecodable')
  })
})
