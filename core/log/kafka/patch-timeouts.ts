/**
 * Makes kafkajs leave a broker that no longer answers, such as one on a lost machine. Its connections stay open, so
 * kafkajs regards it as connected. kafkajs sends it the next requests too (metadata, coordinator, ends), and waits each
 * time. The other brokers have new leaders long before. Measured: a projector did not move again, and ended as stuck.
 *
 * `closeAfterTimeout` closes both connections to a broker when a request there times out, and reports it as a lost
 * connection: then kafkajs removes the broker until it can connect again. A broker must answer the first request of a
 * connection within the connection timeout: kafkajs asks for that too, but waits for the longer request timeout. If it
 * does not, kafkajs tries the next address: with the error of a lost connection it tries the same one again, each time.
 */
import { loadKafkajs } from './load-kafkajs.ts'

type Connection = { rejectRequests(error: Error): void; disconnect(): Promise<unknown> }
type ConnectionPool = {
  readonly host: string
  readonly port: number
  readonly pool: readonly Connection[]
  send(sent: { readonly request: { readonly apiKey: number } }): Promise<unknown>
}
type Pushed = { readonly entry: { readonly apiKey: number }; readonly requestTimeout?: number | null }
type RequestQueue = { createSocketRequest(pushed: Pushed): { requestTimeout: number } }
type ClosedError = new (message: string, broker: { host: string; port: number }) => Error
type ConnectionError = new (message: string, at: { broker: string }) => Error

const API_VERSIONS = 18
let repaired = false

/** Must be called before the first connection. Idempotent. */
export const closeAfterTimeout = (): void => {
  if (repaired) return
  repaired = true
  const { KafkaJSConnectionClosedError: Closed, KafkaJSConnectionError: Unconnected } = loadKafkajs<{
    KafkaJSConnectionClosedError: ClosedError
    KafkaJSConnectionError: ConnectionError
  }>('errors')

  const { prototype: pools } = loadKafkajs<{ readonly prototype: ConnectionPool }>('network/connectionPool')
  const { send } = pools
  pools.send = async function (sent) {
    try {
      return await send.call(this, sent)
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'KafkaJSRequestTimeoutError') throw error
      const { host, port } = this
      const message = `${error.message}: connection closed`
      const isFirst = sent.request.apiKey === API_VERSIONS
      const closed = isFirst
        ? new Unconnected(message, { broker: `${host}:${port}` })
        : new Closed(message, { host, port })
      for (const connection of this.pool) {
        connection.rejectRequests(closed)
        void connection.disconnect()
      }
      throw closed
    }
  }

  const { prototype: queues } = loadKafkajs<{ readonly prototype: RequestQueue }>('network/requestQueue')
  const { createSocketRequest } = queues
  queues.createSocketRequest = function (pushed) {
    const request = createSocketRequest.call(this, pushed)
    const { entry, requestTimeout } = pushed
    if (entry.apiKey === API_VERSIONS && requestTimeout) request.requestTimeout = requestTimeout
    return request
  }
}
