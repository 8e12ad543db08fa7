/**
 * Hears of every connection that the Kafka client makes, before anything is asked over it. The client makes them by itself and
 * goes on reading as if nothing had been; but the other end may hold another log now: a cluster behind the same address, or
 * one that came back from a copy.
 */
import { createRequire } from 'node:module'
import type { ISocketFactory } from 'kafkajs'

/** The client's own way to connect, which tells of each connection once it stands. */
export const hearConnections = (onConnected: () => void): ISocketFactory => {
  const createFactory: () => ISocketFactory = createRequire(import.meta.url)('kafkajs/src/network/socketFactory')
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
