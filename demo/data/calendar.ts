/** Periods of an organization. Boundaries are at midnight in the time zone in which the period is decided. */
import type { PeriodData } from '../../schemas/events.ts'

export type PeriodKind = PeriodData['kind']

/** A period without ids. `from` and `to` are its boundaries in milliseconds since 1970. */
export type Span = Pick<PeriodData, 'kind' | 'name' | 'timezone' | 'starts_at' | 'ends_at'> & {
  readonly from: number
  readonly to: number
}

/** The time zone of each kind of period, and the month (1 to 12) in which the year begins. */
export type Calendar = { readonly zones: Readonly<Record<PeriodKind, string>>; readonly yearBegins: number }

/** The kinds of period, the shortest first, and the months of each. */
const kinds = ['month', 'quarter', 'year'] as const satisfies readonly PeriodKind[]
const lengths: Readonly<Record<PeriodKind, number>> = { month: 1, quarter: 3, year: 12 }

/**
 * Every month, quarter and year that begins in the given years, ordered by end; with the same end the shorter first.
 */
export const spansOf = ({ zones, yearBegins }: Calendar, firstYear: number, years: number): Span[] =>
  kinds
    .flatMap(kind =>
      Array.from({ length: (12 * years) / lengths[kind] }, (_, index) =>
        spanOf(kind, zones[kind], firstYear, kind === 'month' ? 1 : yearBegins, index * lengths[kind]),
      ),
    )
    .sort((a, b) => a.to - b.to)

const spanOf = (kind: PeriodKind, timezone: string, year: number, month: number, later: number): Span => {
  const start = midnight(timezone, year, month + later)
  const end = midnight(timezone, year, month + later + lengths[kind])
  const name = nameOf(kind, new Date(Date.UTC(year, month - 1 + later)), later)
  return { kind, name, timezone, starts_at: start.text, ends_at: end.text, from: start.at, to: end.at }
}

const nameOf = (kind: PeriodKind, start: Date, monthsLater: number): string => {
  const year = start.getUTCFullYear()
  if (kind === 'month') return `${start.toLocaleString('en-US', { month: 'long', timeZone: 'UTC' })} ${year}`
  const begin = new Date(Date.UTC(year, start.getUTCMonth() - (monthsLater % lengths.year)))
  const first = begin.getUTCFullYear()
  const whole = begin.getUTCMonth() === 0 ? `${first}` : `FY ${first}/${first + 1}`
  return kind === 'quarter' ? `Q${Math.floor((monthsLater % lengths.year) / lengths.quarter) + 1} ${whole}` : whole
}

/**
 * The first instant of a month in a time zone, as text with the zone's offset at that instant.
 * @param month counted from 1; above 12 it is a month of a later year
 */
export const midnight = (timezone: string, year: number, month: number): { text: string; at: number } => {
  const wall = Date.UTC(year, month - 1)
  // The inner call takes the wall time for UTC: near a change of clocks, its offset can be wrong. The outer one
  // corrects it.
  const offset = offsetOf(timezone, wall - offsetOf(timezone, wall) * 60_000)
  return { text: `${new Date(wall).toISOString().slice(0, 19)}${offsetText(offset)}`, at: wall - offset * 60_000 }
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** Minutes that a zone is ahead of UTC at an instant. */
const offsetOf = (timezone: string, at: number): number => {
  const format =
    formats.get(timezone) ?? new Intl.DateTimeFormat('en-US', { timeZone: timezone, timeZoneName: 'longOffset' })
  formats.set(timezone, format)
  const name = format.formatToParts(at).find(part => part.type === 'timeZoneName')?.value ?? ''
  const [, sign, hours, minutes] = /^GMT(?:([+-])(\d{2}):(\d{2}))?$/.exec(name) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0))
}

const offsetText = (minutes: number): string => {
  if (minutes === 0) return 'Z'
  const digits = (count: number) => String(count).padStart(2, '0')
  const ahead = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${digits(Math.floor(ahead / 60))}:${digits(ahead % 60)}`
}
