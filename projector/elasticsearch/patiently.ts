/** Retries until Kafka or Elasticsearch answers, and reports failures to health. */

import type { Health } from '../health.ts'
import { ELASTICSEARCH_SLOW_MS } from '../limits.ts'
import { keepTrying, type Patience } from './client.ts'

type Context = { readonly patience: Omit<Patience, 'onTrouble'>; readonly health: Health }

export const kafkaPatience = ({ patience, health }: Context): Patience => ({
  ...patience,
  onTrouble: trouble => health.set('kafka', trouble && 'does not answer'),
})

export const retryUntilAborted = <Result>(
  operation: string,
  signal: AbortSignal,
  { patience, health }: Context,
  attempt: () => Promise<Result>,
): Promise<Result> =>
  health.during(
    `elasticsearch ${operation}`,
    tell => keepTrying(attempt, signal, { ...patience, onTrouble: trouble => tell(trouble?.message) }),
    ELASTICSEARCH_SLOW_MS,
  )
