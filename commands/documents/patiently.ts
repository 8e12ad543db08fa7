/** Retries while Elasticsearch does not answer. For reads only: a write whose answer was lost may have been applied. */
import { Unavailable } from '../../projector/elasticsearch/client.ts'
import type { CommandContext } from '../context.ts'
import { READ_AGAIN_MS, READ_ATTEMPTS } from '../limits.ts'

export type RetryContext = Pick<CommandContext, 'send' | 'sleep'>

export const withRetries = async <Answer>(
  { sleep }: Pick<RetryContext, 'sleep'>,
  ask: () => Promise<Answer>,
): Promise<Answer> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof Unavailable) || attempt === READ_ATTEMPTS) throw error
      await sleep(READ_AGAIN_MS)
    }
  }
}
