/**
 * Somebody lets Elasticsearch allocate a primary shard without its documents, or from an old copy: the index keeps its
 * id. Kafka and Elasticsearch are real.
 */
import { expect, test } from 'vitest'
import { commandSettings, runCommand } from '../support/commands.ts'
import { keyCreated, newId, newKeyText, payoutCalculated, periodRecorded, repRecorded } from '../support/events.ts'
import { fetchInTime } from '../support/in-time.ts'
import { expectRefused, startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually } from '../support/scope.ts'
import { call, everythingProjected, indexNamed } from '../support/stored.ts'

test.concurrent.for(['allocate_empty_primary', 'allocate_stale_primary'] as const)(
  'after %s the projector stops and the API refuses, until all records are read again',
  async (how, t) => {
    const [org, key] = [newId('org'), newKeyText()]
    const records = [
      keyCreated({ org_id: org, text: key }),
      repRecorded({ org_id: org }),
      periodRecorded({ org_id: org }),
      payoutCalculated({ org_id: org, id: 'payout_1' }),
      payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
    ]
    const { topics, prefix, projector } = await startProjection(t, records, { partitions: 1 })
    const api = await startApi(t, prefix)
    const ask = async () => {
      const answer = await fetchInTime(api, '/payouts', key)
      return { status: answer.status, text: await answer.text() }
    }
    const projected = await everythingProjected(prefix)
    const before = await ask()
    expect(before.status).toBe(200)

    await allocate(how, indexNamed(prefix, 'payouts'))
    const said = await expectRefused(projector, 'index_replaced')
    expect(said).toContain(`the shard ${indexNamed(prefix, 'payouts')}/0 of g1 is another one than recorded`)
    await eventually(async () => expect((await ask()).status).toBe(503))
    const readiness = async () => (await fetch(`${api.adminUrl}/readyz`)).text()
    await eventually(async () => expect(await readiness()).toContain('shard_lost'))

    const projection = (...args: string[]) =>
      runCommand(['projection', ...args, '--json'], commandSettings(topics, prefix))
    const rewound = await projection('rewind', '--snapshot-start', new Date().toISOString())
    expect(rewound).toMatchObject({ code: 1 })
    expect(rewound.said).toContain('npx commission projection adopt')
    const adopted = await projection('adopt')
    expect(adopted, adopted.said).toMatchObject({ code: 0 })
    expect(JSON.parse(adopted.out.toString())).toEqual({ adopted: ['g1'] })
    expect((await ask()).status).toBe(503)
    await untilCaughtUp(await startProjector(t, { topics, prefix }))
    await eventually(async () => expect(await ask()).toEqual(before))
    expect(await everythingProjected(prefix)).toEqual(projected)
    expect(JSON.parse((await projection('adopt')).out.toString())).toEqual({ adopted: [] })
  },
)

const allocate = async (how: string, index: string): Promise<void> => {
  const { nodes } = JSON.parse((await call('GET', '/_nodes?filter_path=nodes.*.name')).text) as Nodes
  const [node] = Object.values(nodes).map(({ name }) => name)
  const shard = { index, shard: 0, node }
  const commands = [{ cancel: { ...shard, allow_primary: true } }, { [how]: { ...shard, accept_data_loss: true } }]
  const answer = await call('POST', '/_cluster/reroute?metric=none', { commands })
  expect(answer.status, answer.text).toBe(200)
}
type Nodes = { readonly nodes: Readonly<Record<string, { readonly name: string }>> }
