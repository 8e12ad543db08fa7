/**
 * Symptom: a projector that was stopped while Elasticsearch did not answer logged `stopped`, and ended 9 s later with
 * exit code 1 and `not stopped in time`.
 * Cause: closing the Elasticsearch client waits for its requests in flight. A request that records an owner has no
 * abort signal. The process exits right afterwards, so it need not close the client.
 */
import { expect, inject, test } from 'vitest'
import { startProjector } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { eventually } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

test('a projector that is stopped while Elasticsearch is silent ends with code 0 at any moment', async t => {
  const topics = await createTopics(t, { partitions: 1 })
  const prefix = createPrefix(t)
  const proxy = await startProxy(t, new URL(inject('elasticsearchUrl').split(',')[0] ?? '').host)
  const settings = { ELASTICSEARCH_URL: `http://${proxy.address}` }
  const moments = [
    'the admin port listens',
    'not ready yet',
    'looking at the group',
    'started to project the generation',
    'projecting',
  ]
  for (const moment of [...moments, ...moments]) {
    const projector = await startProjector(t, { topics, prefix, settings })
    await eventually(() => expect(projector.log()).toContain(moment), { every: 1 })
    await proxy.inject({ kind: 'black-hole' })
    expect(await projector.stop(), `${moment}: ${projector.log()}`).toEqual({ code: 0, signal: null })
    await proxy.heal()
  }
})
