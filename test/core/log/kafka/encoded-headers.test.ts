/** Records as a broker sends them. */
import { describe, expect, test } from 'vitest'
import { newLayout, readLayout, recordOf } from '../../../../core/log/batch/record-batch.ts'
import { EncodedHeaders, encodeHeaders, NO_HEADERS } from '../../../../core/log/kafka/encoded-headers.ts'
import { varint as varInt } from '../../../support/record-batches.ts'

type Value = Buffer | null

const sized = (bytes: Value): Buffer => (bytes === null ? varInt(-1) : Buffer.concat([varInt(bytes.length), bytes]))

/** The body of a record: attributes, timestamp and offset of 0, key, value and headers. */
const bodyOf = (headers: readonly (readonly [string, Value])[]): Buffer =>
  Buffer.concat([
    Buffer.from([0]),
    varInt(0),
    varInt(0),
    sized(Buffer.from('org_1')),
    sized(Buffer.from('{}')),
    varInt(headers.length),
    ...headers.flatMap(([name, value]) => [sized(Buffer.from(name)), sized(value)]),
  ])
const decoded = (body: Buffer) => {
  const layout = newLayout()
  readLayout(body, 0, body.length, layout)
  const { headers, ...record } = recordOf(body, body.length, layout, 0, { appended: false, base: 0n, max: 0n })
  // Read twice: the first read must not consume the headers.
  expect([...headers]).toEqual([...headers])
  return { ...record, headers: [...headers] }
}
const read = (headers: readonly (readonly [string, Value])[]) => decoded(bodyOf(headers))

const text = (value: string) => Buffer.from(value)

describe('a record', () => {
  test('reads headers in order, also repeated ones', () => {
    const written: [string, Value][] = [
      ['a', text('1')],
      ['b', null],
      ['a', text('2')],
      ['c', text('')],
      ['a', null],
      ['b', text('3')],
    ]
    const { key, value, headers } = read(written)
    expect([key, value]).toEqual([text('org_1'), text('{}')])
    expect(headers).toEqual(written)
  })

  test('has no name with a negative length: the Java client refuses it', () => {
    const body = Buffer.concat([bodyOf([]).subarray(0, -1), varInt(1), varInt(-1), sized(text('x'))])
    expect(() => decoded(body)).toThrow('records_malformed')
  })

  test('keeps the bytes of a name that is not UTF-8, and encodes them again unchanged', () => {
    const name = Buffer.from([0x78, 0xff, 0x79])
    const body = Buffer.concat([
      bodyOf([]).subarray(0, -1),
      varInt(2),
      sized(name),
      sized(text('1')),
      sized(text('é')),
      sized(null),
    ])
    const { headers } = decoded(body)
    expect(headers).toEqual([
      ['x\ufffdy', text('1'), name],
      ['é', null],
    ])
    expect(encodeHeaders(headers).bytes).toEqual(body.subarray(bodyOf([]).length - 1))
  })

  test('decodes headers lazily, only as far as they are read', () => {
    const millions = Buffer.concat([varInt(25_000_000), sized(text('a')), sized(text('1'))])
    expect(new EncodedHeaders(millions)[Symbol.iterator]().next().value).toEqual(['a', text('1')])
  })

  test('reads any negative length as null, as the broker does', () => {
    for (const negative of [-1, -2, -6, -1_000, -(2 ** 31)]) {
      const none = varInt(negative)
      const body = Buffer.concat([
        Buffer.from([0, 0, 0]),
        none,
        none,
        varInt(2),
        sized(text('x')),
        none,
        sized(text('ce_id')),
        sized(text('1')),
      ])
      const { key, value, headers } = decoded(body)
      expect([key, value]).toEqual([null, null])
      expect(headers).toEqual([
        ['x', null],
        ['ce_id', text('1')],
      ])
      const { bytes } = encodeHeaders([])
      expect(
        new EncodedHeaders(Buffer.concat([varInt(1), sized(text('x')), none, bytes])).textsOf([text('x')]),
      ).toEqual([null])
    }
  })

  test('ends with its bytes, whatever number and lengths of headers it claims', () => {
    const begun = performance.now()
    const many = Buffer.concat([Buffer.from([0, 0, 0]), sized(null), sized(null), varInt(2 ** 31 - 1)])
    expect(() => decoded(many)).toThrow('records_malformed')
    const long = new EncodedHeaders(
      Buffer.concat([varInt(2 ** 31 - 1), sized(text('x')), varInt(2 ** 31 - 1), text('abc')]),
    )
    expect([...long]).toEqual([['x', text('abc')]])
    expect(long.textsOf([text('x')])).toEqual(['abc'])
    // A negative length in the middle would lead back to the name before it again and again.
    const back = Buffer.concat([
      sized(Buffer.alloc(1_000_000)),
      varInt(-1_000_000),
      ...Array<Buffer>(20_000).fill(Buffer.from([0, 0])),
    ])
    expect([...new EncodedHeaders(Buffer.concat([varInt(20_001), back]))]).toHaveLength(20_001)
    // Takes milliseconds. Without a stop, or with steps backwards, it takes minutes.
    expect(performance.now() - begun).toBeLessThan(5_000)
  })

  test('reads a record without headers', () => {
    expect(read([]).headers).toEqual([])
  })

  test.each(['toString', '__proto__', 'constructor', 'hasOwnProperty', ''])(
    'reads a header named %j like any other',
    name => {
      expect(read([[name, text('x')]]).headers).toEqual([[name, text('x')]])
      const twice: [string, Value][] = [
        [name, text('x')],
        [name, text('y')],
      ]
      expect(read(twice).headers).toEqual(twice)
    },
  )

  test('reads 10,000 headers quickly: kafkajs takes half a minute', () => {
    const different = Array.from({ length: 10_000 }, (_, at) => [`h${at}`, text('x')] as const)
    expect(read(different).headers).toHaveLength(10_000)
    const same = Array.from({ length: 10_000 }, () => ['h', text('x')] as const)
    expect(read(same).headers).toHaveLength(10_000)
  })
})

describe('the text of given headers', () => {
  const names = ['a', 'ce_id', 'ce_type'].map(text)
  const textsOf = (...headers: [string, Value][]) => encodeHeaders(headers).textsOf(names)

  test('is found among all headers, in the order of the given names', () => {
    expect(textsOf(['x', text('1')], ['ce_type', text('2')], ['ce_i', text('3')], ['ce_id', text('')])).toEqual([
      undefined,
      '',
      '2',
    ])
    expect(textsOf(['ce_idd', text('1')], ['Ce_id', text('2')], ['', text('3')], ['é', null])).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect(NO_HEADERS.textsOf(names)).toEqual([undefined, undefined, undefined])
  })

  test('is any valid UTF-8, and null otherwise', () => {
    for (const each of ['a'.repeat(1_000), 'é', 'a 😀 z', '\u0000', '\ufeff'])
      expect(textsOf(['a', text(each)])[0]).toBe(each)
    for (const each of [[0xff], [0x61, 0xc3], [0xed, 0xa0, 0x80]])
      expect(textsOf(['a', Buffer.from(each)])[0]).toBeNull()
  })

  test('is null for a header without a value or with several values', () => {
    expect(textsOf(['a', null])[0]).toBeNull()
    for (const values of [
      ['1', '1'],
      ['1', null],
      [null, '1'],
      ['', ''],
      ['1', '2', '3'],
    ]) {
      expect(
        textsOf(...values.map((value): [string, Value] => ['a', value === null ? null : text(value)]))[0],
      ).toBeNull()
    }
  })
})
