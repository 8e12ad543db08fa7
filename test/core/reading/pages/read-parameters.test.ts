import { describe, expect, test } from 'vitest'
import { PARAMETER_NAME_SHOWN } from '../../../../core/reading/limits.ts'
import {
  hasParameter,
  readHistoryParameters,
  readId,
  readListParameters,
  readRecordParameters,
  readTotalsParameters,
  refuseParameters,
} from '../../../../core/reading/pages/read-parameters.ts'
import { Refusal } from '../../../../core/runtime/refusals.ts'
import { API_KEY_LENGTH_MIN, IDS_MAX, PAGE_LIMIT_DEFAULT } from '../../../../schemas/limits.ts'

const refused = (act: () => unknown): string | undefined => {
  try {
    act()
  } catch (error) {
    if (error instanceof Refusal) return error.code
    throw error
  }
  return undefined
}
const list = (query: string) => readListParameters('payouts', query)

describe('limit', () => {
  test.each([
    ['', 50],
    ['limit=1', 1],
    ['limit=200', 200],
    ['limit=201', 200],
    ['limit=100000', 200],
    [`limit=${'9'.repeat(400)}`, 200],
    ['limit=%31%30', 10],
  ])('%s gives a page of up to %i', (query, limit) => {
    expect(list(query).limit).toBe(limit)
  })

  test.each([
    'limit=',
    'limit',
    'limit=0',
    'limit=-1',
    'limit=1.5',
    'limit=1e2',
    'limit=+5',
    'limit= 5',
    'limit=5 ',
    'limit=05',
    'limit=0x10',
    'limit=ten',
    'limit=١',
    'limit=%zz',
    'limit=5&limit=5',
    'limit=5%00',
    'limit=5,6',
    'limit[]=5',
  ])('%s is refused', query => {
    expect(refused(() => list(query))).toBe('invalid_request')
  })
})

describe('starting_after', () => {
  test('accepts an id of the kind that is listed', () => {
    expect(list('starting_after=payout_1&limit=2')).toEqual({
      limit: 2,
      startingAfter: { kind: 'payouts', id: 'payout_1' },
      asOf: undefined,
      filter: {},
    })
    expect(list('starting_after=%70ayout_1').startingAfter?.id).toBe('payout_1')
    expect(readListParameters('payroll_files', 'starting_after=payroll_1').startingAfter).toEqual({
      kind: 'payroll_files',
      id: 'payroll_1',
    })
  })

  test.each([
    'starting_after=',
    'starting_after',
    'starting_after=rep_1',
    'starting_after=payout_',
    'starting_after=payout_a-b',
    `starting_after=payout_${'a'.repeat(65)}`,
    'starting_after=payout_1%0A',
    'starting_after=%zz',
    'starting_after=null',
    'starting_after=payout_1/..',
    'starting_after=PAYOUT_1',
    'starting_after=org_a:payout_1',
  ])('%s is refused', query => {
    expect(refused(() => list(query))).toBe('invalid_cursor')
  })

  test('is refused if it is given twice, and only after errors in other parameters', () => {
    expect(refused(() => list('starting_after=payout_1&starting_after=payout_1'))).toBe('invalid_request')
    expect(refused(() => list('starting_after=&limit=0'))).toBe('invalid_request')
    expect(refused(() => list('starting_after=&page=2'))).toBe('invalid_request')
    expect(refused(() => list('starting_after=&rep_id=1'))).toBe('invalid_request')
    expect(refused(() => readListParameters('changes', 'starting_after=&wait=x'))).toBe('invalid_request')
  })
})

describe('a sequence', () => {
  const changes = (query: string) => readListParameters('changes', query)

  test('is a whole number in digits; 0 is the beginning', () => {
    expect(changes('after=0').after).toBe(0)
    expect(changes('after=17&limit=2&rep_id=rep_1&as_of=payout_1').after).toBe(17)
    expect(changes('').after).toBeUndefined()
  })

  test.each(['after=', 'after=-1', 'after=1.5', 'after=1e3', 'after=01', 'after=payout_1', 'after=1&after=1'])(
    '%s is refused',
    query => expect(refused(() => changes(query))).toBe('invalid_request'),
  )

  test('cannot be combined with a cursor or a wait, and other lists do not know it', () => {
    expect(refused(() => changes('after=1&starting_after=payout_1'))).toBe('invalid_request')
    expect(refused(() => changes('after=1&wait=5'))).toBe('invalid_request')
    expect(refused(() => list('after=1'))).toBe('invalid_request')
  })
})

