/**
 * Asks again while Elasticsearch does not answer. For what only reads: an answer that was lost may have changed
 * something.
 */
import { Unavailable } from '../../projector/elasticsearch/client.ts'
import type { CommandContext } from '../context.ts'
import { READ_AGAIN_MS, READ_ATTEMPTS } from '../limits.ts'

export type Reading = Pick<CommandContext, 'send' | 'sleep'>

export const patiently = async <Answer>(
  { sleep }: Pick<Reading, 'sleep'>,
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
