/**
 * In: a request, its response and a callback. Out: the callback runs once, when the response is delivered or its
 *   connection is gone.
 * Promises: the callback runs whatever the client sends. A response waits for its turn on its connection. If its turn
 *   never comes (the connection ended earlier, or a CONNECT behind it removed Node's listeners), the response gets no
 *   `close` event. So this also listens to the connection of a waiting response.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Calls `run` once the response is delivered or its connection is gone; at once if it is gone already. */
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
