/**
 * Which errors end the Kafka client's consumer. It starts again by itself after those that it holds to be for now; some that only
 * say that Kafka is sick it does not, and a projector ended that had but to wait. `startAgainWhenSick` makes them such.
 */
import { createRequire } from 'node:module'

const load = createRequire(import.meta.url)

/** No broker says who coordinates the group; what is asked has waited too long for what was asked before. */
const sick = ['KafkaJSGroupCoordinatorNotFound', 'KafkaJSTimeout'] as const

/** Must be called before the consumer runs; calling it again changes nothing. */
export const startAgainWhenSick = (): void => {
  const errors = load('kafkajs/src/errors') as Record<(typeof sick)[number], { readonly prototype: object }>
  for (const name of sick) {
    // The constructor assigns what it has always assigned; this takes it, and answers otherwise.
    Object.defineProperty(errors[name].prototype, 'retriable', {
      configurable: true,
      get: () => true,
      set: () => undefined,
    })
  }
}
