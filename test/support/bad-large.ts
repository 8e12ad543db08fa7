/** Records of harmful size, refused and applied. They are too slow for random streams. */
import type { ParkCode } from '../../schemas/errors.ts'
import { type Make, payout, rep, textOf, withAmount, withText } from './bad-event.ts'
import { line, type Outgoing, withData, withHeaders } from './events.ts'

const DEEP = 100_000
const MANY = 10_000
const MILLION = 1_000_000

/** Returns a rep with an unknown field of exactly these characters. */
const withExtra = (org: string, characters: string): Outgoing =>
  withText(
    rep(org),
    textOf(rep(org)).replace('{', () => `{"extra":${characters},`),
  )

const unknownHeaders = Object.fromEntries(Array.from({ length: MANY }, (_, place) => [`x-CANARY-${place}`, `${place}`]))

export const refusedLarge = {
  record_undecodable: {
    'lists nested 100,000 deep': org => withExtra(org, '['.repeat(DEEP) + ']'.repeat(DEEP)),
    'lists nested 100,000 deep that never end': org => withText(rep(org), '['.repeat(DEEP)),
    'objects nested 100,000 deep': org => withExtra(org, `${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`),
    'one attribute 10,000 times': org => withHeaders(rep(org), { ce_id: Array.from({ length: MANY }, () => 'CANARY') }),
    'one content-type among 10,000 headers that is another': org =>
      withHeaders(rep(org), { ...unknownHeaders, 'content-type': 'text/plain' }),
    'a million quotes': org => withText(rep(org), '"'.repeat(MILLION)),
    'a million bytes that are none of UTF-8': org => withText(rep(org), Buffer.alloc(MILLION, 0x80)),
  },
  type_unknown: {
    'a type of a million letters': org => withHeaders(rep(org), { ce_type: 'CANARY'.repeat(MILLION / 6) }),
  },
  data_invalid: {
    'money of a million digits': org => withData(payout(org), { earned_amount: '1'.repeat(MILLION) }),
    'money with a million places': org => withData(payout(org), { earned_amount: `0.${'0'.repeat(MILLION)}1` }),
    'a number of a million digits for money': org => withAmount(org, '1'.repeat(MILLION)),
    'an id of a million letters': org => withData(rep(org), { id: `rep_${'a'.repeat(MILLION)}` }),
    'a text of a million letters': org => withData(rep(org), { name: 'CANARY'.repeat(MILLION / 6) }),
    '10,001 lines': org =>
      withData(payout(org), {
        line_items: Array.from({ length: 10_001 }, (_, place) => line({ id: `line_${place}`, amount: '0' })),
        net_amount: '0',
      }),
  },
} as const satisfies Partial<Record<ParkCode, Readonly<Record<string, Make>>>>

/** Applied for an organization that has `rep_1` and `period_1`. */
export const appliedLarge: Readonly<Record<string, (org: string) => Outgoing>> = {
  '10,000 headers that nobody knows': org => withHeaders(rep(org), unknownHeaders),
  'a header that stands 10,000 times, of no concern': org =>
    withHeaders(rep(org), { 'x-CANARY': Array.from({ length: MANY }, (_, place) => `${place}`) }),
  '100,000 brackets within a text that nobody knows': org => withExtra(org, `"${'[{'.repeat(DEEP / 2)}"`),
  '100,000 keys that nobody knows': org =>
    withExtra(org, `{${Array.from({ length: DEEP }, (_, place) => `"k${place}":0`).join()}}`),
  'a number of a million digits that nobody knows': org => withExtra(org, '1'.repeat(MILLION)),
  'a text of a million letters that nobody knows': org => withExtra(org, `"${'CANARY'.repeat(MILLION / 6)}"`),
}
