/** Retries until Kafka answers, and reports failures to health. */

import { keepTrying, type Retrying, StopError, Unanswered } from '../runtime/index.ts'
import { accessRefusal, failedAuthentication } from './kafka/access-refusal.ts'
import { partitionsOf } from './kafka/patch-partition-errors.ts'

/** Each caller has its own reason: no other one, and no stream of another topic, takes it back. */
export const untilKafkaAnswers = <Result>(
  attempt: () => Promise<Result>,
  signal: AbortSignal,
  { retryOptions, health }: Retrying,
): Promise<Result> =>
  health.during('kafka', report =>
    keepTrying(attempt, signal, { ...retryOptions, onTrouble: trouble => report(trouble?.why) }),
  )

/** @throws Unanswered for a failure of Kafka that a retry may mend; StopError `access_refused`, or the one given */
export const asUnanswered = (error: unknown): never => {
  if (error instanceof StopError || error instanceof Unanswered) throw error
  const refusal = accessRefusal(error)
  if (refusal !== undefined) throw new StopError('access_refused', `Kafka: ${refusal}`)
  throw new Unanswered('kafka', 0, partitionsOf(error), failedAuthentication(error))
}
