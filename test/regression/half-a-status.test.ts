/**
 * Symptom: right after a start `/status` answered 200 without partitions, then with those of the API keys only. They
 * had caught up, but no event had been read. A deployment or a test that waited for `lag` 0 continued too early.
 * Cause: partitions were listed stream by stream, as each stream began to read.
 */
import { expect, inject, test } from 'vitest'
import { newId, repRecorded } from '../support/events.ts'
import { startProjector } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { eventually } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

test('a status has every partition of both topics, or is a 503', async t => {
  const topics = await createTopics(t, { partitions: 2 })
  await topics.publish([repRecorded({ org_id: newId('org') })])
  const elasticsearch = await startProxy(t, inject('elasticsearchUrl').replace('http://', ''))
  await elasticsearch.inject({ kind: 'black-hole' })
  const settings = { ELASTICSEARCH_URL: `http://${elasticsearch.address}` }
  const projector = await startProjector(t, { topics, prefix: createPrefix(t), settings })

  // The first look comes before a partition can be read.
  const answers = [await projector.ask('/status')]
  await elasticsearch.heal()
  await eventually(
    async () => {
      const answer = await projector.ask('/status')
      answers.push(answer)
      expect(answer.status).toBe(200)
      expect(JSON.parse(answer.text).partitions).not.toContainEqual(expect.objectContaining({ lag: 1 }))
    },
    { every: 5 },
  )

  const known = answers.filter(({ status }) => status === 200)
  const named = known.map(({ text }) => JSON.parse(text).partitions.map(({ topic }: { topic: string }) => topic))
  expect(named).toEqual(known.map(() => [topics.apiKeys, topics.events, topics.events]))
  expect(answers.map(({ status }) => status)).toContain(503)
})
