/** Retries until Elasticsearch answers, and reports failures to health. */

import { keepTrying, type Retrying } from '../../runtime/index.ts'
import { ELASTICSEARCH_SLOW_MS } from '../limits.ts'

export const retryUntilAborted = <Result>(
  operation: string,
  signal: AbortSignal,
  { retryOptions, health }: Retrying,
  attempt: () => Promise<Result>,
): Promise<Result> =>
  health.during(
    `elasticsearch ${operation}`,
    report => keepTrying(attempt, signal, { ...retryOptions, onTrouble: trouble => report(trouble?.message) }),
    ELASTICSEARCH_SLOW_MS,
  )
