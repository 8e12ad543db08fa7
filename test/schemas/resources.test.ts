import type { Static } from 'typebox'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { recordExamples } from '../../schemas/reference/examples.ts'
import { type Payout, type ResourceName, resources } from '../../schemas/resources.ts'
import { compile } from '../../schemas/validate.ts'

type Shape = { readonly properties: object; readonly required: readonly string[] }
/** All kinds of change have the same fields. */
const shapeOf = (name: ResourceName): Shape => {
  const schema = resources[name]
  return 'anyOf' in schema ? schema.anyOf[0] : schema
}
/** Marks of texts that were sealed. Nearly all records have none. */
/** Marks of sealed texts, and the rows of totals of a deal. */
const sometimes = ['erased', 'unreadable', 'line_totals']
const alwaysThere = (name: ResourceName): string[] => fieldsOf(name).filter(field => !sometimes.includes(field))
const fieldsOf = (name: ResourceName): string[] => Object.keys(shapeOf(name).properties)

describe('a resource', () => {
  test('has exactly the fields of the contract', () => {
    const payout = [
      'id',
      'rep_id',
      'period_id',
      'net_amount',
      'earned_amount',
      'currency',
      'supersedes_id',
      'superseded_by_id',
      'calculated_at',
      'recorded_at',
      'line_items',
    ]
    expect(fieldsOf('Rep')).toEqual([
      'id',
      'name',
      'email',
      'status',
      'started_on',
      'departed_on',
      'erased',
      'unreadable',
    ])
    expect(fieldsOf('Period')).toEqual(['id', 'kind', 'name', 'timezone', 'starts_at', 'ends_at'])
    expect(fieldsOf('Payout')).toEqual(payout)
    expect(fieldsOf('Statement')).toEqual([...payout, 'calculation_trace_recorded', 'calculation_trace'])
    expect(fieldsOf('PayrollRecord')).toEqual([
      'id',
      'rep_id',
      'period_id',
      'payout_id',
      'reverses_id',
      'amount',
      'currency',
      'destination',
      'recorded_at',
    ])
  })

  test.each(Object.keys(resources) as ResourceName[])('requires every field of %s, and its example has them', name => {
    const validate = compile(resources[name])
    expect(shapeOf(name).required).toEqual(alwaysThere(name))
    expect(validate(recordExamples[name]), JSON.stringify(validate.errors)).toBe(true)
    expect(Object.keys(recordExamples[name]).toSorted()).toEqual(alwaysThere(name).toSorted())
    for (const field of alwaysThere(name)) {
      expect(validate({ ...recordExamples[name], [field]: undefined }), field).toBe(false)
    }
  })

  test('has amounts that are text, never numbers', () => {
    expectTypeOf<Static<typeof Payout>['net_amount']>().toEqualTypeOf<string>()
    const validate = compile(resources.Payout)
    expect(validate({ ...recordExamples.Payout, net_amount: 1034.6 })).toBe(false)
    expect(validate({ ...recordExamples.Payout, net_amount: '-0' })).toBe(false)
  })
})
