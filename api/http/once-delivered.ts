/**
 * In: a request and its answer. Out: something is run once, when the answer is delivered or its connection is gone.
 * Promises: it runs whatever the client sends. An answer whose turn on its connection does not come (the connection was
 *   ended before, or a CONNECT behind it took Node's listeners off) does not hear that the connection closed: so both
 *   are listened to.
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
