/** Any well-formed text, with code points from all of Unicode. */
import fc from 'fast-check'

const codePoint = fc.oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }), fc.nat(127))

export const anyText = (maxLength = 10): fc.Arbitrary<string> =>
  fc.array(codePoint, { maxLength }).map(points => String.fromCodePoint(...points))
