/** The pages for publishers list the fields of events as the schemas have them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TObject, TSchema } from 'typebox'
import { expect, test } from 'vitest'
import { eventSchemas, LineItem, TraceStep } from '../../schemas/events.ts'
import { sealedFields } from '../../schemas/sealed/sealed-text.ts'

const read = (page: string) => readFileSync(join(import.meta.dirname, '..', '..', page), 'utf8')
const publishing = read('docs/publishing.md')

/** A field as docs/publishing.md writes it: `email?` may be null, `[expires_at?]` may also be absent. */
const fieldOf = (name: string, schema: TSchema, isRequired: boolean): string => {
  const mayBeNull = 'type' in schema && Array.isArray(schema.type) && schema.type.includes('null')
  const field = mayBeNull ? `${name}?` : name
  return isRequired ? field : `[${field}]`
}

const fieldsOf = ({ properties, required }: TObject): string[] =>
  Object.entries(properties).map(([name, schema]) => fieldOf(name, schema, required.includes(name)))

/** The fields of a list in the page, without the explanations in parentheses and braces. */
const fieldsIn = (list: string): string[] => list.replaceAll(/ ?(?:\([^)]*\)|\{[^}]*\})/g, '').split(', ')

test('docs/publishing.md has every type of event, with all fields, in order, and those that may be null or absent', () => {
  const rows = [...publishing.matchAll(/^\| `(commission\.[\w.]+)` \| `([^`]+)`/gm)]
  const listed = rows.map(([, type, fields = '']) => [type, fieldsIn(fields)])
  const schemas = Object.entries({ ...eventSchemas.events, ...eventSchemas['api-keys'] })
  expect(listed).toEqual(schemas.map(([type, schema]) => [type, fieldsOf(schema)]))
})

test('docs/publishing.md has all fields of a line item and of a step of a trace', () => {
  const [, item = ''] = /A line item is `\{([^`]+)\}`/.exec(publishing) ?? []
  const [, step = ''] = /A trace step is\s+`\{([^`]+)\}`/.exec(publishing) ?? []
  expect([fieldsIn(item), fieldsIn(step)]).toEqual([fieldsOf(LineItem), fieldsOf(TraceStep)])
})

test('docs/privacy.md and docs/publishing.md name the fields that may be sealed', () => {
  const [, table = ''] = /^## Personal fields\n(.+?)\n\n[^|]/ms.exec(read('docs/privacy.md')) ?? []
  const rows = [...table.matchAll(/^\| (.+) \| .+ \| yes \|$/gm)].flatMap(([, fields = '']) => fields.split(', '))
  const sealed = Object.values(sealedFields).flat()
  expect(rows).toEqual(sealed.map(field => `\`${field}\``))
  const [, section = ''] = /^## Sealed texts\n(.+?)^```/ms.exec(publishing) ?? []
  expect(sealed.filter(field => !section.includes(`\`${field.split('.').at(-1)}\``))).toEqual([])
})
