/** Retries until Kafka answers, and reports failures to health. */

import { type Retrying, type RetryOptions, StopError, Unanswered } from '../runtime/index.ts'
import { accessRefusal } from './kafka/access-refusal.ts'

export const kafkaRetryOptions = ({ retryOptions, health }: Retrying): RetryOptions => ({
  ...retryOptions,
  onTrouble: trouble => health.set('kafka', trouble && 'does not answer'),
})

/** @throws Unanswered for a failure of Kafka that a retry may mend; StopError `access_refused`, or the one given */
export const asUnanswered = (error: unknown): never => {
  if (error instanceof StopError) throw error
  const refusal = accessRefusal(error)
  if (refusal !== undefined) throw new StopError('access_refused', `Kafka: ${refusal}`)
  throw new Unanswered('kafka')
}
