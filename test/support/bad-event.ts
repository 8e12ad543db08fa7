/** Builds refused events: good events, and ways to break them. */
import { dataOf, type Outgoing, payoutCalculated, repRecorded, withData } from './events.ts'

/** The events that are sent before, and the one that is refused. */
export type BadEvent = { readonly before?: readonly Outgoing[]; readonly bad: Outgoing }
export type Make = (org: string, partitions: number) => BadEvent | Outgoing

export const makeBad = (make: Make, org: string, partitions: number): Required<BadEvent> => {
  const made = make(org, partitions)
  return 'bad' in made ? { before: [], ...made } : { before: [], bad: made }
}

export const rep = (org: string): Outgoing => repRecorded({ org_id: org, id: 'rep_2' })
export const payout = (org: string): Outgoing => payoutCalculated({ org_id: org })
export const withText = (record: Outgoing, value: string | Buffer | null): Outgoing => ({ ...record, value })
export const textOf = ({ value }: Outgoing): string => String(value)

/** Returns another organization, always the same one: a seed must repeat its events. */
export const neighbourOf = (org: string): string => `${org}n`

/** Returns a rep whose name ends with these bytes. */
export const named = (org: string, bytes: number[]): Outgoing => {
  const text = textOf(withData(rep(org), { name: 'NAME' }))
  const at = text.indexOf('NAME') + 4
  return withText(
    rep(org),
    Buffer.concat([Buffer.from(text.slice(0, at)), Buffer.from(bytes), Buffer.from(text.slice(at))]),
  )
}

/** Returns the event in structured mode. `changes` sets attributes of the envelope; undefined removes one. */
export const structured = (record: Outgoing, changes: Record<string, unknown> = {}): Outgoing => {
  const { ce_type, ce_id, ce_source } = record.headers
  const event = { specversion: '1.0', type: ce_type, id: ce_id, source: ce_source, data: dataOf(record), ...changes }
  const headers = { 'content-type': 'application/cloudevents+json; charset=utf-8' }
  return { ...record, headers, value: JSON.stringify(event) }
}

/** Returns nested objects; `levels` counts the outermost too. */
export const nested = (levels: number): object => {
  let inner = {}
  for (let level = 1; level < levels; level++) inner = { inner }
  return inner
}

/** Returns a payout whose `earned_amount` is exactly these characters, without quotes unless they have some. */
export const withAmount = (org: string, characters: string): Outgoing =>
  withText(
    payout(org),
    textOf(payout(org)).replace(/(?<="earned_amount":)"[^"]*"/, () => characters),
  )
