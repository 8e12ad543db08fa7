import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { nameOf, StopError, stops } from '../../../core/runtime/failures.ts'

describe('docs/operating.md', () => {
  const operating = readFileSync(new URL('../../../docs/operating.md', import.meta.url), 'utf8')
  const table = [...operating.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, code]) => code)

  test('lists exactly the codes that stop the projector', () => {
    expect(table).toEqual(Object.keys(stops))
  })
})

describe('an error that stops the projector', () => {
  test('has a message in our own words, with its code and place', () => {
    const error = new StopError('index_missing', 'commission-g1-reps', { partition: 3 })
    expect(error).toMatchObject({ name: 'StopError', code: 'index_missing', where: { partition: 3 } })
    expect(error.message).toBe(`${stops.index_missing}: commission-g1-reps`)
  })

  test('from another library is named by its class: its message can quote a document', () => {
    expect(nameOf(new TypeError('quotes'))).toBe('TypeError')
    expect(nameOf(new StopError('defect', 'x'))).toBe('defect')
    expect([nameOf('quotes'), nameOf(undefined), nameOf({ message: 'quotes' })]).toEqual([
      'string',
      'undefined',
      'object',
    ])
  })
})
