/**
 * Makes believable organizations, the same for the same seed: reps who join and leave, periods in several time zones, a
 * history for every rep and period, and API keys. mistakes.ts adds the mistakes.
 */
import type { RepData } from '../../schemas/events.ts'
import { type Calendar, type Span, spansOf } from './calendar.ts'
import { applied, type DemoEvent, type DemoRecord, eventAt } from './demo-record.ts'
import { HISTORY_TAKES, historyOf, type TimedEvent } from './history.ts'
import { type DemoKeys, makeKeys } from './keys.ts'
import { withDuplicates, withKeyMistakes, withMistakes } from './mistakes.ts'
import { createRandom, type Random } from './random.ts'

export type DemoOrganization = {
  readonly name: string
  readonly id: string
  readonly keys: DemoKeys
  /** All its records, in the order of publishing. */
  readonly sent: readonly DemoRecord[]
}

type Size = {
  /** Maximum number of years of each organization. */
  readonly years: number
  /** Of the events topic: one mistake uses a wrong partition. */
  readonly partitions: number
}

/** Makes the organizations of a seed, mistakes included. */
export const makeOrganizations = (seed: number, { years, partitions }: Size): DemoOrganization[] => {
  const made = profiles.map((profile, index) => makeOrganization(profile, years, createRandom(seed * 100 + index)))
  const random = createRandom(seed * 100 + profiles.length)
  const [large, small] = made
  if (large === undefined || small === undefined) throw new Error('two organizations are needed')
  return [
    { ...large, sent: [...large.sent, ...withMistakes(large.events, { other: small.id, partitions }, random)] },
    { ...small, sent: [...withKeyMistakes(small.sent, large.keys, random), ...withDuplicates(small.events, random)] },
  ].map(({ name, id, keys, sent }) => ({ name, id, keys, sent }))
}

type Profile = {
  readonly name: string
  readonly reps: number
  readonly firstYear: number
  readonly years: number
  readonly calendar: Calendar
  readonly currencies: readonly string[]
}

const profiles: readonly Profile[] = [
  {
    name: 'Nordlicht Instruments',
    reps: 33,
    firstYear: 2016,
    years: 10,
    // The parent company in London decides the year, which begins in April.
    calendar: { zones: { month: 'Europe/Berlin', quarter: 'Europe/Berlin', year: 'Europe/London' }, yearBegins: 4 },
    currencies: ['EUR', 'EUR', 'EUR', 'GBP', 'USD'],
  },
  {
    name: 'Prairie Robotics',
    reps: 9,
    firstYear: 2023,
    years: 3,
    calendar: { zones: { month: 'America/Chicago', quarter: 'Asia/Kolkata', year: 'America/Chicago' }, yearBegins: 1 },
    currencies: ['USD', 'USD', 'EUR'],
  },
]

type Made = DemoOrganization & { readonly events: readonly DemoEvent[] }

const makeOrganization = (profile: Profile, years: number, random: Random): Made => {
  const id = random.id('org')
  const spans = spansOf(profile.calendar, profile.firstYear, Math.min(profile.years, years))
  const [first, last] = [Math.min(...spans.map(span => span.from)), Math.max(...spans.map(span => span.to))]
  const reps = Array.from({ length: profile.reps }, (_, index) => makeRep(index, id, profile, { first, last }, random))
  const periods = spans.map(span => ({ id: random.id('period'), span }))

  const timedEvents = [
    ...reps.flatMap(rep => repEvents(rep, first, random)),
    ...periods.flatMap(period => periodEvents(id, period, random)),
    ...periods.flatMap(({ id: period_id, span }) =>
      reps
        .filter(rep => rep.from < span.to && rep.to > span.from)
        .flatMap(rep =>
          historyOf({ org_id: id, rep_id: rep.data.id, period_id, currency: rep.currency, span }, random),
        ),
    ),
  ].sort((a, b) => a.at - b.at)

  const events = timedEvents.map(({ at, event }, index) => eventAt(at, String(index + 1), event))
  const keys = makeKeys(id, first, random)
  return { name: profile.name, id, keys, events, sent: keys.events.map(applied) }
}

/** A rep, the instants between which there are payouts, and the currency of the contract. */
type Rep = { readonly data: RepData; readonly currency: string; readonly from: number; readonly to: number }

const givenNames = [
  'Zoë',
  'Henrik',
  'Aylin',
  'Małgorzata',
  'James',
  'Thị Hà',
  'Óscar',
  'Priya',
  'Chloé',
  'Nils',
  'Adaeze',
]
const familyNames = [
  'Brandt',
  'O’Connor',
  'Yıldız',
  'Nowak',
  'Nguyễn',
  'Peña',
  'Raman',
  'Lefèvre',
  'Sørensen',
  'Okafor',
]

const makeRep = (
  index: number,
  org_id: string,
  profile: Profile,
  { first, last }: { readonly first: number; readonly last: number },
  random: Random,
): Rep => {
  const [given, family] = [random.pick(givenNames), random.pick(familyNames)]
  const joinsLater = random.chance(0.2)
  const from = joinsLater ? random.integer(first, (first + last) / 2) : first - random.integer(1, 900) * DAY
  // Every eighth rep leaves: at least one of each organization.
  const leaves = index % 8 === 3
  const to = leaves ? random.integer((Math.max(from, first) + last) / 2, last) : Number.POSITIVE_INFINITY
  const data: RepData = {
    org_id,
    id: random.id('rep'),
    name: `${given} ${family}`,
    email: random.chance(0.9) ? `rep${index + 1}@example.com` : null,
    status: 'active',
    started_on: random.chance(0.95) ? dateOf(from) : null,
    departed_on: null,
  }
  return { data, currency: random.pick(profile.currencies), from, to }
}

const repEvents = ({ data, from, to }: Rep, first: number, random: Random): TimedEvent[] => {
  const type = 'commission.rep.recorded.v1'
  const recorded = { at: Math.max(from, first - DAY), event: { type, data } } as const
  const renamed = {
    ...data,
    name: `${data.name.split(' ')[0]} ${random.pick(familyNames)}-${random.pick(familyNames)}`,
  }
  const timedEvents: TimedEvent[] = [recorded]
  const changes = random.chance(0.2)
  if (changes) timedEvents.push({ at: recorded.at + 100 * DAY, event: { type, data: renamed } })
  if (to !== Number.POSITIVE_INFINITY) {
    const departed = { ...(changes ? renamed : data), status: 'departed', departed_on: dateOf(to) } as const
    timedEvents.push({ at: Math.max(to, recorded.at + 101 * DAY), event: { type, data: departed } })
  }
  return timedEvents
}

const periodEvents = (org_id: string, { id, span }: { id: string; span: Span }, random: Random): TimedEvent[] => {
  const { kind, name, timezone, starts_at, ends_at, from, to } = span
  const type = 'commission.period.recorded.v1'
  const data = { org_id, id, kind, name, timezone, starts_at, ends_at }
  const closed = { at: to + HISTORY_TAKES, event: { type, data: { ...data, name: `${name} (closed)` } } } as const
  return [{ at: from, event: { type, data } }, ...(random.chance(0.05) ? [closed] : [])]
}

const DAY = 24 * 60 * 60_000
const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
