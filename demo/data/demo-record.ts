/** A record of the demo, and its expected outcome. */
import type { Message } from 'kafkajs'
import type { ParkCode } from '../../schemas/errors.ts'
import type { AnyEvent, Stream } from '../../schemas/events.ts'
import { type Event, toMessage } from './publish.ts'

export type DemoRecord = {
  readonly stream: Stream
  readonly message: Message
  /** A code if the record breaks a rule on purpose: it must be parked with this code. */
  readonly outcome: 'applied' | 'duplicate' | ParkCode
}

/** A valid event and its time (milliseconds since 1970). */
export type DemoEvent = AnyEvent & Event & { readonly at: number }

/** @param serial unique within an organization; a duplicate has the same one */
export const eventAt = (at: number, serial: string, event: AnyEvent): DemoEvent => ({
  ...event,
  at,
  id: `${event.data.org_id}-${serial}`,
  time: new Date(at).toISOString(),
})

/** Returns the stream of an event, by its type. */
export const streamOf = ({ type }: Pick<Event, 'type'>): Stream =>
  type.startsWith('commission.api_key.') ? 'api-keys' : 'events'

/** Returns a valid event as a record that must be applied. */
export const applied = (event: DemoEvent): DemoRecord => ({
  stream: streamOf(event),
  message: toMessage(event),
  outcome: 'applied',
})
