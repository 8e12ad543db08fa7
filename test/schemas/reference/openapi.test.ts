import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { createRoutes } from '../../../api/routes.ts'
import { type RefusalCode, refusals } from '../../../schemas/errors.ts'
import { openapi } from '../../../schemas/reference/openapi.ts'
import { formats } from '../../../schemas/values.ts'

type Described = {
  operationId: string
  summary: string
  tags: string[]
  security: object[]
  parameters: { name?: string; $ref?: string }[]
  responses: Record<string, { $ref?: string; headers?: object; content?: Record<string, { example?: unknown }> }>
}
const operations = Object.entries(openapi.paths).map(([path, { get }]) => [path, get as unknown as Described] as const)

const ajv = new Ajv2020({ strict: false, formats: { ...formats, 'uri-reference': true } })
ajv.addSchema({ $id: 'openapi', components: openapi.components })
const compiled = (schema: string) => ajv.compile({ $ref: `openapi#/components/schemas/${schema}` })

describe('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1, called API, of version 1.0.0', async () => {
    const result = await new Validator().validate(JSON.parse(JSON.stringify(openapi)))
    expect(result).toMatchObject({ valid: true })
    expect(openapi).toMatchObject({ openapi: '3.1.0', info: { title: 'API', version: '1.0.0' } })
  })

  test('has the licence of the package, with an identifier: a generator for Java refuses a document without it', () => {
    const { license } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8'))
    expect(openapi.info.license).toEqual({ name: license, identifier: `LicenseRef-${license}` })
  })

  test('describes the tag of each operation', () => {
    const used = new Set(operations.flatMap(([, { tags }]) => tags))
    expect(new Set(openapi.tags.map(({ name }) => name))).toEqual(used)
    for (const { name, description } of openapi.tags) expect(description, name).toMatch(/^[A-Z].*\.$/)
  })

  test('has the paths of the router and no others', () => {
    const nothing = () => Promise.reject(new Error('not called'))
    const router = createRoutes(
      {
        list: nothing,
        byIds: nothing,
        records: { version: nothing, record: nothing, statement: nothing },
        history: nothing,
        totals: nothing,
        checkpoint: nothing,
      },
      { record: nothing, hits: nothing },
      { confirm: nothing, remember: nothing },
      () => 0,
    )
    const routed = router.stack.map(({ path }) => String(path).replace('/api/v1', '').replace(':id', '{id}'))
    expect(Object.keys(openapi.paths).toSorted()).toEqual([...routed, '/openapi.json'].toSorted())
    expect(router.stack.every(({ methods }) => methods.toSorted().join() === 'GET,HEAD')).toBe(true)
  })

  test('offers only GET, with a unique operationId per path', () => {
    expect(Object.values(openapi.paths).flatMap(path => Object.keys(path))).toEqual(operations.map(() => 'get'))
    const names = operations.map(([, { operationId }]) => operationId)
    expect(new Set(names).size).toBe(names.length)
  })

  test('has no Markdown in a summary: a page shows it as plain text', () => {
    for (const [path, { summary }] of operations) expect(summary, path).toMatch(/^[^`*[\]]+\.$/)
  })

  test('requires a key everywhere except for itself', () => {
    for (const [path, { security }] of operations) {
      expect(security, path).toEqual(path === '/openapi.json' ? [] : [{ apiKey: [] }])
    }
  })

  test('sets no maximum for limit, and a minimum of 1', () => {
    expect(openapi.components.parameters.Limit.schema).toEqual({ type: 'integer', minimum: 1, default: 50 })
  })

  test.each(Object.keys(refusals) as RefusalCode[])('documents %s', code => {
    const status = refusals[code]
    const responses = openapi.components.responses as Record<string, unknown>
    expect(JSON.stringify(responses[`Refused${status}`])).toContain(`"code":"${code}"`)
    expect(operations.some(([, { responses }]) => String(status) in responses)).toBe(true)
  })

  test('documents the headers of every answer', () => {
    const page = openapi.paths['/payouts']?.get as unknown as Described
    expect(Object.keys(page.responses['200']?.headers ?? {}).toSorted()).toEqual(
      [
        'Cache-Control',
        'ETag',
        'Link',
        'Projection-Time',
        'RateLimit',
        'RateLimit-Policy',
        'Vary',
        'X-Content-Type-Options',
        'X-Request-Id',
      ].toSorted(),
    )
  })

  test('has examples that match their own schemas', () => {
    for (const [path, { responses }] of operations) {
      if (path === '/openapi.json') continue
      const content = responses['200']?.content?.['application/json'] as {
        schema: object
        example?: unknown
        examples?: Record<string, { value: unknown }>
      }
      const schema = JSON.parse(JSON.stringify(content.schema).replaceAll('"#/', '"openapi#/'))
      const validate = ajv.compile(schema)
      for (const example of content.examples ? Object.values(content.examples).map(of => of.value) : [content.example])
        expect(validate(example), `${path} ${JSON.stringify(validate.errors)}`).toBe(true)
    }
    for (const response of Object.values(
      openapi.components.responses as Record<string, Described['responses'][string]>,
    )) {
      const examples = (response.content?.['application/json'] as { examples?: Record<string, { value: unknown }> })
        ?.examples
      for (const { value } of Object.values(examples ?? {})) expect(compiled('Refusal')(value)).toBe(true)
    }
  })

  test('does not contain gross_amount, an organization or an offset', () => {
    const text = JSON.stringify(openapi)
    for (const word of ['gross_amount', 'org_id', 'until_seq', 'offset']) expect(text).not.toContain(word)
  })

  test('contains everything that it references', () => {
    const text = JSON.stringify(openapi)
    for (const [, section = '', name = ''] of text.matchAll(/"\$ref":"#\/components\/(\w+)\/([\w-]+)"/g)) {
      const components = openapi.components as unknown as Record<string, Record<string, unknown>>
      expect(components[section]?.[name], `${section}/${name}`).toBeDefined()
    }
  })

  test('names the kinds of change: a client generator makes one type of each, told apart by `kind`', () => {
    const { Change, PayoutChange } = openapi.components.schemas as Record<string, Schema>
    expect(Change).toMatchObject({
      oneOf: ['RepChange', 'PeriodChange', 'PayoutChange', 'PayrollChange'].map(name => ({
        $ref: `#/components/schemas/${name}`,
      })),
      discriminator: {
        propertyName: 'kind',
        mapping: { reps: '#/components/schemas/RepChange', payroll_files: '#/components/schemas/PayrollChange' },
      },
    })
    expect(PayoutChange?.properties?.record).toEqual({ $ref: '#/components/schemas/Payout' })
  })

  test('defines a part of several records once', () => {
    const { Payout, PayoutStep, PayrollRecord } = openapi.components.schemas as Record<string, Schema>
    expect(Payout?.properties?.line_items).toMatchObject({ items: { $ref: '#/components/schemas/LineItem' } })
    expect(PayrollRecord?.properties?.destination).toMatchObject({ $ref: '#/components/schemas/Destination' })
    expect(PayoutStep?.properties?.difference).toMatchObject({
      anyOf: [{ $ref: '#/components/schemas/Difference' }, { type: 'null' }],
    })
  })

  test('has texts for instants and dates: the date types of generated clients lose digits', () => {
    expect(JSON.stringify(openapi)).not.toMatch(/"format":"date/)
  })

  test('has no union in a parameter: generated clients of Go would not compile', () => {
    expect(JSON.stringify(openapi.components.parameters)).not.toContain('"anyOf"')
  })
})

type Schema = { readonly properties?: Readonly<Record<string, unknown>> }
