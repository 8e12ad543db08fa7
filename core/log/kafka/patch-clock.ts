/**
 * kafkajs measures times with the clock of the machine. When that clock is set back by an hour, kafkajs sends no
 * heartbeat for an hour: the broker removes the projector from its group, and nothing tells the projector. A request
 * does not time out for an hour, and one that the broker delays waits for an hour. `measureWithMonotonicClock` lets
 * these times be measured with a monotonic clock.
 *
 * In: the fields of kafkajs that have a time of the machine's clock. Out: the same times, which move with that clock
 * when it is set.
 */
import { loadKafkajs } from './load-kafkajs.ts'

type Class = { readonly prototype: object }

/** The last heartbeat, the sending of a request, and the ends of a delay and of the use of metadata. */
const times = [
  ['consumer/consumerGroup', 'lastRequest'],
  ['network/requestQueue/socketRequest', 'sentAt'],
  ['network/requestQueue', 'throttledUntil'],
  ['cluster/brokerPool', 'metadataExpireAt'],
] as const

let repaired = false

/**
 * Must be called before the first connection. Idempotent.
 * @param now the clock of the machine, which kafkajs reads
 */
export const measureWithMonotonicClock = (now: () => number): void => {
  if (repaired) return
  repaired = true
  const ahead = () => now() - performance.now()
  for (const [path, field] of times) follow(loadKafkajs<Class>(path), field, ahead)
}

/**
 * The constructor assigns the field, too: the setter gets the value.
 * @param ahead milliseconds by which the machine's clock is ahead of a monotonic one
 */
const follow = ({ prototype }: Class, field: string, ahead: () => number): void => {
  const known = new WeakMap<object, number | null>()
  Object.defineProperty(prototype, field, {
    configurable: true,
    get(this: object) {
      const time = known.get(this)
      return typeof time === 'number' ? time + ahead() : time
    },
    set(this: object, time: number | null) {
      known.set(this, typeof time === 'number' ? time - ahead() : time)
    },
  })
}
