/** Retries until Kafka or Elasticsearch answers, and reports failures to health. */

import { StopError } from '../failures.ts'
import type { Health } from '../health.ts'
import { accessRefusal } from '../kafka/access-refusal.ts'
import { ELASTICSEARCH_SLOW_MS } from '../limits.ts'
import { keepTrying, type RetryOptions, Unavailable } from './client.ts'

type Context = { readonly retryOptions: Omit<RetryOptions, 'onTrouble'>; readonly health: Health }

export const kafkaRetryOptions = ({ retryOptions, health }: Context): RetryOptions => ({
  ...retryOptions,
  onTrouble: trouble => health.set('kafka', trouble && 'does not answer'),
})

export const retryUntilAborted = <Result>(
  operation: string,
  signal: AbortSignal,
  { retryOptions, health }: Context,
  attempt: () => Promise<Result>,
): Promise<Result> =>
  health.during(
    `elasticsearch ${operation}`,
    report => keepTrying(attempt, signal, { ...retryOptions, onTrouble: trouble => report(trouble?.message) }),
    ELASTICSEARCH_SLOW_MS,
  )

/**
 * Do not show the message of this `Unavailable`: it names Elasticsearch, but Kafka failed.
 * @throws Unavailable for a failure of Kafka that a retry may mend; StopError `access_refused`, or the one given
 */
export const asUnavailable = (error: unknown): never => {
  if (error instanceof StopError) throw error
  const refusal = accessRefusal(error)
  if (refusal !== undefined) throw new StopError('access_refused', `Kafka: ${refusal}`)
  throw new Unavailable(0)
}
