/** Written files of the chart are the present ones: the schema of its values, its nginx. It is about this version. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { CHART, EXPLORER_CONFIGURATION, explorerConfiguration, VALUES_SCHEMA, valuesSchema } from './chart-files.ts'

test('the schema of the values is that of the settings; else run `npm run contract`', () => {
  expect(readFileSync(VALUES_SCHEMA, 'utf8') === valuesSchema()).toBe(true)
})

test('the nginx of the explorer is that of the documented example; else run `npm run contract`', () => {
  expect(readFileSync(EXPLORER_CONFIGURATION, 'utf8') === explorerConfiguration()).toBe(true)
})

test('no secret is a value of the chart', () => {
  const { properties } = JSON.parse(valuesSchema())
  for (const process of ['kafka', 'elasticsearch', 'projector', 'api', 'topics', 'commands']) {
    const names = Object.keys(properties[process].properties.settings.properties)
    expect(names.length).toBeGreaterThan(0)
    expect(names.filter(name => /PASSWORD|API_KEY$|REDIS/.test(name))).toEqual([])
  }
})

test('the chart has the version of the program', () => {
  const chart = readFileSync(join(CHART, 'Chart.yaml'), 'utf8')
  expect(/^appVersion: (.*)$/m.exec(chart)?.[1]).toBe(packageJson.version)
})
