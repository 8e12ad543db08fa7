import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RULES_VERSION } from '../../core/ledger/rules/rules.ts'
import { timezones } from '../../schemas/timezones.ts'
import { CalendarDate, Instant, instantToNanoseconds, isCalendarDate, Timezone } from '../../schemas/values.ts'
import { table } from './table.ts'

describe('instants', () => {
  table(
    Instant,
    [
      '2026-02-01T08:30:00Z',
      '2026-02-01T08:30:00.1Z',
      '2026-02-01T08:30:00.123456789Z',
      '2026-02-01T08:30:00+05:30',
      '2026-02-01T08:30:00-23:59',
      '2026-02-01T08:30:00-00:00',
      '2024-02-29T23:59:59Z',
      '2000-02-29T00:00:00Z',
      '0000-01-01T00:00:00Z',
      '9999-12-31T23:59:59.999999999Z',
    ],
    [
      '2026-02-01t08:30:00Z',
      '2026-02-01T08:30:00z',
      '2026-02-01 08:30:00Z',
      '2026-02-01T08:30:00',
      '2026-02-01T08:30Z',
      '2026-02-01',
      '2026-02-01T08:30:60Z',
      '2026-12-31T23:59:60Z',
      '2026-02-01T24:00:00Z',
      '2026-02-01T08:60:00Z',
      '2026-02-01T08:30:00.Z',
      '2026-02-01T08:30:00.1234567890Z',
      '2026-02-01T08:30:00,5Z',
      '2026-02-01T08:30:00+24:00',
      '2026-02-01T08:30:00+05:60',
      '2026-02-01T08:30:00+0530',
      '2026-02-01T08:30:00+05',
      '2026-02-01T08:30:00−05:00',
      '2026-02-29T00:00:00Z',
      '1900-02-29T00:00:00Z',
      '2026-02-30T00:00:00Z',
      '2026-04-31T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-00-01T00:00:00Z',
      '2026-01-00T00:00:00Z',
      '02026-01-01T00:00:00Z',
      '-0001-01-01T00:00:00Z',
      '10000-01-01T00:00:00Z',
      '2026-02-01T08:30:00Z\n',
      '٢٠٢٦-02-01T08:30:00Z',
      '',
      1_770_000_000,
      null,
    ],
  )

  test('are compared to the nanosecond, across offsets', () => {
    const same = ['2026-01-01T00:00:00Z', '2026-01-01T05:30:00+05:30', '2025-12-31T19:00:00.000-05:00']
    expect(new Set(same.map(instantToNanoseconds))).toEqual(new Set([1_767_225_600_000_000_000n]))

    const [before, after] = ['2026-01-01T00:00:00.000000001Z', '2026-01-01T00:00:00.000000002Z'].map(
      text => instantToNanoseconds(text) ?? 0n,
    )
    expect((after ?? 0n) - (before ?? 0n)).toBe(1n)
  })

  test('reach from year 0 to year 9999, plus the minute that an offset adds at both ends', () => {
    expect(instantToNanoseconds('0000-01-01T00:00:00Z')).toBe(-62_167_219_200_000_000_000n)
    expect(instantToNanoseconds('0000-01-01T00:00:00+00:01')).toBe(-62_167_219_260_000_000_000n)
    expect(instantToNanoseconds('9999-12-31T23:59:59.999999999Z')).toBe(253_402_300_799_999_999_999n)
    expect(instantToNanoseconds('9999-12-31T23:59:59-00:01')).toBe(253_402_300_859_000_000_000n)
  })

  test('equal Date, to the millisecond, wherever Date can represent them', () => {
    const years = { min: new Date('0000-01-02T00:00:00Z'), max: new Date('9999-12-30T00:00:00Z'), noInvalidDate: true }
    fc.assert(
      fc.property(fc.date(years), fc.integer({ min: -1439, max: 1439 }), (date, offset) => {
        const minutes = Math.abs(offset)
        const [hour, minute] = [Math.floor(minutes / 60), minutes % 60].map(part => String(part).padStart(2, '0'))
        const local = new Date(date.getTime() + offset * 60_000).toISOString().slice(0, -1)
        const text = `${local}${offset < 0 ? '-' : '+'}${hour}:${minute}`
        expect(instantToNanoseconds(text)).toBe(BigInt(date.getTime()) * 1_000_000n)
      }),
    )
  })
})

describe('dates', () => {
  table(
    CalendarDate,
    ['2024-02-29', '2000-02-29', '0000-02-29', '9999-12-31', '2026-01-31'],
    [
      '2026-02-29',
      '1900-02-29',
      '2100-02-29',
      '2026-02-30',
      '2026-04-31',
      '2026-00-10',
      '2026-13-01',
      '2026-1-01',
      '2026-01-00',
      '2026-01-32',
      '20260101',
      '2026-01-01T00:00:00Z',
      '2026-01-01\n',
      '',
      '٢٠٢٦-01-01',
    ],
  )

  test('are exactly the days that Date counts', () => {
    const day = new Date('1896-01-01T00:00:00Z')
    const counted = new Set<string>()
    for (; day.getUTCFullYear() < 1905; day.setUTCDate(day.getUTCDate() + 1)) {
      counted.add(day.toISOString().slice(0, 10))
    }
    for (let year = 1896; year < 1905; year++) {
      for (let month = 0; month <= 13; month++) {
        for (let date = 0; date <= 32; date++) {
          const text = [year, month, date].map(part => String(part).padStart(2, '0')).join('-')
          if (isCalendarDate(text) !== counted.has(text)) expect.unreachable(text)
        }
      }
    }
  })
})

describe('time zones', () => {
  table(
    Timezone,
    ['UTC', 'Etc/UTC', 'Asia/Kolkata', 'Asia/Calcutta', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', 'EST'],
    [
      'utc',
      'Utc',
      'europe/berlin',
      'Europe/berlin',
      'Europe/Nowhere',
      'posix/UTC',
      '+01:00',
      'Z',
      '',
      ' UTC',
      'UTC\n',
      '__proto__',
      null,
    ],
  )

  test('are a fixed list: another list decides differently and needs a new RULES_VERSION', () => {
    const sha256 = createHash('sha256')
      .update([...timezones].sort().join('\n'))
      .digest('hex')
    expect({ zones: timezones.size, sha256, rules: RULES_VERSION }).toEqual({
      zones: 598,
      sha256: 'f863b5b3846a6449275ea3d49e72c2d3d0a293f2db15cac27088de7a4c69d3a8',
      rules: 4,
    })
  })
})
