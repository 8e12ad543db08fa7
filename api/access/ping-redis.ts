/** Asks Redis for one answer, for `npm run doctor`. Errors of the client may have the address: none comes out. */
import { createClient } from '@redis/client'
import { REDIS_CONNECT_TIME_MAX } from '../limits.ts'

/** Returns whether Redis accepts the credentials of the URL and answers. */
export const pingRedis = async (url: string): Promise<boolean> => {
  const client = createClient({
    url,
    disableOfflineQueue: true,
    socket: { connectTimeout: REDIS_CONNECT_TIME_MAX, socketTimeout: REDIS_CONNECT_TIME_MAX, reconnectStrategy: false },
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.ping()) === 'PONG'
  } catch {
    return false
  } finally {
    if (client.isOpen) client.destroy()
  }
}
