/**
 * Tells a request that its client has sent more behind it: another request, or bytes that are none.
 * Promises: nothing of them is read while the request is answered. So the end of the connection may not be seen
 *   either, and the request must not wait long: see wait-for-change.ts.
 */
import type { ServerResponse } from 'node:http'

const EVENT = 'further bytes'
const followed = new WeakSet<ServerResponse>()

/** Notes that the client of this answer has sent more. */
export const noteFurtherBytes = (res: ServerResponse): void => {
  followed.add(res)
  res.emit(EVENT)
}

/** Calls `run` once the client of this answer sends more; at once if it has. */
export const onceFurtherBytes = (res: ServerResponse, run: () => void): void => {
  if (followed.has(res)) run()
  else res.once(EVENT, run)
}
