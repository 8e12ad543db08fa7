/**
 * In: a request, its answer and a function. Out: the function runs once, when the answer is delivered or its connection
 * is gone.
 * Promises: it runs whatever the client sends. An answer waits for its turn on its connection. Where the turn never
 *   comes (the connection was ended before, or a CONNECT behind it took Node's listeners off), the answer does not hear
 *   that the connection closed. So the connection of an answer that waits is listened to as well.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

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
