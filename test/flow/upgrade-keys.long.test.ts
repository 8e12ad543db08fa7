/** Keys of a projection that an older program made: version 1 of the rules decides, until an operator raises it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@elastic/elasticsearch'
import { expect, inject, test } from 'vitest'
import { API_KEYS_GENERATION, controlIndexOf, generationId } from '../../schemas/stored/documents.ts'
import { commandSettings, jsonLines, runCommand } from '../support/commands.ts'
import { dataOf, keyCreated, newId, newKeyText } from '../support/events.ts'
import { fetchInTime } from '../support/in-time.ts'
import { startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { allStored, createPrefix, indexNamed } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const file = fileScope()

test('with all projectors stopped, the rules for keys are raised from the end of the topic on, once', async () => {
  const org = newId('org')
  const topics = await createTopics(file)
  const prefix = createPrefix(file)
  const settings = { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix }
  const command = (...args: string[]) => runCommand(args, settings)
  const texts = { before: newKeyText(), expiring: newKeyText(), parked: newKeyText(), after: newKeyText() }
  const limited = { org_id: org, permissions: ['reps:read' as const] }

  // The document of an older program: it has version 1, and no offset.
  const started = await startProjector(file, { topics, prefix })
  await untilCaughtUp(started)
  await started.stop()
  const elasticsearch = new Client({ node: inject('elasticsearchUrl').split(',') })
  const where = { index: controlIndexOf(prefix), id: generationId(API_KEYS_GENERATION) }
  const { _source } = await elasticsearch.get<{ body: object }>(where)
  const document = { ..._source, body: { ..._source?.body, rules_version: 1 } }
  await elasticsearch.index({ ...where, document })

  let projector = await startProjector(file, { topics, prefix })
  await topics.publish([
    keyCreated({ org_id: org, id: 'key_before', text: texts.before }),
    keyCreated({ org_id: org, id: 'key_expiring', text: texts.expiring, expires_at: '2020-01-01T00:00:00Z' }),
    keyCreated({ ...limited, id: 'key_parked', text: texts.parked }),
  ])
  await untilCaughtUp(projector)
  const api = await startApi(file, prefix)
  const ask = async (text: string): Promise<number> => (await fetchInTime(api, '/reps', text)).status
  expect([await ask(texts.before), await ask(texts.expiring), await ask(texts.parked)]).toEqual([200, 200, 401])
  const refused = await command('keys', 'create', '--org', org, '--name', 'x', '--permission', 'reps:read')
  expect(refused).toMatchObject({ code: 1, said: expect.stringContaining('upgrade-keys') })
  const before = await allStored(indexNamed(prefix, 'api-keys'))
  const folder = await mkdtemp(join(tmpdir(), 'commission-keys-'))
  file.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const key = keyCreated({ ...limited, id: 'key_next', text: newKeyText() })
  await writeFile(join(folder, 'key.ndjson'), JSON.stringify({ type: key.headers.ce_type, data: dataOf(key) }))
  const validated = async () => jsonLines(await command('validate', join(folder, 'key.ndjson'), '--live', '--json'))
  expect(await validated()).toEqual([expect.objectContaining({ outcome: 'parked', code: 'data_invalid' })])

  const otherGroup = { ...settings, KAFKA_GROUP_ID: `${prefix}-other` }
  const [running, unseen] = await Promise.all(
    [settings, otherGroup].map(of => runCommand(['projection', 'upgrade-keys'], of)),
  )
  expect(running).toMatchObject({ code: 1, said: expect.stringContaining('stop all projectors') })
  expect(unseen).toMatchObject({ code: 1, said: expect.stringContaining('a projector of another KAFKA_GROUP_ID') })
  await projector.stop()
  const raised = await command('projection', 'upgrade-keys', '--json')
  expect([raised.code, jsonLines(raised)]).toEqual([0, [{ rules_version: 2, first_rules_until: 3 }]])
  expect(jsonLines(await command('projection', 'upgrade-keys', '--json'))).toEqual(jsonLines(raised))
  expect(await validated()).toEqual([expect.objectContaining({ outcome: 'applied' })])

  projector = await startProjector(file, { topics, prefix })
  await topics.publish([
    keyCreated({ ...limited, id: 'key_parked', text: texts.parked }),
    keyCreated({ ...limited, id: 'key_after', text: texts.after, expires_at: '2999-01-01T00:00:00Z' }),
  ])
  await untilCaughtUp(projector)
  await eventually(async () => expect(await ask(texts.parked)).toBe(200))
  expect([await ask(texts.before), await ask(texts.expiring), await ask(texts.after)]).toEqual([200, 200, 200])
  expect(await allStored(indexNamed(prefix, 'api-keys'))).toEqual(expect.arrayContaining(before))
  await elasticsearch.close()
})
