/**
 * Repairs how the Kafka client handles its connections.
 *
 * The client connects again by itself and goes on reading as if nothing had happened. But the other end may hold
 * another log now: a cluster behind the same address, or one that was restored from a copy. `hearConnections` tells of
 * each new connection.
 *
 * When the client connects again, it keeps what it had read of an answer that was cut off, and takes the first bytes of
 * the new connection for the rest of it. From then on it does not know where answers begin: requests are never
 * answered, or it reads a length where there is none and the process ends. `readFromTheBeginning` makes a new
 * connection begin with nothing. It knows some fields of the client that are not part of its interface. The client's
 * version is pinned, and a test cuts answers off.
 */
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import type { ISocketFactory } from 'kafkajs'

const load = createRequire(import.meta.url)

/** The client's own way to connect, which tells of each connection once it stands. */
export const hearConnections = (onConnected: () => void): ISocketFactory => {
  const createFactory: () => ISocketFactory = load('kafkajs/src/network/socketFactory')
  const connect = createFactory()
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

/** Bytes of the length that each answer begins with. */
const LENGTH_BYTES = 4
const connecting = new WeakMap<Connection, Promise<unknown>>()
let repaired = false

/** Must be called before the first connection; calling it again changes nothing. */
export const readFromTheBeginning = (): void => {
  if (repaired) return
  repaired = true
  const { prototype } = load('kafkajs/src/network/connection') as { prototype: Connection }
  const { connect } = prototype
  prototype.connect = function () {
    if (this.isConnected()) return connect.call(this)
    // The client asks for a connection more than once while it is being made; a second would take the place of the
    // first, whose timer goes on.
    const begun = connecting.get(this)
    if (begun !== undefined && this.socket?.destroyed === false) return begun
    // What may still come over the connection before is not an answer to anything that is asked over this one.
    this.socket?.destroy()
    Object.assign(this, { chunks: [], bytesBuffered: 0, bytesNeeded: LENGTH_BYTES })
    const made = connect.call(this).finally(() => connecting.delete(this))
    connecting.set(this, made)
    return made
  }
}
