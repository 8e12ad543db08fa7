import { once } from 'node:events'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { clearBufferOnReconnect } from '../../../../core/log/kafka/patch-connections.ts'

type Connection = { connect(): Promise<unknown>; disconnect(): Promise<unknown>; isConnected(): boolean }

const load = createRequire(import.meta.url)
const Connection = load('kafkajs/src/network/connection') as new (options: object) => Connection
const createFactory = load('kafkajs/src/network/socketFactory') as () => unknown
const silent = { namespace: () => silent, debug: () => undefined, error: () => undefined }
const CONNECTION_TIMEOUT_MS = 5_000

test('two concurrent calls of connect make one connection, and it stays open', async t => {
  clearBufferOnReconnect()
  clearBufferOnReconnect()
  let accepted = 0
  const server = createServer(socket => {
    accepted++
    socket.on('error', () => undefined)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(() => void server.close())
  const connection = new Connection({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    logger: silent,
    socketFactory: createFactory(),
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    requestTimeout: 30_000,
  })
  t.onTestFinished(() => void connection.disconnect())
  await Promise.all([connection.connect(), connection.connect()])
  // Without the patch, the timeout of the first connection attempt closes it.
  await sleep(CONNECTION_TIMEOUT_MS + 500)
  expect([connection.isConnected(), accepted]).toEqual([true, 1])

  await connection.disconnect()
  expect(connection.isConnected()).toBe(false)
  await connection.connect()
  expect([connection.isConnected(), accepted]).toEqual([true, 2])
})
