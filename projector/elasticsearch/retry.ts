/** Retries until Kafka or Elasticsearch answers, and reports failures to health. */

import type { Health } from '../health.ts'
import { ELASTICSEARCH_SLOW_MS } from '../limits.ts'
import { keepTrying, type RetryOptions } from './client.ts'

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
