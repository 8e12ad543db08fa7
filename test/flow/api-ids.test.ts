/** Records of a list by their ids. */
import { describe, expect, test } from 'vitest'
import { IDS_MAX } from '../../schemas/limits.ts'
import { listed, recorded, refusedWith, serveApi, useStore } from '../support/api.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const IDS = {
  reps: ['rep_3', 'rep_0', 'rep_unknown', 'rep_foreign', 'rep_1'],
  periods: ['period_2', 'period_unknown', 'period_1', 'period_foreign'],
  payouts: ['payout_7', 'payout_r3', 'payout_3', 'payout_foreign', 'payout_unknown', 'payout_0', 'payout_later'],
  payroll_files: ['payroll_foreign', 'payroll_2', 'payroll_1', 'payroll_unknown'],
} as const
type List = keyof typeof IDS
const lists = Object.keys(IDS) as List[]

const shared = (async () => {
  const store = await useStore(scope)
  const [org, other] = [store.newOrg(), store.newOrg()]
  for (let n = 0; n < 8; n++) {
    const replaced = n === 3 ? { until: 20, by: 'payout_r3' } : undefined
    store.payout(org, n, { id: `payout_${n}`, period: `period_${n}`, amount: `${n}.50` }, replaced)
    store.payroll(org, 30 + n, `payroll_${n}`, '1.00')
    const versions = [{ seq: 10 + n, name: `Rep ${n}` }, ...(n === 1 ? [{ seq: 25, name: 'Renamed' }] : [])]
    store.rep(org, `rep_${n}`, versions)
    store.period(org, `period_${n}`, [{ seq: 40 + n, name: `Month ${n}` }])
  }
  store.payout(org, 20, { id: 'payout_r3', period: 'period_3', supersedes: 'payout_3' })
  store.payout(org, 60, { id: 'payout_later', period: 'period_9' })
  await store.publish(org, 50)
  store.payout(other, 1, { id: 'payout_foreign' })
  store.rep(other, 'rep_foreign', [{ seq: 2, name: 'Foreign' }])
  store.period(other, 'period_foreign', [{ seq: 3, name: 'Foreign' }])
  store.payroll(other, 4, 'payroll_foreign', '1.00')
  await store.publish(other, 10)
  const key = await store.key(org)
  return { store, org, key, ...(await serveApi(scope, store.prefix)) }
})()

