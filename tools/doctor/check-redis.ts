/**
 * Runs one script in Redis whose write changes nothing, for `commission doctor`: the API counts with a script. Hides
 * errors of the client: they may contain the address.
 */
import { REDIS_CONNECT_TIME_MAX, redisRefusal } from '../../core/runtime/index.ts'

/**
 * Returns why Redis would not count requests; undefined if it would. A replica, a full Redis, and one without the right
 * refuse a write, although they answer.
 */
export const checkRedis = async (url: string, prefix: string): Promise<string | undefined> => {
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
    // Only if the key exists. It does not: the id of a key has its organization before it.
    await client.eval(WRITE, { keys: [`${prefix}-rate:doctor`] })
    return undefined
  } catch (error) {
    const refusal = redisRefusal(error)
    return refusal === undefined ? 'does not answer' : `refuses with ${refusal}`
  } finally {
    if (client.isOpen) client.destroy()
  }
}

const WRITE = "return redis.call('set', KEYS[1], '0', 'EX', '1', 'XX')"