describe('a change', () => {
  const cursor = (text: string) => readListParameters('changes', `starting_after=${text}`).startingAfter

  test('is named by its record; for a rep or a period also by the version', () => {
    expect(cursor('payout_1')).toEqual({ kind: 'payouts', id: 'payout_1' })
    expect(cursor('payroll_a')).toEqual({ kind: 'payroll_files', id: 'payroll_a' })
    expect(cursor('rep_1.1')).toEqual({ kind: 'reps', id: 'rep_1', ordinal: 1 })
    expect(cursor('period_1.10000')).toEqual({ kind: 'periods', id: 'period_1', ordinal: 10_000 })
  })

  test.each([
    '',
    'rep_1',
    'period_1',
    'rep_1.',
    'rep_1.0',
    'rep_1.01',
    'rep_1.-1',
    'rep_1.1.1',
    'rep_1.1e3',
    'payout_1.1',
    'payroll_1.1',
    'deal_1',
    'rep_1.1234567890',
  ])('is not named by %j', text => {
    expect(refused(() => cursor(text))).toBe('invalid_cursor')
    expect(refused(() => readRecordParameters(`as_of=${text}`))).toBe('invalid_request')
  })
})

describe('as_of', () => {
  test.each([
    ['2026-02-01T08:30:00Z', Date.UTC(2026, 1, 1, 8, 30)],
    ['2026-02-01T08:30:00.123999999Z', Date.UTC(2026, 1, 1, 8, 30, 0, 123)],
    ['2026-02-01T08:30:00%2B02:00', Date.UTC(2026, 1, 1, 6, 30)],
    ['2026-02-01T08:30:00-02:00', Date.UTC(2026, 1, 1, 10, 30)],
    ['1970-01-01T00:00:00.0009Z', 0],
  ])('%s is an instant, truncated to the millisecond', (text, milliseconds) => {
    expect(readRecordParameters(`as_of=${text}`).asOf).toEqual({ kind: 'instant', milliseconds })
    expect(list(`limit=1&as_of=${text}`).asOf).toEqual({ kind: 'instant', milliseconds })
  })

  test('accepts a change, and is undefined if it is missing', () => {
    expect(readRecordParameters('as_of=rep_1.2').asOf).toEqual({
      kind: 'change',
      name: { kind: 'reps', id: 'rep_1', ordinal: 2 },
    })
    expect(readRecordParameters('').asOf).toBeUndefined()
    expect(list('').asOf).toBeUndefined()
  })

  test.each([
    '',
    'now',
    '2026-03-01',
    '2026-02-30T00:00:00Z',
    '2026-03-01T08:30:00',
    '2026-02-01T08:30:00+02:00',
    '2026-02-01t08:30:00z',
    '1770000000',
    '%zz',
    '5',
  ])('%j is refused, and the message does not repeat it', text => {
    for (const read of [readRecordParameters, list]) {
      expect(refused(() => read(`as_of=${text}`))).toBe('invalid_request')
      if (text.length > 3) expect(() => read(`as_of=${text}`)).not.toThrow(text)
    }
  })

  test('is refused if it is given twice, and before the cursor is checked', () => {
    expect(refused(() => readRecordParameters('as_of=payout_1&as_of=payout_1'))).toBe('invalid_request')
    expect(refused(() => list('starting_after=&as_of='))).toBe('invalid_request')
  })
})

