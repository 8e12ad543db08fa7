import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { framed } from '../../../../core/runtime/status/frame.ts'

/** The colours of a style sheet, by their names. */
const coloursOf = (styles: string): Map<string, string> =>
  new Map(
    [...styles.matchAll(/(--[a-z-]+): (light-dark\([^)]*\));/g)].map(([, name = '', colour = '']) => [name, colour]),
  )

test('the status pages have the colours of the explorer', () => {
  const explorer = coloursOf(readFileSync(new URL('../../../../explorer/style.css', import.meta.url), 'utf8'))
  const status = coloursOf(framed('', ''))
  expect(status.size).toBeGreaterThan(5)
  expect(explorer).toEqual(new Map([...explorer, ...status]))
})