describe('records by their ids', () => {
  test.for(lists)(
    'of %s come in the order asked, each as a read by its id has it, now and as of a change',
    async list => {
      const { ask, key } = await shared
      for (const moment of ['', 'as_of=payout_r3', 'as_of=rep_1.1', 'as_of=payroll_2']) {
        const wanted: unknown[] = []
        for (const id of IDS[list]) {
          const one = await ask(`/${list}/${id}?${moment}`, key)
          if (one.status === 200) wanted.push(recorded(one))
        }
        const found = await ask(`/${list}?ids=${IDS[list].join()}&${moment}`, key)
        expect([moment, found.json]).toEqual([moment, { data: wanted, has_more: false, next_cursor: '' }])
      }
    },
  )

  test('have replaced payouts, with what replaced them', async () => {
    const { ask, key } = await shared
    const { data } = listed(await ask(`/payouts?ids=${IDS.payouts.join()}`, key))
    expect(data.map(({ id, superseded_by_id }) => [id, superseded_by_id])).toEqual([
      ['payout_7', null],
      ['payout_r3', null],
      ['payout_3', 'payout_r3'],
      ['payout_0', null],
    ])
    const then = listed(await ask('/payouts?as_of=payout_4&ids=payout_r3,payout_3,payout_4', key))
    expect(then.data.map(({ id, superseded_by_id }) => [id, superseded_by_id])).toEqual([
      ['payout_3', null],
      ['payout_4', null],
    ])
  })

  test('leave out an unknown one and one of another organization alike', async () => {
    const { ask, key } = await shared
    for (const list of lists) {
      const [foreign, unknown] = ['foreign', 'unknown'].map(which => {
        const kept = IDS[list].filter(id => !id.endsWith('_foreign') && !id.endsWith('_unknown'))
        return ask(`/${list}?ids=${[...kept, IDS[list].find(id => id.endsWith(which))].join()}`, key)
      })
      const [one, other] = [await foreign, await unknown]
      expect(one?.status).toBe(200)
      expect([one?.text, one?.headers.get('etag')]).toEqual([other?.text, other?.headers.get('etag')])
      const alone = await ask(`/${list}?ids=${IDS[list].find(id => id.endsWith('_foreign'))}`, key)
      expect(alone.text).toBe('{"data":[],"has_more":false,"next_cursor":""}')
    }
  })

  test('have a tag of their own, and are asked for again, also as of a change', async () => {
    const { ask, key } = await shared
    const path = '/payouts?ids=payout_3,payout_7'
    const { headers } = await ask(path, key)
    expect((await ask(path, key, { headers: { 'if-none-match': headers.get('etag') ?? '' } })).status).toBe(304)
    const others = ['/payouts?ids=payout_7,payout_3', `${path}&as_of=payout_7`, '/payouts?ids=payout_3', '/payouts']
    for (const other of others) expect((await ask(other, key)).headers.get('etag')).not.toBe(headers.get('etag'))
    expect((await ask(`${path}&as_of=payout_7`, key)).headers.get('cache-control')).toBe('private, no-cache')
  })

  test(`may be ${IDS_MAX} of the longest ids`, async () => {
    const { ask, key } = await shared
    const ids = Array.from({ length: IDS_MAX - 1 }, (_, n) => `payroll_${String(n).padStart(64, '0')}`)
    const query = new URLSearchParams({ ids: [...ids, 'payroll_2'].join(), as_of: 'payroll_7' })
    const { data } = listed(await ask(`/payroll_files?${query}`, key))
    expect(data.map(({ id }) => id)).toEqual(['payroll_2'])
  })

  test('cost two reads of Elasticsearch, as a page does', async () => {
    const { store, org, key } = await shared
    let reads = 0
    const { ask } = await serveApi(scope, store.prefix, {
      between: ({ search, multiGet, indexIds }) => ({
        search: (...asked) => {
          reads++
          return search(...asked)
        },
        multiGet: (names, ...more) => {
          // Not those of keys and generations, which come from time to time.
          if (names.some(({ _id }) => _id.startsWith('position:') || _id.startsWith(`${org}:`))) reads++
          return multiGet(names, ...more)
        },
        indexIds,
      }),
    })
    const readsOf = async (path: string): Promise<number> => {
      const before = reads
      expect((await ask(path, key)).status).toBe(200)
      return reads - before
    }
    for (const list of lists) {
      const [page, byIds] = [`/${list}`, `/${list}?ids=${IDS[list].join()}`]
      // The first requests read what is remembered of the organization.
      for (const path of [page, byIds]) await readsOf(path)
      expect([list, await readsOf(page), await readsOf(byIds)]).toEqual([list, 2, 2])
    }
  })

  const many = (count: number) => Array.from({ length: count }, (_, n) => `payout_${n}`).join()
  test.for([
    ['ids=', '`ids` must have 1 to 100 ids, separated by commas; it has 0.'],
    [`ids=${many(101)}`, '`ids` must have 1 to 100 ids, separated by commas; it has 101.'],
    ['ids=payout_1,payout_2,payout_1', '`ids` must have each id once: number 3 of 3 is the same as number 1.'],
    ['ids=payout_1,', /^`ids` must have ids of this list.* Number 2 of 2 is none\.$/],
    [
      'ids=payout_1,rep_1',
      /^`ids` must have ids of this list.*`payout_` and 1 to 64 of 0-9A-Za-z\. Number 2 of 2 is none\.$/,
    ],
    ['ids=%zz', '`ids` must have 1 to 100 ids, separated by commas; it has 0.'],
    ['ids=payout_1&ids=payout_2', 'The parameter `ids` is given more than once.'],
    ...['limit=2', 'starting_after=payout_1', 'rep_id=rep_1', 'period_id=period_1'].map((other): [string, string] => [
      `ids=payout_1&${other}`,
      `\`ids\` and \`${other.split('=')[0]}\` cannot be combined: beside \`ids\` there is only \`as_of\`.`,
    ]),
    ['ids=payout_1&wait=1', 'Unknown query parameter `wait`.'],
  ] as const)('are refused for %s', async ([query, message]) => {
    const { ask, key } = await shared
    const answer = await ask(`/payouts?${query}`, key)
    expect(answer.status).toBe(400)
    expect(refusedWith(answer)).toMatchObject({ code: 'invalid_request', message: expect.stringMatching(message) })
  })

  test.for(['/changes', '/payouts/payout_1/history', '/payouts/payout_1', '/totals'])(
    'are of a list: %s has no such parameter',
    async path => {
      const { ask, key } = await shared
      expect(refusedWith(await ask(`${path}?ids=payout_1`, key))).toMatchObject({
        code: 'invalid_request',
        message: 'Unknown query parameter `ids`.',
      })
    },
  )
})

test('large records come in several answers: links lead to all of them, in the order asked', async () => {
  const { store, ask } = await shared
  const org = store.newOrg()
  const ids = Array.from({ length: 10 }, (_, n) => `payout_${n}`)
  const lines = Array.from({ length: 10_000 }, (_, n) => ({
    id: `line_${n}`,
    amount: '0',
    description: 'x'.repeat(420),
  }))
  for (const [seq, id] of ids.entries()) {
    store.payout(org, seq, { id, period: `period_${seq}`, lines })
    await store.flush()
  }
  await store.publish(org, ids.length)
  const key = await store.key(org)
  const asked = ids.toReversed().flatMap((id, n) => [id, `payout_unknown${n}`])
  const found: string[][] = []
  for (let path: string | undefined = `/payouts?ids=${asked.join()}`; path !== undefined; ) {
    const answer: Awaited<ReturnType<typeof ask>> = await ask(path, key)
    expect(answer.status).toBe(200)
    expect(answer.text.length).toBeLessThan(17 * 1024 * 1024)
    const { data, next_cursor } = listed(answer)
    expect(next_cursor).toBe('')
    found.push(data.map(({ id }) => String(id)))
    const [, url] = /^<(.*)>; rel="next"$/.exec(answer.headers.get('link') ?? '') ?? []
    path = url && `/${url.split('/api/v1/')[1]}`
  }
  expect(found.map(({ length }) => length)).toEqual([3, 3, 3, 1])
  expect(found.flat()).toEqual(ids.toReversed())
})
