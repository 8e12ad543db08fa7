import { expect, test } from 'vitest'
import { foldAll } from '../support/agreement.ts'
import { createClient } from '../support/client.ts'
import { keyCreated, newId, newKeyText, payoutCalculated, periodRecorded, repRecorded } from '../support/events.ts'
import { SLOW } from '../support/in-time.ts'
import { startApi } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'

test.concurrent('after an API is killed or stopped in the middle of a walk, another one continues the walk', async t => {
  const [org, key] = [newId('org'), newKeyText()]
  const ids = Array.from({ length: 30 }, (_, place) => `${place}`)
  const records = [
    keyCreated({ org_id: org, text: key }),
    repRecorded({ org_id: org }),
    ...ids.map(id => periodRecorded({ org_id: org, id: `period_${id}` })),
    ...ids.map(id => payoutCalculated({ org_id: org, id: `payout_${id}`, period_id: `period_${id}` })),
  ]
  const { topics, prefix } = await startProjection(t, records, { partitions: 1 })

  const walked: string[] = []
  let cursor: string | undefined
  for (const end of ['kill', 'stop', 'kill'] as const) {
    const api = await startApi(t, prefix)
    for await (const { data, next_cursor } of createClient([api], key).walk('payouts', 2, cursor)) {
      walked.push(...data.map(({ id }) => String(id)))
      cursor = next_cursor
      if (walked.length % 10 === 0) break
    }
    expect(await api[end]()).toEqual(end === 'kill' ? { code: null, signal: 'SIGKILL' } : { code: 0, signal: null })
  }
  expect(walked).toEqual(
    foldAll(topics)
      .model.view(org)
      .payouts.map(({ id }) => id),
  )
})

test.concurrent('an API that is told to stop answers its accepted requests, and ends with exit code 0', async t => {
  const [org, key] = [newId('org'), newKeyText()]
  const { prefix } = await startProjection(t, [keyCreated({ org_id: org, text: key }), repRecorded({ org_id: org })], {
    partitions: 1,
  })
  const api = await startApi(t, prefix)
  const client = createClient([api], key)
  await client.all('reps')

  const asked = Array.from({ length: 50 }, () => client.ask('/reps'))
  await Promise.race(asked)
  const stopped = api.stop()
  const answers = await Promise.allSettled(asked)
  expect(await stopped).toEqual({ code: 0, signal: null })
  // Late connections are refused. Accepted requests are answered completely.
  const answered = answers.flatMap(answer => (answer.status === 'fulfilled' ? [answer.value] : []))
  // On a busy machine the time of some is up.
  const late = api.lines().flatMap(({ request_id, because }) => (SLOW.includes(String(because)) ? [request_id] : []))
  const inTime = answered.filter(({ headers }) => !late.includes(headers.get('x-request-id') ?? undefined))
  expect(new Set(inTime.map(({ status }) => status))).toEqual(new Set([200]))
})
