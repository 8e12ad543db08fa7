import { deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import { concernOf, hasText } from '../../../tools/subjects/person-in-bytes.ts'

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
    expect(hasText(Buffer.from(bytes), [Buffer.from('Zoë Canary')])).toBe(true)
    expect(hasText(Buffer.from(bytes), [Buffer.from('Zoë Other')])).toBe(false)
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
