import { describe, expect, test } from 'vitest'
import { type Answer, type Ask, listed, refusedWith, serveApi, useStore, walk } from '../support/api.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const ORG = 'org_lists'
const OTHER = 'org_other'
/** Its feed: the events of the other ones share offsets, which a log never has. */
const FEED = 'org_feed'
const CHANGES = 150
const padded = (n: number): string => String(n).padStart(4, '0')

/** 1,003 payouts, every tenth superseded by a later one, and also reps, periods and payroll records. */
const setUp = async () => {
  const store = await useStore(scope)
  const replaced = (n: number): boolean => n % 10 === 0
  for (let n = 0; n < 1_003; n++) {
    const payout = { id: `payout_${padded(n)}`, period: `period_${n}` }
    store.payout(ORG, n, payout, replaced(n) ? { until: 2_000 + n, by: `payout_r${padded(n)}` } : undefined)
    if (replaced(n)) {
      store.payout(ORG, 2_000 + n, { id: `payout_r${padded(n)}`, period: `period_${n}`, supersedes: payout.id })
    }
    store.payroll(ORG, n, `payroll_${padded(n)}`, '1.00')
  }
  for (let n = 0; n < 60; n++) {
    store.rep(ORG, `rep_${padded(n)}`, [
      { seq: n, name: `Rep ${n}` },
      { seq: 3_000 - n, name: `Renamed ${n}`, status: n % 2 ? 'departed' : 'active' },
    ])
    store.period(ORG, `period_${padded(n)}`, [{ seq: n, name: `Month ${n}` }])
  }
  store.payout(OTHER, 7, { id: 'payout_foreign' })
  for (let n = 0; n < CHANGES; n++) store.payout(FEED, n, { id: `payout_f${n}`, period: `period_${n}` })
  await store.publish(ORG, 5_000)
  await store.publish(FEED, 5_000)
  await store.publish(OTHER, 5_000)
  const key = await store.key(ORG)
  const feed = await store.key(FEED)
  const empty = await store.key('org_empty')
  const { ask } = await serveApi(scope, store.prefix)
  return { store, key, feed, empty, ask }
}
const shared = setUp()
const current = (): string[] => {
  const firsts = Array.from({ length: 1_003 }, (_, n) => n)
  return [
    ...firsts.filter(n => n % 10 !== 0).map(n => `payout_${padded(n)}`),
    ...firsts.filter(n => n % 10 === 0).map(n => `payout_r${padded(n)}`),
  ]
}

/** Follows the links to the next page until there is none. */
const walkByLinks = async (ask: Ask, list: string, key: string): Promise<Record<string, unknown>[]> => {
  const records: Record<string, unknown>[] = []
  for (let path: string | undefined = list; path !== undefined; ) {
    const answer: Answer = await ask(path, key)
    records.push(...listed(answer).data)
    const [, url] = /^<(.*)>; rel="next"$/.exec(answer.headers.get('link') ?? '') ?? []
    path = url && `/${url.split('/api/v1/')[1]}`
  }
  return records
}

