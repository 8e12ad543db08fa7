/**
 * Makes kafkajs leave a broker that no longer answers, such as one on a lost machine. Its connections stay open, so
 * kafkajs regards it as connected. kafkajs sends it the next requests too (metadata, coordinator, ends), and waits each
 * time. The other brokers have new leaders long before. Measured: a projector did not move again, and ended as stuck.
 *
 * `closeAfterTimeout` closes both connections to a broker when a request there times out, and reports it as a lost
 * connection: then kafkajs removes the broker until it can connect again. A broker must answer the first request of a
 * connection within the connection timeout: kafkajs asks for that too, but waits for the longer request timeout.
 */
import { loadKafkajs } from './load-kafkajs.ts'

type Connection = { rejectRequests(error: Error): void; disconnect(): Promise<unknown> }
type ConnectionPool = {
  readonly host: string
  readonly port: number
  readonly pool: readonly Connection[]
  send(request: object): Promise<unknown>
}
type Pushed = { readonly entry: { readonly apiKey: number }; readonly requestTimeout?: number | null }
type RequestQueue = { createSocketRequest(pushed: Pushed): { requestTimeout: number } }
type ErrorClass = new (message: string, broker: { host: string; port: number }) => Error

const API_VERSIONS = 18
let repaired = false

/** Must be called before the first connection. Idempotent. */
export const closeAfterTimeout = (): void => {
  if (repaired) return
  repaired = true
  const { KafkaJSConnectionClosedError } = loadKafkajs<{ KafkaJSConnectionClosedError: ErrorClass }>('errors')

  const { prototype: pools } = loadKafkajs<{ readonly prototype: ConnectionPool }>('network/connectionPool')
  const { send } = pools
  pools.send = async function (request) {
    try {
      return await send.call(this, request)
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'KafkaJSRequestTimeoutError') throw error
      const { host, port } = this
      const closed = new KafkaJSConnectionClosedError(`${error.message}: connection closed`, { host, port })
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
