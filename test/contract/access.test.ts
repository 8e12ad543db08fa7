/** docs/access.md and deploy/access/ say what the table of rights says; the table holds what it promises. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { apiSettings, projectorSettings } from '../../core/runtime/settings.ts'
import {
  type AccessIdentity,
  type ElasticsearchIndexPrivilege,
  fillIn,
  type IdentityName,
  identities,
} from '../../schemas/access.ts'
import { apiKeysIndexOf, apiKeysParkedIndexOf, controlIndexOf, indexOf, kinds } from '../../schemas/stored/documents.ts'
import { sandboxPrefixOf } from '../../schemas/stored/sandboxes.ts'
import { ACCESS_FILES, ACCESS_PAGE, accessFiles, accessPage } from './access-files.ts'

const all: readonly (readonly [name: string, identity: AccessIdentity])[] = Object.entries(identities)
const values = {
  KAFKA_EVENTS_TOPIC: 'events',
  KAFKA_API_KEYS_TOPIC: 'keys',
  KAFKA_GROUP_ID: 'group',
  TRANSACTIONAL_ID: 'transaction',
  AUDIT_TOPIC: 'audit',
  ELASTICSEARCH_INDEX_PREFIX: 'commission',
}

test('the page and the files are those of the table; else run `npm run contract`', () => {
  expect(readFileSync(ACCESS_PAGE, 'utf8') === accessPage()).toBe(true)
  for (const [path, content] of accessFiles())
    expect(readFileSync(join(ACCESS_FILES, path), 'utf8') === content, path).toBe(true)
  const found = readdirSync(ACCESS_FILES, { recursive: true, encoding: 'utf8' })
  const files = found.filter(path => statSync(join(ACCESS_FILES, path)).isFile())
  expect(files.toSorted()).toEqual([...accessFiles().keys()].toSorted())
})

test('each right has a reason, and each name can be filled in from settings', () => {
  const settings = { ...projectorSettings, ...apiSettings, TRANSACTIONAL_ID: undefined, AUDIT_TOPIC: undefined }
  expect(Object.keys(values).filter(name => !(name in settings))).toEqual([])
  for (const [, { kafka, elasticsearch }] of all) {
    for (const { reason, resource } of kafka) {
      expect(reason).not.toBe('')
      expect(fillIn(resource.name, values)).not.toContain('$')
    }
    for (const name of elasticsearch?.indices.flatMap(({ names }) => names) ?? [])
      expect(fillIn(name, values)).not.toContain('$')
  }
  expect(() => fillIn(`\${NOWHERE}`, values)).toThrow('no value for NOWHERE')
})

/** The identities with this operation on this resource. */
const holders = (operation: string, name: string): string[] =>
  all.flatMap(([identity, { kafka }]) =>
    kafka.some(right => right.operation === operation && fillIn(right.resource.name, values) === name)
      ? [identity]
      : [],
  )

test('nobody has a right on the Kafka cluster, the projector writes no topic, and few may publish keys', () => {
  expect(all.flatMap(([, { kafka }]) => kafka).filter(({ resource }) => resource.type === 'Cluster')).toEqual([])
  expect(holders('Write', 'events')).toEqual(['parked', 'restore', 'events-publisher'])
  expect(holders('Write', 'keys')).toEqual(['keys', 'parked', 'restore', 'keys-publisher'])
  expect(holders('Create', 'keys')).toEqual(['topics'])
})

/** Whether a role names an index, with this privilege if one is given. */
const opens = (identity: IdentityName, index: string, privilege?: ElasticsearchIndexPrivilege): boolean => {
  const role: AccessIdentity['elasticsearch'] = (identities as Readonly<Record<string, AccessIdentity>>)[identity]
    ?.elasticsearch
  return (role?.indices ?? []).some(
    ({ names, privileges }) =>
      (privilege === undefined || privileges.includes(privilege)) &&
      names.some(name => {
        const filled = fillIn(name, values)
        return filled.startsWith('/') ? new RegExp(`^(?:${filled.slice(1, -1)})$`).test(index) : filled === index
      }),
  )
}

describe('in Elasticsearch', () => {
  const prefix = 'commission'
  const ofGeneration = (at: string, generation: string) => kinds.map(kind => indexOf(at, generation, kind))
  const common = [controlIndexOf(prefix), apiKeysIndexOf(prefix), apiKeysParkedIndexOf(prefix)]
  const sandbox = [controlIndexOf(sandboxPrefixOf(prefix)), ...ofGeneration(sandboxPrefixOf(prefix), 's1')]
  const another = [controlIndexOf('commission-x'), ...ofGeneration('commission-x', 'g1'), 'commissions-control']

  test('the API opens neither parked records nor sandboxes, and may only read', () => {
    const opened = [...common, ...ofGeneration(prefix, 'g12'), ...sandbox].filter(index => opens('api', index))
    expect(opened).toEqual([
      'commission-control',
      'commission-api-keys',
      ...['reps', 'periods', 'payouts', 'statements', 'payroll_files'].map(kind => `commission-g12-${kind}`),
    ])
    const { cluster, indices } = identities.api.elasticsearch
    expect([cluster, indices.flatMap(({ privileges }) => privileges)]).toEqual([
      [],
      ['read', 'view_index_metadata', 'monitor'],
    ])
  })

  test('the projector opens all its indices and no sandbox; only `projection` opens sandboxes and may delete', () => {
    for (const index of [...common, ...ofGeneration(prefix, 'g1')]) expect(opens('projector', index), index).toBe(true)
    for (const index of sandbox)
      expect(all.flatMap(([name]) => (opens(name as IdentityName, index) ? [name] : []))).toEqual(['projection'])
    const deleting = all.flatMap(([name, { elasticsearch }]) =>
      elasticsearch?.indices.some(({ privileges }) => privileges.some(one => one.startsWith('delete'))) ? [name] : [],
    )
    expect(deleting).toEqual(['projection'])
  })

  test('all that answers from documents can compare their shards; commands compare all indices of a generation', () => {
    for (const name of Object.keys(identities) as IdentityName[]) {
      const read = [...common, ...ofGeneration(prefix, 'g1'), ...sandbox].filter(index => opens(name, index, 'read'))
      const ofCommand = read.some(index => index.endsWith('-payouts')) && name !== 'api'
      for (const index of [...read, ...(ofCommand ? ofGeneration(prefix, 'g1') : [])])
        for (const privilege of ['view_index_metadata', 'monitor'] as const)
          expect(opens(name, index, privilege), `${name}: ${privilege} on ${index}`).toBe(true)
    }
  })

  test('nobody opens an index of another installation, also of one with a longer prefix', () => {
    for (const [name] of all)
      expect(
        another.filter(index => opens(name as IdentityName, index)),
        name,
      ).toEqual([])
  })
})