describe('a filter', () => {
  test.each(['payouts', 'payroll_files', 'changes'] as const)('of %s is the rep, the period or both', name => {
    expect(readListParameters(name, 'rep_id=rep_1').filter).toEqual({ rep_id: 'rep_1' })
    expect(readListParameters(name, 'period_id=period_1').filter).toEqual({ period_id: 'period_1' })
    expect(readListParameters(name, 'period_id=period_1&limit=2&rep_id=rep_1').filter).toEqual({
      rep_id: 'rep_1',
      period_id: 'period_1',
    })
    expect(readListParameters(name, '').filter).toEqual({})
  })

  test.each(['payouts', 'changes'] as const)('of %s may be a deal, too', name => {
    expect(readListParameters(name, 'deal_id=deal_1&rep_id=rep_1').filter).toEqual({
      deal_id: 'deal_1',
      rep_id: 'rep_1',
    })
    expect(() => readListParameters(name, 'deal_id=rep_1')).toThrow('`deal_id` must be the id of a deal')
  })

  test('by deal is unknown where records have no deals', () => {
    for (const kind of ['reps', 'periods', 'payroll_files'] as const) {
      expect(() => readListParameters(kind, 'deal_id=deal_1')).toThrow('Unknown query parameter `deal_id`.')
    }
  })

  test.each(['', 'rep_', 'period_1', 'rep_1,rep_2', 'rep_*', `rep_${'1'.repeat(65)}`, '%zz', 'rep_1%00'])(
    'by the rep %j is refused, and the message names the form',
    id => {
      expect(() => list(`rep_id=${id}`)).toThrow('`rep_id` must be the id of a rep: `rep_` and 1 to 64 of 0-9A-Za-z.')
      expect(refused(() => list(`rep_id=${id}`))).toBe('invalid_request')
    },
  )

  test('is refused if it is given twice, and where records have no rep or period', () => {
    expect(refused(() => list('rep_id=rep_1&rep_id=rep_2'))).toBe('invalid_request')
    for (const kind of ['reps', 'periods'] as const) {
      expect(refused(() => readListParameters(kind, 'rep_id=rep_1'))).toBe('invalid_request')
    }
    expect(refused(() => readHistoryParameters('rep_id=rep_1'))).toBe('invalid_request')
    expect(refused(() => readRecordParameters('rep_id=rep_1'))).toBe('invalid_request')
  })

  test('by another field is refused: one that changes, or the organization', () => {
    for (const query of ['status=active', 'amount=1', 'currency=EUR', 'superseded_by_id=payout_1', 'org_id=org_1']) {
      expect([query, refused(() => list(query))]).toEqual([query, 'invalid_request'])
    }
  })
})

describe('ids', () => {
  test('are of the kind that is listed, and stand beside a moment only', () => {
    expect(list('ids=payout_2,payout_1')).toEqual({
      limit: 2,
      startingAfter: undefined,
      asOf: undefined,
      ids: ['payout_2', 'payout_1'],
    })
    expect(readListParameters('reps', 'as_of=payout_1&ids=rep_1')).toMatchObject({
      ids: ['rep_1'],
      asOf: { kind: 'change' },
    })
    expect(list('ids=payout_2%2Cpayout_1').ids).toEqual(['payout_2', 'payout_1'])
    expect(list('').ids).toBeUndefined()
  })

  test('stand beside the default limit, which generated clients send with each request, and beside no other', () => {
    expect(list(`ids=payout_1&limit=${PAGE_LIMIT_DEFAULT}`)).toEqual(list('ids=payout_1'))
    expect(refused(() => list('ids=payout_1&limit=51'))).toBe('invalid_request')
  })

  const many = (count: number) => Array.from({ length: count }, (_, n) => `payout_${n}`).join()
  test.each([
    ['ids=', '1 to 100 ids, separated by commas; it has 0.'],
    ['ids=%zz', '1 to 100 ids, separated by commas; it has 0.'],
    [`ids=${many(101)}`, '1 to 100 ids, separated by commas; it has 101.'],
    ['ids=payout_1,payout_2,payout_1', 'each id once: number 3 of 3 is the same as number 1.'],
    ['ids=payout_1,', 'Number 2 of 2 is none.'],
    ['ids=rep_1', '`payout_` and 1 to 64 of 0-9A-Za-z. Number 1 of 1 is none.'],
    ['ids=payout_1, payout_2', 'Number 2 of 2 is none.'],
    ['ids=payout_1&limit=2', '`ids` and `limit` cannot be combined'],
    ['ids=payout_1&starting_after=payout_1', '`ids` and `starting_after` cannot be combined'],
    ['rep_id=rep_1&ids=payout_1', '`ids` and `rep_id` cannot be combined'],
    ['ids=payout_1&ids=payout_1', 'The parameter `ids` is given more than once.'],
  ])('%s is refused, and the message says why', (query, message) => {
    expect(() => list(query)).toThrow(message)
    expect(refused(() => list(query))).toBe('invalid_request')
  })

  test(`may be ${IDS_MAX}, and are no parameter of the feed or a history`, () => {
    expect(list(`ids=${many(IDS_MAX)}`).ids).toHaveLength(IDS_MAX)
    expect(refused(() => readListParameters('changes', 'ids=payout_1'))).toBe('invalid_request')
    expect(refused(() => readHistoryParameters('ids=payout_1'))).toBe('invalid_request')
  })
})

