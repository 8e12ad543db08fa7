import { describe, expect, test } from 'vitest'
import { isNotModified } from '../../api/answer-page.ts'

describe('If-None-Match', () => {
  test.each(['"a"', '*', ' * ', 'W/"a"', '"b", "a"', '"b","a"', '"b" , W/"a"', '"x, y", "a"'])(
    '%s names "a"',
    header => {
      expect(isNotModified(header, '"a"')).toBe(true)
    },
  )

  test.each(['', '"b"', 'a', '"A"', '"a', '"*"', '"aa"', '*, "b"', 'W/"b"', '"b", "c"'])('%s does not', header => {
    expect(isNotModified(header, '"a"')).toBe(false)
  })
})
