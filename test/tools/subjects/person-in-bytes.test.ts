import { deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import { concernOf, searchFor } from '../../../tools/subjects/person-in-bytes.ts'

const subject = { org: 'org_a', rep: 'rep_1' }
const text = '{"org_id":"org_a","id":"rep_1","name":"Zoë Canary"'
const escaped = (all: string): string => all.replace(/[a-z]/g, one => `\\u00${one.charCodeAt(0).toString(16)}`)
const utf16 = (all: string): Buffer => Buffer.from(`\ufeff${all}`, 'utf16le')
const recordOf = (value: Buffer | string | null, key: string | null = 'org_a', headers: [string, string][] = []) => ({
  key: key === null ? null : Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
  headers: encodeHeaders(headers.map(([name, header]) => [name, Buffer.from(header)])),
})
const base64 = (bytes: Buffer | string): string => Buffer.from(bytes).toString('base64')

const forms: [string, Buffer | string][] = [
  ['as they are', text],
  ['with JSON escapes', escaped(text)],
  ['with percent signs', encodeURIComponent(text)],
  ['in UTF-16', utf16(text)],
  ['in UTF-16 of the other order', utf16(text).swap16()],
  ['in UTF-16 at an odd offset', Buffer.concat([Buffer.of(0x7b), utf16(text)])],
  ['in base64', `{"data_base64":"${base64(text)}"}`],
  [
    'in base64 of JSON with escaped slashes and line breaks',
    `{"data_base64":"${base64(`???${text}???`).replace(/\//g, '\\/').replace(/.{40}/g, '$&\\r\\n')}"}`,
  ],
  ['in hexadecimal digits', Buffer.from(text).toString('hex')],
  ['in gzip', gzipSync(text)],
  ['in gzip that is cut off', gzipSync(text.repeat(100)).subarray(0, -12)],
  ['in zlib', deflateSync(text)],
  ['in zstd', zstdCompressSync(text)],
  ['in base64 of gzip of UTF-16', `{"data_base64":"${base64(gzipSync(utf16(text)))}"}`],
]

describe('the ids of a person are found', () => {
  test.each(forms)('%s', (_, bytes) => {
    expect(concernOf(recordOf(bytes), subject)).toBe('named')
    expect(concernOf(recordOf(bytes, 'org_b'), subject)).toBe('named')
    expect(concernOf(recordOf(bytes), { ...subject, rep: 'rep_2' })).toBe('other')
    expect(concernOf(recordOf(bytes, 'org_b'), { ...subject, org: 'org_c' })).toBe('other')
    expect(searchFor(['Zoë Canary']).isIn(Buffer.from(bytes))).toBe(true)
    expect(searchFor(['Zoë Other']).isIn(Buffer.from(bytes))).toBe(false)
  })

  test('in the key, in names and in values of headers', () => {
    expect(concernOf(recordOf('x', 'rep_1 of org_a'), subject)).toBe('named')
    expect(concernOf(recordOf('x', 'org_a', [['rep_1', '']]), subject)).toBe('named')
    expect(concernOf(recordOf(null, 'org_a', [['x', 'about rep_1']]), subject)).toBe('named')
  })
})

test('an id that only begins or ends as that of the person is another one', () => {
  for (const id of ['rep_11', 'rep_1a']) expect(concernOf(recordOf(`{"id":"${id}"`), subject)).toBe('other')
  expect(concernOf(recordOf('{"id":"xrep_1","rep_id":"rep_2"'), subject)).toBe('other')
})

test('bytes that nobody can read, and a rep without an organization, are never taken for those of others', () => {
  expect(concernOf(recordOf(Buffer.from([1, 2, 3, 0xff])), subject)).toBe('unread')
  expect(concernOf(recordOf('Zoë Canary has left', null), subject)).toBe('unread')
  expect(concernOf(recordOf(gzipSync(text).fill(7, 12)), subject)).toBe('unread')
  expect(concernOf(recordOf('{"id":"rep_1"', null), subject)).toBe('unread')
  expect(concernOf(recordOf('{"id":"rep_1"', 'no organization'), subject)).toBe('unread')
  expect(concernOf(recordOf(Buffer.from([1, 2, 3]), 'org_b'), subject)).toBe('other')
  expect(concernOf(recordOf(null), subject)).toBe('other')
})

test('a record that an earlier redaction has blanked has nothing of anybody', () => {
  for (const key of [null, 'org_a', 'redacted']) expect(concernOf(recordOf('redacted', key), subject)).toBe('other')
  expect(concernOf(recordOf('redacted', null, [['commission-undecodable-batch', '1 3 4']]), subject)).toBe('other')
  expect(concernOf(recordOf('redacted', 'Zoë Canary'), subject)).toBe('unread')
  expect(concernOf(recordOf('redacted', 'org_a', [['x', 'Zoë Canary']]), subject)).toBe('unread')
})

describe('a text of a person is found', () => {
  const isIn = (place: string, ...texts: string[]) => searchFor(texts).isIn(Buffer.from(place))

  test('in any case, however its letters are composed', () => {
    for (const place of [
      'ZOE\u0308 CANARY',
      'zo\u00eb canary',
      '{"note":"of Zoe\\u0308 Canary"}',
      '\uff3ao\u00eb\u00a0Canary',
    ])
      expect(isIn(place, 'Another', ' Zo\u00eb Canary ')).toBe(true)
    expect([
      isIn('STRASSER', 'Stra\u00dfer'),
      isIn('\u039d\u03af\u03ba\u03bf\u03c2', '\u039d\u0399\u0301\u039a\u039f\u03a3'),
    ]).toEqual([true, true])
    expect([isIn('Zoe Canary', 'Zo\u00eb Canary'), isIn('a.b(c', 'a+b(c')]).toEqual([false, false])
  })

  test('with the Turkish dot of an I and without it, and with Greek accents and without them', () => {
    for (const place of ['ibrahim kaya', 'IBRAHIM KAYA', '\u0130BRAH\u0130M KAYA', '\u0131brah\u0131m Kaya'])
      expect(isIn(place, '\u0130brahim Kaya')).toBe(true)
    expect(isIn('\u0130BRAH\u0130M KAYA', 'Ibrahim Kaya')).toBe(true)
    const greek = '\u039d\u03af\u03ba\u03bf\u03c2'
    expect([isIn('\u039d\u0399\u039a\u039f\u03a3', greek), isIn(greek, '\u039d\u0399\u039a\u039f\u03a3')]).toEqual([
      true,
      true,
    ])
  })

  test('with a tab or the end of a line, also as JSON writes it', () => {
    for (const name of ['Zoe\tCanary', 'Zoe\nCanary'])
      expect([isIn(JSON.stringify({ note: `of ${name}` }), name), isIn(`of ${name}`, name)]).toEqual([true, true])
  })

  test('of two or three letters, as a word of its own', () => {
    for (const place of ['for LI', 'Li\u2019s share', '{"note":"\\nLi, too"}', '"Li"'])
      expect(isIn(place, 'Li')).toBe(true)
    for (const place of ['list', 'Ali', 'Li7', 'Lie\u0301', 'rep_Li9']) expect(isIn(place, 'Li')).toBe(false)
    expect([isIn('Johann', 'Johan'), isIn('for Zo\u00eb', 'Zoe\u0308')]).toEqual([true, true])
  })

  test('of two or three characters of a script that has no spaces or joins particles, anywhere', () => {
    for (const [place, text] of [
      ['\u652f\u4ed8\u5f20\u4e09\u4f63\u91d1', '\u5f20\u4e09'],
      ['\uae40\ubbfc\uc218\ub294', '\uae40\ubbfc\uc218'.normalize('NFD')],
      ['\u05dc\u05d3\u05df', '\u05d3\u05df'],
      ['\u0648\u0639\u0644\u064a', '\u0639\u0644\u064a'],
    ] as const)
      expect(isIn(place, text)).toBe(true)
  })

  test('unless it has one character: such texts are counted', () => {
    const search = searchFor(['A', 'e\u0301', '\u674e', 'Li', 'li', '', ' '])
    expect(search).toMatchObject({ searched: 1, unsearched: 3 })
    expect(search.isIn(Buffer.from('A \u674e'))).toBe(false)
    expect(searchFor(['A', '']).isIn(Buffer.from('A'))).toBe(false)
  })
})