describe('totals', () => {
  test('take a moment, a rep, a period and a deal', () => {
    const rep = { rep: 'rep_1', period: undefined, deal: undefined }
    expect(readTotalsParameters('rep_id=rep_1')).toEqual({ asOf: undefined, ...rep })
    expect(readTotalsParameters('period_id=period_1&rep_id=rep_1&as_of=payout_1')).toMatchObject({
      asOf: { kind: 'change' },
      rep: 'rep_1',
      period: 'period_1',
    })
    expect(readTotalsParameters('deal_id=deal_1&rep_id=rep_1')).toMatchObject({ rep: 'rep_1', deal: 'deal_1' })
    for (const query of ['rep_id=', 'rep_id=period_1', 'deal_id=rep_1', 'limit=1', 'rep_id=rep_1&rep_id=rep_1']) {
      expect([query, refused(() => readTotalsParameters(query))]).toEqual([query, 'invalid_request'])
    }
  })

  test('have a rep if a name of the query is decoded to it', () => {
    for (const query of ['rep_id=', 'a=1&rep_id', '%72ep_id=x', '&rep_id=rep_1']) {
      expect([query, hasParameter(query, 'rep_id')]).toEqual([query, true])
    }
    for (const query of ['', 'REP_ID=1', 'rep=rep_id', 'x=rep_id=1']) {
      expect([query, hasParameter(query, 'rep_id')]).toEqual([query, false])
    }
  })
})

describe('any other parameter', () => {
  test.each(['startingAfter=payout_1', 'Limit=5', 'page=2', '=5', 'cursor', '%zz=1', 'a[]=1', '__proto__=1'])(
    '%s is refused on a list',
    query => {
      expect(refused(() => list(query))).toBe('invalid_request')
    },
  )

  test('is refused on a single record, also where a list would accept it', () => {
    expect(refused(() => refuseParameters('limit=5'))).toBe('invalid_request')
    expect(refused(() => refuseParameters('x'))).toBe('invalid_request')
    expect(refused(() => refuseParameters(''))).toBeUndefined()
    expect(refused(() => refuseParameters('&'))).toBeUndefined()
  })

  test.each([
    ['Limit=5', 'Unknown query parameter `Limit`.'],
    ['starting_afer=payout_1', 'Unknown query parameter `starting_afer`.'],
    ['filter[rep_id]=1', 'Unknown query parameter `filter[rep_id]`.'],
    ['starting_after_this=1', 'Unknown query parameter `starting_after_t…`.'],
    ['ck_0123456789abcdefghijkl', 'Unknown query parameter `ck_0123456789abc…`.'],
    ['%3Cscript%3E=1', 'Unknown query parameter.'],
    ['a%20b=1', 'Unknown query parameter `a…`.'],
    ['%zz=1', 'Unknown query parameter.'],
    ['=5', 'Unknown query parameter.'],
  ])('%s is named in the message; a long or unusual name is cut', (query, message) => {
    expect(() => list(query)).toThrow(new Refusal('invalid_request', { message }))
  })

  test('is never shown at a length that could be a key; values are never shown', () => {
    expect(PARAMETER_NAME_SHOWN).toBeLessThan(API_KEY_LENGTH_MIN)
    expect(() => list('limit=<script>')).toThrow('`limit`')
    expect(() => list('limit=<script>')).not.toThrow('script')
  })
})

describe('an id in a path', () => {
  test.each(['payout_1', 'payout_aZ9', `payout_${'a'.repeat(64)}`])('%s is accepted', id => {
    expect(readId('payout', id)).toBe(id)
  })

  test.each([
    undefined,
    '',
    'payout_',
    'payout',
    'rep_1',
    'payout_a b',
    'payout_a/b',
    'payout_\u0000',
    '%zz',
    '..',
    'payout_1\n',
    `payout_${'a'.repeat(65)}`,
    'payout_é',
    'PAYOUT_1',
    'org_a:payout_1',
    '*',
  ])('%s is not found', id => {
    expect(refused(() => readId('payout', id))).toBe('not_found')
  })
})
