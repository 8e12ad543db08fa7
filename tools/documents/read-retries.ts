/** Retries while Elasticsearch does not answer. For reads only: a write whose answer was lost may have been applied. */

import { Unanswered } from '../../core/runtime/index.ts'
import type { CommandContext } from '../context.ts'
import { READ_ATTEMPTS, READ_RETRY_MS } from '../limits.ts'

export type RetryContext = Pick<CommandContext, 'send' | 'sleep'>

/** @throws the error of the last attempt, or at once an error that is not retryable */
export const withRetries = async <Answer>(
  { sleep }: Pick<RetryContext, 'sleep'>,
  read: () => Promise<Answer>,
  isRetryable = (error: unknown): boolean => error instanceof Unanswered,
): Promise<Answer> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read()
    } catch (error) {
      if (!isRetryable(error) || attempt === READ_ATTEMPTS) throw error
      await sleep(READ_RETRY_MS)
    }
  }
}
