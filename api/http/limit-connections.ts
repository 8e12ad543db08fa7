/**
 * Limits the connections at once. In: a server. Out: the same server, with a limit.
 * Promises: near the limit, a new connection closes the one that is idle for longest. A connection is idle after its
 *   last answer, with no request in flight. So clients that keep connections block no new client.
 * Can go wrong: no connection is idle at the limit → Node closes the new one without an answer, and it is counted.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Limit = {
  readonly max: number
  /** Called for every new connection that is closed because of the limit. */
  readonly onDrop: () => void
}

/** @returns a callback to call when a request begins */
export const limitConnections = (server: Server, { max, onDrop }: Limit): ((res: ServerResponse) => void) => {
  const near = max - Math.ceil(max / 50)
  const inFlight = new WeakMap<Socket, number>()
  // In the order in which they became idle.
  const idle = new Set<Socket>()
  let open = 0

  server.maxConnections = max
  server.on('drop', onDrop)
  server.on('connection', (socket: Socket) => {
    open++
    socket.once('close', () => open--)
    if (open <= near) return
    const [oldest] = idle
    if (oldest === undefined) return
    idle.delete(oldest)
    oldest.destroy()
  })

  return res => {
    const { socket } = res.req
    if (!inFlight.has(socket)) socket.once('close', () => idle.delete(socket))
    inFlight.set(socket, (inFlight.get(socket) ?? 0) + 1)
    idle.delete(socket)
    res.once('close', () => {
      const left = (inFlight.get(socket) ?? 1) - 1
      inFlight.set(socket, left)
      if (left === 0 && !socket.destroyed) idle.add(socket)
    })
  }
}
