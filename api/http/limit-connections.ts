/**
 * Limits the connections at once. In: a server. Out: the same server, with a limit.
 * Promises: near the limit, a new connection closes the one that is idle for longest: kept open after its last answer,
 *   with no request under way. So clients that keep connections block no new client.
 * Can go wrong: no connection is idle at the limit → Node closes the new one without an answer, and it is counted.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Limit = {
  readonly most: number
  /** Called for every new connection that is closed because of the limit. */
  readonly turnedAway: () => void
}

/** @returns a callback to call when a request begins */
export const limitConnections = (server: Server, { most, turnedAway }: Limit): ((res: ServerResponse) => void) => {
  const near = most - Math.ceil(most / 50)
  const underWay = new WeakMap<Socket, number>()
  // In the order in which they became idle.
  const idle = new Set<Socket>()
  let open = 0

  server.maxConnections = most
  server.on('drop', turnedAway)
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
    if (!underWay.has(socket)) socket.once('close', () => idle.delete(socket))
    underWay.set(socket, (underWay.get(socket) ?? 0) + 1)
    idle.delete(socket)
    res.once('close', () => {
      const left = (underWay.get(socket) ?? 1) - 1
      underWay.set(socket, left)
      if (left === 0 && !socket.destroyed) idle.add(socket)
    })
  }
}
