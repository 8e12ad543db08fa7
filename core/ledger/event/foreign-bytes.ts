/**
 * Recognizes bytes that are no JSON in UTF-8, by how they begin: encodings and compressions that clients write by
 * mistake. Says nothing of the content.
 */

export type ForeignKind = 'byte-order mark' | 'utf-16' | 'compressed' | 'framed'
type ForeignForm = { readonly kind: ForeignKind; readonly name: string }

const forms: readonly (readonly [begin: readonly number[], kind: ForeignKind, name: string])[] = [
  [[0xef, 0xbb, 0xbf], 'byte-order mark', 'a byte-order mark (EF BB BF) in front of UTF-8'],
  [[0xff, 0xfe], 'utf-16', 'UTF-16 (it begins with FF FE)'],
  [[0xfe, 0xff], 'utf-16', 'UTF-16 (it begins with FE FF)'],
  [[0x1f, 0x8b], 'compressed', 'gzip (it begins with 1F 8B)'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed', 'zstd (it begins with 28 B5 2F FD)'],
  [[0x04, 0x22, 0x4d, 0x18], 'compressed', 'LZ4 (it begins with 04 22 4D 18)'],
  [[0x50, 0x4b, 0x03, 0x04], 'compressed', 'a ZIP file (it begins with 50 4B 03 04)'],
]
const utf16 = { kind: 'utf-16', name: 'UTF-16 without a byte-order mark' } as const
const framed = { kind: 'framed', name: 'a zero byte in front, as clients of a schema registry write it' } as const

/** Returns undefined if none is recognized. */
export const foreignForm = (bytes: Buffer): ForeignForm | undefined => {
  const known = forms.find(([begin]) => begin.every((byte, index) => bytes[index] === byte))
  if (known) return { kind: known[1], name: known[2] }
  const [first, second, third, fourth] = bytes
  if (second === 0 && fourth === 0 && first !== 0) return utf16
  if (first === 0 && third === 0 && second !== 0) return utf16
  return first === 0 && bytes.length > 5 ? framed : undefined
}
