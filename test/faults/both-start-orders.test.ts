/**
 * Kafka, Elasticsearch, projector and API in all 24 start orders. Two pairs of services, one that starts Kafka first
 * and one that starts Elasticsearch first, serve twelve orders each: processes start before, between and after the two.
 * Orders with the projector in the same place share that projector. Each order has its own API.
 */
import { expect, test } from 'vitest'
import { createClient } from '../support/client.ts'
import { keyCreated, newId, newKeyText, repRecorded } from '../support/events.ts'
import { startOwnServices } from '../support/own-services.ts'
import { type Api, type Projector, startApi, startProjector } from '../support/processes.ts'
import { eventually } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

type Part = 'kafka' | 'elasticsearch' | 'projector' | 'api'
type Order = readonly Part[]

const ordersOf = (parts: Order): Order[] =>
  parts.length === 0
    ? [[]]
    : parts.flatMap(first => ordersOf(parts.filter(part => part !== first)).map(rest => [first, ...rest]))
const orders = ordersOf(['kafka', 'elasticsearch', 'projector', 'api'])

/** Returns how many of the two services start before a process. */
const placeOf = (order: Order, process: 'projector' | 'api'): number =>
  order.slice(0, order.indexOf(process)).filter(part => part === 'kafka' || part === 'elasticsearch').length
const isBefore = (order: Order, one: Part, other: Part): boolean => order.indexOf(one) < order.indexOf(other)

test('there are 24 orders', () => {
  expect(new Set(orders.map(String)).size).toBe(24)
})

test.concurrent.for([
  ['kafka', 'elasticsearch'],
  ['elasticsearch', 'kafka'],
] as const)(
  'in each of the 12 orders in which %s starts before %s, a later event is readable through the API',
  async ([first, second], t) => {
    const services = await startOwnServices(t)
    // The topics exist before: a projector does not wait for them.
    const topics = await createTopics(t, { kafka: services.kafka.address, partitions: 1 })
    await Promise.all([services.kafka.stop(), services.elasticsearch.stop()])

    const projectors = new Map<number, Projector>()
    const apis = new Map<Order, Api>()
    const prefixes = [0, 1, 2].map(() => createPrefix(t, services.elasticsearch.address))
    const startProcesses = async (there: 0 | 1 | 2): Promise<void> => {
      await Promise.all(
        prefixes.map(async (prefix, place) => {
          const its = orders.filter(order => isBefore(order, first, second) && placeOf(order, 'projector') === place)
          const startApis = (before: boolean) =>
            its
              .filter(order => placeOf(order, 'api') === there && isBefore(order, 'api', 'projector') === before)
              .map(async order => void apis.set(order, await startApi(t, prefix, { ready: false })))
          await Promise.all(startApis(true))
          if (place === there) projectors.set(place, await startProjector(t, { topics, prefix }))
          await Promise.all(startApis(false))
        }),
      )
    }
    const expectAllWaiting = async (): Promise<void> => {
      for (const projector of projectors.values()) await expectWaiting(path => projector.ask(path))
      for (const api of apis.values()) await expectWaiting(path => fetch(`${api.adminUrl}${path}`))
    }

    await startProcesses(0)
    await expectAllWaiting()
    await services[first].restart()
    await startProcesses(1)
    await expectAllWaiting()
    await services[second].restart()
    await startProcesses(2)
    expect([projectors.size, apis.size]).toEqual([3, 12])

    const org = newId('org')
    const key = newKeyText()
    await topics.publish([keyCreated({ org_id: org, text: key }), repRecorded({ org_id: org, name: 'Ada' })])
    await Promise.all(
      [...apis].map(([order, api]) =>
        eventually(async () => {
          const { status, text } = await createClient([api], key).ask('/reps/rep_1')
          expect(status, `${order}\n${projectors.get(placeOf(order, 'projector'))?.log()}\n${api.log()}`).toBe(200)
          expect(JSON.parse(text)).toMatchObject({ data: { name: 'Ada' } })
        }),
      ),
    )
  },
)

/** Expects a process to be alive and not ready. */
const expectWaiting = async (
  ask: (path: '/livez' | '/readyz') => Promise<{ readonly status: number }>,
): Promise<void> => {
  expect((await ask('/livez')).status).toBe(200)
  expect((await ask('/readyz')).status).toBe(503)
}
