/** Sends one PING to Redis, for `commission doctor`. Hides errors of the client: they may contain the address. */
import { REDIS_CONNECT_TIME_MAX } from '../../core/runtime/index.ts'

/** Returns whether Redis accepts the credentials of the URL and answers. */
export const pingRedis = async (url: string): Promise<boolean> => {
  // Imported only here: other commands need no client of Redis, whose import takes a tenth of their start.
  const { createClient } = await import('@redis/client')
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
