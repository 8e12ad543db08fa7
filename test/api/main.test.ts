/** The API process before it listens. Needs no server. */
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { startProcess } from '../support/processes.ts'

test('a process that waits for the broker of its audit log ends at a signal, and says so', async t => {
  const asked = Promise.withResolvers<void>()
  // It accepts connections and never answers.
  const broker = createServer(socket => {
    socket.on('error', () => undefined)
    t.onTestFinished(() => void socket.destroy())
    asked.resolve()
  })
  await new Promise<void>(resolve => broker.listen(0, '127.0.0.1', resolve))
  t.onTestFinished(() => void broker.close())
  const api = startProcess(t, 'api/main.ts', {
    ELASTICSEARCH_URL: 'http://127.0.0.1:1',
    API_PORT: '0',
    API_ADMIN_PORT: '0',
    AUDIT_LOG: 'kafka:audit',
    KAFKA_BROKERS: `127.0.0.1:${(broker.address() as AddressInfo).port}`,
  })
  await asked.promise
  // Without a listener the signal would end it, too: but not the first process of a container, and without a word.
  expect(await api.stop()).toEqual({ code: 0, signal: null })
  expect(api.lines().map(({ msg }) => msg)).toEqual(['stopping', 'stopped'])
})
