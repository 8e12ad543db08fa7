import { once } from 'node:events'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { closeAfterTimeout } from '../../../../core/log/kafka/patch-timeouts.ts'

const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/connectionPool') as {
  prototype: { send(sent: { request: { apiKey: number } }): Promise<unknown> }
}

/** A pool of two connections, whose requests fail with this error; and the calls of the connections. */
const sendFailing = async (error: Error) => {
  closeAfterTimeout()
  closeAfterTimeout()
  const calls: string[] = []
  const connection = (name: string) => ({
    rejectRequests: (reason: Error) => calls.push(`${name} rejects with ${reason.name}`),
    disconnect: async () => calls.push(`${name} disconnects`),
  })
  const pool = {
    host: '127.0.0.1',
    port: 9092,
    pool: [connection('first'), connection('second')],
    getConnectionByRequest: async () => ({ send: () => Promise.reject(error) }),
  }
  const failed = await prototype.send.call(pool as never, { request: { apiKey: 1 } }).catch((reason: unknown) => reason)
  return { failed, calls }
}

test('a request that times out closes both connections to its broker, and is reported as a lost connection', async () => {
  const { failed, calls } = await sendFailing(new kafkajs.KafkaJSRequestTimeoutError('Request Fetch timed out'))
  expect(failed).toMatchObject({ name: 'KafkaJSConnectionClosedError', host: '127.0.0.1', port: 9092, retriable: true })
  const closes = (name: string) => [`${name} rejects with KafkaJSConnectionClosedError`, `${name} disconnects`]
  expect(calls).toEqual([...closes('first'), ...closes('second')])
})

test('any other error leaves the connections open', async () => {
  const other = new kafkajs.KafkaJSError('another error')
  expect(await sendFailing(other)).toEqual({ failed: other, calls: [] })
})

test('a broker that accepts a connection and is silent is left after the connection timeout', async t => {
  closeAfterTimeout()
  const server = createServer().listen(0, '127.0.0.1')
  t.onTestFinished(() => void server.close())
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const kafka = new kafkajs.Kafka({
    brokers: [`127.0.0.1:${(server.address() as AddressInfo).port}`],
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 100,
    // Longer than the test may take.
    requestTimeout: 600_000,
    retry: { retries: 0 },
  })
  const connected = kafka.admin().connect()
  const [socket] = await accepted
  const ended = once(socket.resume(), 'end')
  await expect(connected).rejects.toThrow('ApiVersions')
  await ended
})
