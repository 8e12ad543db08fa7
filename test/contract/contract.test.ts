/** `contract/` says what the schemas and the projector say now. */
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { parkCodes } from '../../schemas/errors.ts'
import { schemaOfType } from '../../schemas/events.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { CONTRACT, contractFiles, storedLog, storedRecords } from './contract.ts'
import { ERRORS_PAGE, errorsPage } from './errors-page.ts'
import { METRICS_PAGE, metricsPage } from './metrics-page.ts'
import { TOTALS_PICTURE, totalsPicture } from './totals-picture.ts'

const stored = (path: string): string => readFileSync(join(CONTRACT, path), 'utf8')
const records = storedRecords()

test('the files are those of the schemas and the rules; else run `npm run contract` and say in the changelog what changed', async () => {
  const files = await contractFiles(storedLog())
  for (const [path, content] of files) expect(stored(path) === content, path).toBe(true)
  const found = (await readdir(CONTRACT, { recursive: true })).filter(path => path.includes('.'))
  expect(found.toSorted()).toEqual([...files.keys(), 'README.md'].toSorted())
})

test('the load with Airbyte declares the fields of a change: destinations with typed tables get no others', () => {
  const load = parse(readFileSync(join(import.meta.dirname, '../../docs/examples/load/airbyte.yaml'), 'utf8'))
  const { PayoutChange } = JSON.parse(stored('openapi.json')).components.schemas
  const declared = Object.keys(load.streams[0].schema_loader.schema.properties)
  expect(declared.toSorted()).toEqual(PayoutChange.required.toSorted())
})

test('docs/errors.md is the catalogue of errors; else run `npm run contract`', () => {
  expect(readFileSync(ERRORS_PAGE, 'utf8') === errorsPage()).toBe(true)
})

test('the picture of docs/analysts.md is that of the first organization of the demo; else run `npm run contract`', () => {
  expect(readFileSync(TOTALS_PICTURE, 'utf8') === totalsPicture()).toBe(true)
})

test('docs/metrics.md has each metric of the sources; else run `npm run contract`', () => {
  expect(readFileSync(METRICS_PAGE, 'utf8') === metricsPage()).toBe(true)
  // Each program has the metrics of a process.
  const ofProcess = 'core/runtime/process-metrics.ts'
  const sources = ['core/projection/progress/metrics.ts', 'api/admin/metrics.ts', ofProcess, ofProcess].map(path =>
    readFileSync(join(import.meta.dirname, '../..', path), 'utf8'),
  )
  const names = sources.flatMap(text => [...text.matchAll(/\bname: '(\w+)',/g)].map(([, name]) => `| \`${name}\` |`))
  const rows = metricsPage().match(/^\| `\w+` \|/gm)
  expect(rows?.toSorted()).toEqual(names.toSorted())
  expect(names.length).toBeGreaterThan(20)
})

test('the records have every verdict but two: of a batch that cannot be read, and of a chain of 10,000 records', () => {
  const left = ['batch_undecodable', 'chain_too_long']
  const verdicts = new Set(records.map(({ verdict }) => verdict))
  const expected = ['applied', 'duplicate', ...parkCodes.filter(code => !left.includes(code))]
  expect([...verdicts].toSorted()).toEqual(expected.toSorted())
})

test('a schema refuses no record that the projector applies', () => {
  const refused = records.filter(({ schema }) => schema === 'refuses')
  expect(new Set(refused.map(({ verdict }) => verdict))).toEqual(new Set(['data_invalid']))
  expect(refused.length).toBeGreaterThan(50)
})

test('no schema has a format or a look-around', () => {
  for (const type of Object.keys(schemaOfType)) {
    const text = stored(`events/${type}.json`)
    expect(text).not.toContain('"format"')
    expect(text).not.toMatch(/\(\?[=!<]/)
  }
})

test('the partitions in the README of contract/ are those that the projector expects', () => {
  const rows = [
    ...readFileSync(join(CONTRACT, 'README.md'), 'utf8').matchAll(/^\| `(org_\w+)` \| (\d+) \| (\d+) \|$/gm),
  ]
  expect(rows.length).toBeGreaterThanOrEqual(3)
  for (const [, org = '', ofSix, ofTwelve] of rows) {
    expect([partitionOf(org, 6), partitionOf(org, 12)]).toEqual([Number(ofSix), Number(ofTwelve)])
  }
})
