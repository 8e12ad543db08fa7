/** A role that hides documents, or lets nobody read them, as Elasticsearch tells it. They are in a real one. */
import { expect, test } from 'vitest'
import { type ElasticsearchRole, identities } from '../../schemas/access.ts'
import { commandSettings, runCommand } from '../support/commands.ts'
import { startGuard } from '../support/elasticsearch-guard.ts'
import { keyCreated, newId, newKeyText, periodRecorded, repRecorded } from '../support/events.ts'
import { expectRefused, projectorSettings, startApi, startProcess } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { elasticsearchOf } from '../support/stored.ts'

/**
 * An Elasticsearch whose user has the role of an identity, and between `hide` and `show` another one. After `withhold`
 * the role shows the records of generations, and permits nobody to read them.
 */
const guarded = async (t: Scope, name: 'api' | 'projector' | 'projection', prefix: string) => {
  const { cluster, indices } = identities[name].elasticsearch
  const values = { ELASTICSEARCH_INDEX_PREFIX: prefix }
  let given: readonly object[] | undefined
  let permitted: ElasticsearchRole['indices'] = indices
  const role = {
    cluster,
    get indices() {
      return permitted
    },
  }
  const { url } = await startGuard(t, elasticsearchOf(prefix), role, values, { told: () => given })
  const withhold = () => {
    const fixed = indices.map(entry => ({ ...entry, names: entry.names.filter(one => !one.startsWith('/')) }))
    permitted = [...fixed, ...indices.map(entry => ({ ...entry, privileges: ['view_index_metadata'] as const }))]
  }
  const hide = () => (given = [{ names: [`${prefix}-*`], privileges: ['read'], query: ['{"term":{"org_id":"x"}}'] }])
  return { url, hide, show: () => (given = undefined), withhold }
}

test('while a role hides documents, or does not permit to read them, the API answers 503 and is not ready; the projector and commands do not start', async t => {
  const [org, key] = [newId('org'), newKeyText()]
  const records = [
    keyCreated({ org_id: org, text: key }),
    repRecorded({ org_id: org }),
    periodRecorded({ org_id: org }),
  ]
  const { topics, prefix } = await startProjection(t, records)

  const ofApi = await guarded(t, 'api', prefix)
  const api = await startApi(t, prefix, { settings: { ELASTICSEARCH_URL: ofApi.url } })
  const ask = async () => (await fetch(`${api.url}/reps`, { headers: { authorization: `Bearer ${key}` } })).status
  const becomes = (status: number) => eventually(async () => expect(await ask()).toBe(status))
  await becomes(200)
  ofApi.hide()
  await becomes(503)
  const readiness = async () => (await fetch(`${api.adminUrl}/readyz`)).text()
  await eventually(async () => expect(await readiness()).toContain('documents_hidden'))
  await becomes(503)
  ofApi.show()
  await becomes(200)

  ofApi.withhold()
  await becomes(503)
  await eventually(async () => expect(await readiness()).toContain('elasticsearch_status_403'))

  const ofProjector = await guarded(t, 'projector', prefix)
  ofProjector.hide()
  const settings = projectorSettings({ topics, prefix, settings: { ELASTICSEARCH_URL: ofProjector.url } })
  const message = await expectRefused(startProcess(t, 'projector/main.ts', settings), 'documents_hidden')
  expect(message).toContain('a role of this user has query or field_security')

  const ofCommands = await guarded(t, 'projection', prefix)
  const status = () =>
    runCommand(['projection', 'status'], { ...commandSettings(topics, prefix), ELASTICSEARCH_URL: ofCommands.url })
  expect(await status()).toMatchObject({ code: 0 })
  ofCommands.hide()
  expect(await status()).toMatchObject({ code: 1, said: expect.stringContaining('a role of this user has query') })
})
