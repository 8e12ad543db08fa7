/**
 * kafkajs restarts its consumer after errors that it marks as retriable. It treats three transient errors as fatal,
 * which would end the projector. `markTransientErrorsRetriable` marks them as retriable.
 */
import { loadKafkajs } from './load-kafkajs.ts'

/**
 * No broker knows the coordinator of the group; a request waited too long in the queue behind an earlier one; a
 * connection was lost while it authenticated, or the provider of identities is away. Refused credentials are the same
 * error to the client. A start has tried them before it consumes: refused later, they may be right again.
 */
const transientErrors = ['KafkaJSGroupCoordinatorNotFound', 'KafkaJSTimeout', 'KafkaJSSASLAuthenticationError'] as const

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