describe('a walk', () => {
  test.each([
    [1, 1, 40],
    [7, 7, 60],
    [50, 50, undefined],
    [200, 200, undefined],
    [201, 200, undefined],
    [100_000, 200, undefined],
  ])('with limit %i gives %i records per page, each current payout once, in order', async (limit, size, pages) => {
    const { ask, key } = await shared
    const ids: unknown[] = []
    let cursor = ''
    for (let page = 0; pages === undefined || page < pages; page++) {
      const answer = listed(await ask(`/payouts?limit=${limit}${cursor && `&starting_after=${cursor}`}`, key))
      ids.push(...answer.data.map(({ id }) => id))
      expect(answer.next_cursor).toBe(answer.data.at(-1)?.id)
      if (!answer.has_more) break
      expect(answer.data.length).toBe(size)
      cursor = answer.next_cursor
    }
    expect(ids).toEqual(current().slice(0, ids.length))
    expect(ids.length).toBe(pages === undefined ? current().length : pages * size)
  })

  test('by links ends at the last page, and gives the same records as by cursors', async () => {
    const { ask, key } = await shared
    for (const list of ['/payouts?limit=200', '/periods?limit=7', '/payroll_files?limit=50']) {
      const byLinks = await walkByLinks(ask, list, key)
      const [name = '', limit] = list.split('?limit=')
      expect(byLinks).toEqual((await walk(ask, name, key, Number(limit))).records)
    }
  })

  test('by links after a sequence gives each change once', async () => {
    const { ask, feed } = await shared
    const sequences = (await walkByLinks(ask, '/changes?limit=60&after=5', feed)).map(({ sequence }) => sequence)
    expect(sequences).toEqual(Array.from({ length: CHANGES - 5 }, (_, at) => at + 6))
  })

  test('without a limit gives 50 records per page', async () => {
    const { ask, key } = await shared
    expect(listed(await ask('/payouts', key)).data.length).toBe(50)
  })

  test('says that more follows only if it does', async () => {
    const { ask, key } = await shared
    const { next_cursor } = listed(await ask('/periods?limit=59', key))
    const last = listed(await ask(`/periods?limit=1&starting_after=${next_cursor}`, key))
    expect([last.data.length, last.has_more]).toEqual([1, false])
  })

  test('ends with a cursor that later returns only new records', async () => {
    const { store, ask, key } = await shared
    const { cursor } = await walk(ask, '/payroll_files', key, 200)
    const nothing = listed(await ask(`/payroll_files?starting_after=${cursor}`, key))
    expect(nothing).toEqual({ data: [], has_more: false, next_cursor: cursor })
    store.payroll(ORG, 5_000, 'payroll_new', '-1.00', 'payroll_0000')
    await store.publish(ORG, 5_001)
    const more = listed(await ask(`/payroll_files?starting_after=${cursor}`, key))
    expect(more.data.map(({ id }) => id)).toEqual(['payroll_new'])
  })

  test('in an organization without records is one empty page', async () => {
    const { ask, empty } = await shared
    for (const path of ['/reps', '/periods', '/payouts', '/payroll_files']) {
      expect(listed(await ask(path, empty))).toEqual({ data: [], has_more: false, next_cursor: '' })
    }
  })
})

describe('the order', () => {
  test('of reps and periods is that of their first versions', async () => {
    const { ask, key } = await shared
    const { records } = await walk(ask, '/reps', key, 7)
    expect(records.map(({ id }) => id)).toEqual(Array.from({ length: 60 }, (_, n) => `rep_${padded(n)}`))
    expect(records.map(({ name }) => name)).toEqual(Array.from({ length: 60 }, (_, n) => `Renamed ${n}`))
    expect(records.filter(({ status }) => status === 'departed').length).toBe(30)
  })

  test('puts a payout after the one that it supersedes', async () => {
    const { ask, key } = await shared
    const { records } = await walk(ask, '/payouts', key, 200)
    const ids = records.map(({ id }) => id)
    expect(ids).toEqual(current())
    expect(ids).not.toContain('payout_0010')
  })
})

describe('a cursor', () => {
  test('may be a superseded payout', async () => {
    const { ask, key } = await shared
    const page = listed(await ask('/payouts?limit=2&starting_after=payout_0010', key))
    expect(page.data.map(({ id }) => id)).toEqual(['payout_0011', 'payout_0012'])
  })

  test.each([
    ['of another organization', '/payouts?starting_after=payout_foreign'],
    ['unknown', '/payouts?starting_after=payout_nobody'],
    ['of another list', '/payouts?starting_after=payroll_0001'],
    ['of a known rep on the periods', '/periods?starting_after=rep_0001'],
    ['empty', '/payouts?starting_after='],
    ['malformed', '/payouts?starting_after=payout_0010%20'],
    ['not decodable', '/payouts?starting_after=%zz'],
    ['a document id of our own', '/payouts?starting_after=org_lists:payout_0010'],
  ])('that is %s is refused with the same message', async (_, path) => {
    const { ask, key } = await shared
    const answer = await ask(path, key)
    expect(answer.status).toBe(400)
    expect(refusedWith(answer)).toEqual({
      code: 'invalid_cursor',
      message: '`starting_after` does not name a record of this list that this key can read.',
    })
  })

  test('of any organization is refused in an organization without records', async () => {
    const { ask, empty } = await shared
    expect((await ask('/payouts?starting_after=payout_0010', empty)).text).toBe(
      (await ask('/payouts?starting_after=payout_nobody', empty)).text,
    )
  })
})
