/**
 * Repairs how kafkajs handles its connections.
 *
 * kafkajs reconnects silently and continues to read. But the broker may hold another log by then: another cluster at
 * the same address, or a cluster restored from a copy. `createNotifyingSocketFactory` reports each new connection.
 *
 * When kafkajs reconnects, it keeps the bytes of a response that was cut off. It then reads the first bytes of the new
 * connection as the rest. From then on it misreads where responses begin: requests are never answered, or a wrong
 * length ends the process. `clearBufferOnReconnect` drops these bytes. It uses fields of kafkajs that are not public:
 * the kafkajs version is pinned, and a test cuts responses off.
 */
import type { Socket } from 'node:net'
import type { ISocketFactory } from 'kafkajs'
import { loadKafkajs } from './load-kafkajs.ts'

/** Returns kafkajs's own socket factory, with a callback for each established connection. */
export const createNotifyingSocketFactory = (onConnected: () => void): ISocketFactory => {
  const connect = loadKafkajs<() => ISocketFactory>('network/socketFactory')()
  return ({ onConnect, ...options }) =>
    connect({
      ...options,
      onConnect: () => {
        onConnected()
        onConnect()
      },
    })
}

type Connection = {
  isConnected(): boolean
  connect(): Promise<unknown>
  socket?: Socket
  chunks: Buffer[]
  bytesBuffered: number
  bytesNeeded: number
}

/** Bytes of the length that each response begins with. */
const LENGTH_BYTES = 4
const connecting = new WeakMap<Connection, Promise<unknown>>()
let repaired = false

/** Must be called before the first connection. Idempotent. */
export const clearBufferOnReconnect = (): void => {
  if (repaired) return
  repaired = true
  const { prototype } = loadKafkajs<{ readonly prototype: Connection }>('network/connection')
  const { connect } = prototype
  prototype.connect = function () {
    if (this.isConnected()) return connect.call(this)
    // kafkajs asks for a connection again while one is being made. A second connection would replace the first, and the
    // timer of the first would continue to run.
    const begun = connecting.get(this)
    if (begun !== undefined && this.socket?.destroyed === false) return begun
    // Bytes that still arrive on the old socket answer no request of the new connection.
    this.socket?.destroy()
    Object.assign(this, { chunks: [], bytesBuffered: 0, bytesNeeded: LENGTH_BYTES })
    const made = connect.call(this).finally(() => connecting.delete(this))
    connecting.set(this, made)
    return made
  }
}
