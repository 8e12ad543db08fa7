/** Written files of the chart are the present ones: the schema of its values, its nginx. It is about this version. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { kafkaSettings, topicSettings } from '../../core/runtime/settings.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { type IdentityName, identities } from '../../schemas/access.ts'
import { keysOf } from '../../schemas/objects.ts'
import { settingsOf } from '../../tools/doctor/settings.ts'
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

/** Publishers do not run in the chart. */
const run = keysOf(identities).filter(name => !name.endsWith('-publisher'))
const processes: Partial<Record<IdentityName, string>> = { projector: 'projector', api: 'api', topics: 'topics' }

test.each(run)('the chart can give %s each setting that its program reads, as a value or as a file', name => {
  const values = JSON.parse(valuesSchema()).properties
  const placesOf = (process: string): string[] =>
    ['settings', 'files'].flatMap(kind => Object.keys(values[process].properties[kind].properties))
  const ofChart = /^(API|PROJECTOR)_(ADMIN_)?(HOST|PORT)$|^RECEIPTS_/
  const creates = name === 'topics' || name === 'grow' ? topicSettings : {}
  // An audit log in Kafka needs an identity there.
  const read = { ...settingsOf(name), ...(identities[name].kafka.length > 0 && kafkaSettings), ...creates }
  const wanted = Object.entries<{ readonly secret?: true }>(read).flatMap(([setting, { secret }]) =>
    ofChart.test(setting) ? [] : [secret ? `${setting}_FILE` : setting],
  )
  const places = new Set(placesOf(processes[name] ?? 'commands'))
  expect(wanted.filter(setting => !places.has(setting))).toEqual([])
})

test('the chart has the version of the program', () => {
  const chart = readFileSync(join(CHART, 'Chart.yaml'), 'utf8')
  expect(/^appVersion: (.*)$/m.exec(chart)?.[1]).toBe(packageJson.version)
})
