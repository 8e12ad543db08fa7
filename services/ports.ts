/** Free ports of this machine. */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

/**
 * Below the ephemeral ports (from 32768 on Linux, 49152 on macOS). A client that reconnects while its server is down
 * could be given the server's port as its own, and keep the server from coming back.
 */
const lowest = 20_000
const highest = 29_999

/** Returns a port of 127.0.0.1 that nothing listens on. It is reserved for as long as this process lives. */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(lowest, highest + 1)
    if ((await reserve(port)) && (await isFree(port))) return port
  }
  throw new Error(`no port from ${lowest} to ${highest} of 127.0.0.1 is free`)
}

/**
 * Reserves a port by binding the same UDP port until the process ends: nothing here uses UDP. A server binds its TCP
 * port seconds later, and again after each restart; meanwhile other processes choose ports, too.
 */
const reserve = (port: number): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const holder = createSocket('udp4')
  holder.once('error', () => holder.close(() => resolve(false)))
  holder.bind({ port, address: '127.0.0.1', exclusive: true }, () => {
    holder.unref()
    resolve(true)
  })
  return promise
}

const isFree = (port: number): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = createServer()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  return promise
}
