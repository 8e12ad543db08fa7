/**
 * In: the requests of a connection. Out: the same requests, each started when the answer before it is delivered.
 * Promises: a connection holds one answer at a time, however many requests it sends ahead. While one waits, the socket
 *   is paused.
 * Can go wrong: more than REQUESTS_AHEAD_MAX come in bytes that were already read → the connection is closed.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { REQUESTS_AHEAD_MAX } from '../limits.ts'

type RequestListener = (req: IncomingMessage, res: ServerResponse) => void

/** Returns a listener that starts the requests of a connection one after the other. */
export const oneAtATime = (listener: RequestListener): RequestListener => {
  const waitingOn = new WeakMap<Socket, [IncomingMessage, ServerResponse][]>()

  const answer = (req: IncomingMessage, res: ServerResponse): void => {
    const { socket } = req
    res.once('close', () => {
      const waiting = waitingOn.get(socket) ?? []
      const next = waiting.shift()
      if (waiting.length === 0) socket.resume()
      // A response with `Connection: close` has ended the connection: nothing more can be written.
      if (next && socket.writable) answer(...next)
      else waitingOn.delete(socket)
    })
    listener(req, res)
  }
  return (req, res) => {
    const { socket } = req
    const waiting = waitingOn.get(socket)
    if (waiting === undefined) {
      waitingOn.set(socket, [])
      answer(req, res)
    } else if (waiting.push([req, res]) > REQUESTS_AHEAD_MAX) socket.destroy()
    else socket.pause()
  }
}
