/** Retries until Elasticsearch answers, and reports failures to health. */

import { type Health, keepTrying, type RetryOptions } from '../../runtime/index.ts'
import { ELASTICSEARCH_SLOW_MS } from '../limits.ts'

type Context = { readonly retryOptions: Omit<RetryOptions, 'onTrouble'>; readonly health: Health }

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
