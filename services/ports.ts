/** Ports of this machine that nobody uses. */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

/**
 * Below the ports that systems give to outgoing connections (from 32768 on Linux, 49152 on macOS). One of those would
 * be free now, but a client that reconnects while its server is down can be given the server's port, and keeps it from
 * coming back.
 */
const lowest = 20_000
const highest = 29_999

/** A port of 127.0.0.1 that nothing listens on, and that nobody else is given here as long as this process lives. */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(lowest, highest + 1)
    if ((await reserve(port)) && (await isFree(port))) return port
  }
  throw new Error(`no port from ${lowest} to ${highest} of 127.0.0.1 is free`)
}

/**
 * Reserves a port by binding the UDP port of the same number until the process ends. A server binds its TCP port
 * seconds after it was chosen, and again after each restart; meanwhile other processes choose ports, too. Nothing here
 * uses UDP.
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
