/**
 * kafkajs restarts its consumer after errors that it marks as retriable. It treats two transient errors as fatal, which
 * would end the projector. `markTransientErrorsRetriable` marks them as retriable.
 */
import { loadKafkajs } from './load-kafkajs.ts'

/** No broker knows the coordinator of the group; a request waited too long in the queue behind an earlier one. */
const transientErrors = ['KafkaJSGroupCoordinatorNotFound', 'KafkaJSTimeout'] as const

/** Must be called before the consumer runs. Idempotent. */
export const markTransientErrorsRetriable = (): void => {
  const errors = loadKafkajs<Record<(typeof transientErrors)[number], { readonly prototype: object }>>('errors')
  for (const name of transientErrors) {
    // The constructor still assigns `false`: the setter ignores it.
    Object.defineProperty(errors[name].prototype, 'retriable', {
      configurable: true,
      get: () => true,
      set: () => undefined,
    })
  }
}
