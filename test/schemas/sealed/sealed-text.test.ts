import { describe, expect, test } from 'vitest'
import { additionalData, isReserved, parseSealedText } from '../../../schemas/sealed/sealed-text.ts'
import { NullablePersonalText, PersonalText } from '../../../schemas/values.ts'
import { table } from '../table.ts'

const bytes28 = 'A'.repeat(38)

describe('a personal text', () => {
  const plain = ['', 'Ada', 'sealed', 'sealed:', 'sealed: see the file', 'sealed:v:1', 'Sealed:v1:', '😀'.repeat(1_000)]
  const sealed = [
    `sealed:v1:k:${bytes28}`,
    `sealed:v1:0123456789abcdef_-:${'_-09azAZ'.repeat(900)}`,
    `sealed:v1:${'k'.repeat(64)}:${'A'.repeat(39)}`,
    `sealed:v1:k:${'A'.repeat(8_000 - 'sealed:v1:k:'.length)}`,
  ]
  const refused = [
    '😀'.repeat(1_001),
    'sealed:v1:',
    'sealed:v1:k:',
    `sealed:v1:k:${'A'.repeat(37)}`,
    `sealed:v1:k:${'A'.repeat(41)}`,
    `sealed:v1:k:${bytes28}=`,
    `sealed:v1:k:${bytes28}\n`,
    `sealed:v1:k:+/${bytes28}`,
    `sealed:v1:K:${bytes28}`,
    `sealed:v1:-k:${bytes28}`,
    `sealed:v1:../k:${bytes28}`,
    `sealed:v1:${'k'.repeat(65)}:${bytes28}`,
    `sealed:v1::${bytes28}`,
    `sealed:v1:k:${bytes28}:`,
    `sealed:v2:k:${bytes28}`,
    `sealed:v10:k:${bytes28}`,
    `sealed:v1:k:${'A'.repeat(8_004 - 'sealed:v1:k:'.length)}`,
    7,
  ]
  table(PersonalText, [...plain, ...sealed], [...refused, null])
  table(NullablePersonalText, [...plain, ...sealed, null], refused)

  test('is parsed into key id and bytes only if the schema accepts it as sealed', () => {
    expect(parseSealedText(`sealed:v1:k_1:${bytes28}`)).toEqual({ keyId: 'k_1', base64url: bytes28 })
    for (const text of [...plain, ...refused].filter(text => typeof text === 'string')) {
      if (text.length < 8_000) expect(parseSealedText(text), text).toBeUndefined()
    }
    expect(plain.filter(isReserved)).toEqual([])
  })
})

test('two places never have the same additional data', () => {
  const places = ['org_a', 'org_ab'].flatMap(org =>
    ['rep_1', 'brep_1'].flatMap(record => (['name', 'email'] as const).map(field => ({ org, record, field }))),
  )
  expect(new Set(places.map(additionalData)).size).toBe(places.length)
})
