/**
 * Recognizes bytes that are no JSON in UTF-8, by how they begin: encodings and compressions that clients write by
 * mistake. Says nothing of the content.
 */

const forms: readonly (readonly [begin: readonly number[], name: string])[] = [
  [[0xef, 0xbb, 0xbf], 'a byte-order mark (EF BB BF) in front of UTF-8'],
  [[0xff, 0xfe], 'UTF-16 (it begins with FF FE)'],
  [[0xfe, 0xff], 'UTF-16 (it begins with FE FF)'],
  [[0x1f, 0x8b], 'gzip (it begins with 1F 8B)'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'zstd (it begins with 28 B5 2F FD)'],
  [[0x04, 0x22, 0x4d, 0x18], 'LZ4 (it begins with 04 22 4D 18)'],
  [[0x50, 0x4b, 0x03, 0x04], 'a ZIP file (it begins with 50 4B 03 04)'],
]

/** Returns the name of the form; undefined if none is recognized. */
export const foreignForm = (bytes: Buffer): string | undefined => {
  const known = forms.find(([begin]) => begin.every((byte, index) => bytes[index] === byte))
  if (known) return known[1]
  const [first, second, third, fourth] = bytes
  if (second === 0 && fourth === 0 && first !== 0) return 'UTF-16 without a byte-order mark'
  if (first === 0 && third === 0 && second !== 0) return 'UTF-16 without a byte-order mark'
  if (first === 0 && bytes.length > 5) return 'a zero byte in front, as clients of a schema registry write it'
  return undefined
}
