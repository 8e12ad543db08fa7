/** `contract/sealed.json` opens as the API opens, and the example of TypeScript seals as it says. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openText } from '../../core/reading/sealed/open-text.ts'
import { sealText } from '../../docs/examples/publish/typescript/seal.ts'
import { parseSealedText, type SealedField } from '../../schemas/sealed/sealed-text.ts'
import { CONTRACT } from './contract.ts'

type Vector = {
  readonly organization: string
  readonly record: string
  readonly field: SealedField
  readonly text: string
  readonly key_id: string
  readonly sealed: string
}
type Vectors = {
  readonly keys: Readonly<Record<string, string>>
  readonly sealed: readonly Vector[]
  readonly unreadable: readonly (Vector & { readonly why: string })[]
}
const vectors: Vectors = JSON.parse(readFileSync(join(CONTRACT, 'sealed.json'), 'utf8'))

const opened = ({ organization: org, record, field, sealed }: Vector): string | undefined => {
  const parsed = parseSealedText(sealed)
  const key = Buffer.from(vectors.keys[parsed?.keyId ?? ''] ?? '', 'base64')
  return parsed && openText(parsed, key, { org, record, field })
}

test.each(vectors.sealed.map(vector => [vector.sealed.slice(0, 40), vector]))(
  '%s… opens, and is sealed again to itself',
  (_, vector) => {
    expect(opened(vector)).toBe(vector.text)
    const { organization, record, field, key_id, text } = vector
    const key = Buffer.from(vectors.keys[key_id] ?? '', 'base64')
    expect(sealText(text, key, key_id, [organization, record, field])).toBe(vector.sealed)
  },
)

test.each(vectors.unreadable.map(vector => [vector.why, vector]))('%s does not open', (_, vector) => {
  expect(opened(vector)).toBeUndefined()
})
