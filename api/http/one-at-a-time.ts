/**
 * In: the requests of a connection. Out: the same requests, each started when the answer before it is delivered.
 * Promises: a connection holds one answer at a time, however many requests it sends ahead. While one waits, the socket
 *   is paused, and the end of the connection is not seen: the request under way is told (`onceFurtherBytes`).
 * `onceDelivered` is the one moment at which permits and memory of a request end.
 * Can go wrong: more than REQUESTS_AHEAD_MAX come in bytes that were already read → the connection is closed.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { REQUESTS_AHEAD_MAX } from '../limits.ts'

type RequestListener = (req: IncomingMessage, res: ServerResponse) => void
type Request = Parameters<RequestListener>

type Ordered = {
  /** Starts the requests of a connection one after the other. */
  readonly listener: RequestListener
  /** Returns the answer that the connection delivers now or waits for; undefined between two requests. */
  readonly underWay: (socket: object) => ServerResponse | undefined
}

export const oneAtATime = (listener: RequestListener): Ordered => {
  const connections = new WeakMap<object, { res: ServerResponse; readonly waiting: Request[] }>()

  const answer = (socket: Socket, waiting: Request[], [req, res]: Request): void => {
    connections.set(socket, { res, waiting })
    res.once('close', () => {
      const next = waiting.shift()
      if (waiting.length === 0) socket.resume()
      // A response with `Connection: close` has ended the connection: nothing more can be written.
      if (next && socket.writable) answer(socket, waiting, next)
      else connections.delete(socket)
    })
    if (waiting.length > 0) noteFurtherBytes(res)
    listener(req, res)
  }
  return {
    listener: (req, res) => {
      const { socket } = req
      const connection = connections.get(socket)
      if (connection === undefined) {
        answer(socket, [], [req, res])
      } else if (connection.waiting.push([req, res]) > REQUESTS_AHEAD_MAX) socket.destroy()
      else {
        socket.pause()
        noteFurtherBytes(connection.res)
      }
    },
    underWay: socket => connections.get(socket)?.res,
  }
}

const EVENT = 'further bytes'
const followed = new WeakSet<ServerResponse>()

/** Notes that the client of this answer has sent more: another request, or bytes that are none. */
export const noteFurtherBytes = (res: ServerResponse): void => {
  followed.add(res)
  res.emit(EVENT)
}

/**
 * Calls `run` once the client of this answer sends more; at once if it has. Nothing of it is read while the request is
 * answered. So the end of the connection may not be seen either, and the request must not wait long: see
 * wait-for-change.ts.
 */
export const onceFurtherBytes = (res: ServerResponse, run: () => void): void => {
  if (followed.has(res)) run()
  else res.once(EVENT, run)
}

/**
 * Calls `run` once the response is delivered or its connection is gone; at once if it is gone already. A response waits
 * for its turn on its connection. If its turn never comes (the connection ended earlier, or a CONNECT behind it removed
 * Node's listeners), the response gets no `close` event. So this also listens to the connection of a waiting response.
 */
export const onceDelivered = ({ socket }: IncomingMessage, res: ServerResponse, run: () => void): void => {
  const end = (): void => {
    res.removeListener('close', end)
    socket.removeListener('close', end)
    run()
  }
  if (res.closed || socket.destroyed) {
    end()
    return
  }
  res.once('close', end)
  if (res.socket === null) socket.once('close', end)
}
