/** Models that generators make of the AsyncAPI document or of `contract/events` have names, and amounts are texts. */
import { describe, expect, test } from 'vitest'
import { type EventType, schemaOfType } from '../../../schemas/events.ts'
import { keysOf } from '../../../schemas/objects.ts'
import { asyncapi } from '../../../schemas/reference/asyncapi.ts'
import { dataNameOf, named } from '../../../schemas/reference/named-schema.ts'
import { portableSchemas } from '../../../schemas/reference/portable-schema.ts'
import { compile } from '../../../schemas/validate.ts'
import { moneyPattern } from '../../../schemas/values.ts'
import { storedRecords } from '../../contract/contract.ts'

type Schema = { readonly [keyword: string]: unknown } & {
  readonly title?: string
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly items?: Schema
}
const messages = Object.values(asyncapi.components.messages) as unknown as { headers: Schema; payload: Schema }[]

/** The schema and all schemas in it. */
const allIn = (schema: Schema): Schema[] => [
  schema,
  ...[...Object.values(schema.properties ?? {}), schema.additionalProperties, schema.items].flatMap(one =>
    one === undefined ? [] : allIn(one),
  ),
]
const all = messages.flatMap(({ headers, payload }) => [...allIn(headers), ...allIn(payload)])

describe('in the AsyncAPI document', () => {
  test('every object and every enumeration has a name, and a name has one form', () => {
    const types = all.filter(({ type, enum: values }) => type === 'object' || values !== undefined)
    expect(types.length).toBeGreaterThan(25)
    expect(types.filter(({ title }) => title === undefined || !/^[A-Z][A-Za-z0-9]+$/.test(title))).toEqual([])
    const forms = Map.groupBy(types, ({ title }) => title)
    for (const [title, same] of forms)
      expect([title, new Set(same.map(one => JSON.stringify(one))).size]).toEqual([title, 1])
    expect([...forms.keys()]).toEqual(
      expect.arrayContaining(['PayoutCalculated', 'LineItem', 'LineItemCategory', 'TraceStep', 'ApiKeyCreated']),
    )
  })

  test('every amount is a text: generators take `not` with a type for any type but this one', () => {
    const amounts = all.filter(({ pattern }) => pattern === moneyPattern)
    expect(amounts.length).toBeGreaterThan(8)
    for (const { type, not } of amounts) expect([type, not]).toEqual(['string', { pattern: '^-0(?:\\.0+)?$' }])
  })

  test('no type is a union, and no `not` has a type', () => {
    expect(all.filter(schema => 'anyOf' in schema || 'oneOf' in schema)).toEqual([])
    expect(JSON.stringify(messages)).not.toMatch(/"not":\{[^}]*"type"/)
  })

  test('a schema with names gives each record of the contract the verdict of the schema of the projector', () => {
    const both = new Map(
      keysOf(schemaOfType).map(type => [
        type,
        [compile(schemaOfType[type]), compile(named(schemaOfType[type], dataNameOf(type)))] as const,
      ]),
    )
    const verdicts = { true: 0, false: 0 }
    for (const { type, value } of storedRecords()) {
      const validators = both.get(type as EventType)
      if (validators === undefined || typeof value !== 'string') continue
      const [ours, theirs] = validators.map(validate => validate(JSON.parse(value)))
      expect([type, value, theirs]).toEqual([type, value, ours])
      verdicts[ours ? 'true' : 'false']++
    }
    expect(verdicts.true).toBeGreaterThan(100)
    expect(verdicts.false).toBeGreaterThan(50)
  })
})

describe('in the schemas of contract/events', () => {
  const schemas = Object.entries(portableSchemas()) as [string, Schema][]
  const parts = schemas.flatMap(([, schema]) => allIn(schema).slice(1))

  test('the name of the data is the type of the event, and stays: models of two versions stand side by side', () => {
    expect(schemas.map(([, { title }]) => title)).toEqual(keysOf(schemaOfType))
  })

  test('every object and every enumeration in the data has the name that it has in the AsyncAPI document', () => {
    const inAsyncapi = new Set(all.map(({ title }) => title))
    const types = parts.filter(({ type, enum: values }) => type === 'object' || values !== undefined)
    expect(types.length).toBeGreaterThan(10)
    expect(types.filter(({ title }) => title === undefined || !inAsyncapi.has(title))).toEqual([])
  })

  test('no type is a union of constants, and every amount is a text: a generator for Java makes Object of a union', () => {
    expect(parts.filter(schema => 'anyOf' in schema || 'oneOf' in schema)).toEqual([])
    const amounts = parts.filter(({ pattern }) => pattern === moneyPattern)
    expect(amounts.length).toBeGreaterThan(8)
    for (const { type } of amounts) expect(type).toBe('string')
  })
})

test('a further version of an event has its number in the name', () => {
  expect(dataNameOf('commission.payroll.recorded.v2' as EventType)).toBe('PayrollRecorded2')
})

test('a union of objects has no name for each part, and is refused', () => {
  expect(() => named({ anyOf: [{ type: 'object' }, { type: 'null' }] }, 'Some')).toThrow('Some is a union')
})
