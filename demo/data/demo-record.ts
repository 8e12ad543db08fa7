/** A record of the demo: what goes to Kafka, and what is meant to become of it. */
import type { Message } from 'kafkajs'
import type { ParkCode } from '../../schemas/errors.ts'
import type { AnyEvent, Stream } from '../../schemas/events.ts'
import { type Event, toMessage } from './publish.ts'

export type Sent = {
  readonly stream: Stream
  readonly message: Message
  /** A code where the record breaks a rule on purpose: it is parked with exactly this one. */
  readonly outcome: 'applied' | 'duplicate' | ParkCode
}

/** An event that keeps every rule, with its place in time (milliseconds since 1970). */
export type DemoEvent = AnyEvent & Event & { readonly at: number }

/** @param serial tells events of one organization apart; an event that is sent again has the same one */
export const eventAt = (at: number, serial: string, event: AnyEvent): DemoEvent => ({
  ...event,
  at,
  id: `${event.data.org_id}-${serial}`,
  time: new Date(at).toISOString(),
})

export const streamOf = ({ type }: Pick<Event, 'type'>): Stream =>
  type.startsWith('commission.api_key.') ? 'api-keys' : 'events'

export const applied = (event: DemoEvent): Sent => ({
  stream: streamOf(event),
  message: toMessage(event),
  outcome: 'applied',
})
