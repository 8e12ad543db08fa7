/**
 * How many connections there are at once. In: a server. Out: the same, with a limit.
 * Promises: when nearly all are in use, a new connection ends the one that is idle for longest: kept after its last
 *   answer, with no request under way. So clients that keep connections turn no new client away.
 * Can go wrong: all are in use, and none is idle → Node closes the new one without an answer, and it is counted.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Limit = {
  readonly most: number
  /** Told of every connection that was closed because there are too many. */
  readonly turnedAway: () => void
}

/** @returns what is to be told of every request, when it begins */
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
