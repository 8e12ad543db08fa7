import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { openapi } from '../../schemas/reference/openapi.ts'
import { formats } from '../../schemas/values.ts'
import { type Answer, listed, recorded, serveApi, useStore } from '../support/api.ts'
import { payoutBodies } from '../support/bodies.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const amounts = ['1234.5000', '0.00000000000000001', '1234567890123456789012345678901234567890', '-0.10', '0.0']
const texts = [
  '',
  'a"b\\c',
  'line\nbreak\ttab',
  '\u0000\u001f\u007f',
  'Ünïcödé 😀 \u2028',
  '}]}},"body_bytes":1,"body":{}',
  '</script>',
]

const shared = (async () => {
  const store = await useStore(scope)
  const org = 'org_answers'
  const lines = amounts.flatMap((amount, a) =>
    texts.map((description, t) => ({ id: `line_${a}x${t}`, amount, description })),
  )
  const trace = amounts.map((output_amount, n) => ({ name: texts[n] ?? '', output_amount }))
  const payouts = {
    first: { id: 'payout_1', amount: '-0.10', lines, trace },
    second: { id: 'payout_2', amount: '1234.5000', supersedes: 'payout_1', lines },
  }
  store.payout(org, 1, payouts.first, { until: 2, by: 'payout_2' })
  store.payout(org, 2, payouts.second)
  store.rep(org, 'rep_1', [{ seq: 3, name: texts.join() }])
  store.period(org, 'period_1', [{ seq: 4, name: 'January' }])
  store.payroll(org, 5, 'payroll_1', '0.00000000000000001')
  await store.publish(org, 6)
  const [key, second] = [await store.key(org), await store.key(org)]
  return { store, org, key, second, payouts, ...(await serveApi(scope, store.prefix)) }
})()

const everyPath = [
  '/reps',
  '/reps/rep_1',
  '/periods',
  '/periods/period_1',
  '/payouts',
  '/payouts/payout_1',
  '/payouts/payout_2',
  '/statements/payout_1',
  '/statements/payout_2',
  '/payroll_files',
  '/payroll_files?ids=payroll_1',
  '/reps?ids=rep_1,rep_2',
  '/periods?ids=period_1',
  '/payouts?ids=payout_2,payout_1',
  '/payroll_files/payroll_1',
  '/payouts/payout_1/history',
  '/changes',
  '/totals',
  '/totals?rep_id=rep_unknown',
]

const ajv = new Ajv2020({ strict: false, formats })
ajv.addSchema({ $id: 'openapi', components: openapi.components })
type Described = { responses: Record<string, { content: Record<string, { schema: object }> }> }

/** Checks an answer against the OpenAPI document. Returns 'kept' or the errors. */
const keepsDocument = (path: string, answer: Answer): string => {
  const template = path.replace(/^(\/\w+\/)\w+/, '$1{id}').replace(/\?.*/, '')
  const described = openapi.paths[template]?.get as unknown as Described
  const content = described.responses[String(answer.status)]?.content['application/json']
  const schema = JSON.parse(JSON.stringify(content?.schema).replaceAll('"#/', '"openapi#/'))
  const validate = ajv.compile(schema)
  return validate(answer.json) ? 'kept' : JSON.stringify(validate.errors)
}

describe('an answer', () => {
  test.each(everyPath)('of %s matches the OpenAPI document, with its headers', async path => {
    const { ask, key } = await shared
    const answer = await ask(path, key)
    expect(answer.status).toBe(200)
    expect(keepsDocument(path, answer)).toBe('kept')
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'private, no-cache',
      vary: 'Authorization',
      etag: expect.stringMatching(/^"[\w-]{20,}"$/),
      'projection-time': expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'ratelimit-policy':
        '"default";q=1000000;w=60;qu="requests";commission-unit-bytes=1048576, "concurrent";q=100;qu="concurrent-requests"',
      ratelimit: expect.stringMatching(/^"default";r=\d+;t=\d+$/),
      'content-length': String(Buffer.byteLength(answer.text)),
    })
  })

  test('has money and text exactly as stored, byte for byte', async () => {
    const { ask, key, payouts } = await shared
    const bodyOf = (payout: typeof payouts.first | typeof payouts.second) => payoutBodies(payout).body.slice(0, -1)
    const first = `${bodyOf(payouts.first)},"superseded_by_id":"payout_2"`
    const second = `${bodyOf(payouts.second)},"superseded_by_id":null`
    expect((await ask('/payouts/payout_1', key)).text).toBe(`{"data":${first}}}`)
    expect((await ask('/payouts', key)).text).toBe(`{"data":[${second}}],"has_more":false,"next_cursor":"payout_2"}`)
    const trace = payoutBodies(payouts.first).statement.slice(1)
    expect((await ask('/statements/payout_1', key)).text).toBe(`{"data":${first},${trace}}`)
    expect((await ask('/payroll_files/payroll_1', key)).text).toContain('"amount":"0.00000000000000001"')
  })

  test('of a history or of changes has the stored bytes too, with the difference from the superseded payout', async () => {
    const { ask, key, payouts } = await shared
    const bodyOf = (payout: typeof payouts.first | typeof payouts.second) => payoutBodies(payout).body.slice(0, -1)
    const nothing = { line_items_added: [], line_items_removed: [], line_items_changed: [] }
    const difference = JSON.stringify({ net_amount: '1234.6', earned_amount: '1234.6', ...nothing })
    expect((await ask('/payouts/payout_2/history', key)).text).toBe(
      `{"data":[${bodyOf(payouts.first)},"superseded_by_id":"payout_2","difference":null},` +
        `${bodyOf(payouts.second)},"superseded_by_id":null,"difference":${difference}}],"has_more":false,"next_cursor":"payout_2"}`,
    )
    const change = (id: string, supersedes: string, time: number, record: string): string =>
      `{"id":"${id}","kind":"payouts","sequence":${time},"published_at":"1970-01-01T00:00:00.00${time}Z","supersedes_id":${supersedes},` +
      `"reverses_id":null,"record":${record},"superseded_by_id":null}}`
    expect((await ask('/changes?limit=2', key)).text).toBe(
      `{"data":[${change('payout_1', 'null', 1, bodyOf(payouts.first))},` +
        `${change('payout_2', '"payout_1"', 2, bodyOf(payouts.second))}],"has_more":true,"next_cursor":"payout_2"}`,
    )
    const behind = listed(await ask('/changes?starting_after=payout_2', key))
    expect(behind.data.map(({ id, kind }) => [id, kind])).toEqual([
      ['rep_1.1', 'reps'],
      ['period_1.1', 'periods'],
      ['payroll_1', 'payroll_files'],
    ])
    expect(behind.next_cursor).toBe('payroll_1')
    expect(listed(await ask('/changes?starting_after=payroll_1', key))).toEqual({
      data: [],
      has_more: false,
      next_cursor: 'payroll_1',
    })
  })

  test('of totals has exact sums that no double could hold', async () => {
    const { ask, key } = await shared
    expect(recorded(await ask('/totals', key))).toEqual({
      last_change_id: 'payroll_1',
      last_sequence: 5,
      totals: [
        {
          period_id: 'period_1',
          currency: 'EUR',
          owed_amount: '1234.5',
          owed_count: 1,
          paid_amount: '0.00000000000000001',
          paid_count: 1,
          open_amount: '1234.49999999999999999',
        },
      ],
    })
  })

  test('of a statement says before the trace whether a trace was recorded', async () => {
    const { ask, key } = await shared
    expect(recorded(await ask('/statements/payout_1', key))).toMatchObject({
      calculation_trace_recorded: true,
      calculation_trace: amounts.map((output_amount, n) => ({ step: n + 1, output_amount })),
    })
    expect(recorded(await ask('/statements/payout_2', key))).toMatchObject({
      calculation_trace_recorded: false,
      calculation_trace: [],
    })
  })

  test('contains no organization, offset, hash or document id', async () => {
    const { ask, key, org } = await shared
    for (const path of everyPath) {
      const { text } = await ask(path, key)
      for (const word of [org, 'org_', 'seq"', 'hash', 'body', 'gross_amount', '"at"']) {
        expect(text.replaceAll('\\"', ''), `${path} ${word}`).not.toContain(`"${word}`)
      }
    }
  })

  test('to HEAD is the answer to GET without its body', async () => {
    const { ask, key } = await shared
    for (const path of [...everyPath, '/payouts/payout_9', '/openapi.json', '/nowhere', '/payouts?limit=0']) {
      const [get, head] = [await ask(path, key), await ask(path, key, { method: 'HEAD' })]
      const comparable = ({ status, headers }: Answer) => {
        const own = ['date', 'x-request-id', 'ratelimit', 'connection', 'keep-alive']
        return { status, headers: [...headers].filter(([name]) => !own.includes(name)) }
      }
      expect(head.text).toBe('')
      expect(comparable(head), path).toEqual(comparable(get))
    }
  })
})

describe('an entity tag', () => {
  test('is equal for two keys of an organization, and different for each path', async () => {
    const { ask, key, second } = await shared
    const tags = new Set<string | null>()
    for (const path of everyPath) {
      const tag = (await ask(path, key)).headers.get('etag')
      expect((await ask(path, second)).headers.get('etag')).toBe(tag)
      tags.add(tag)
    }
    expect(tags.size).toBe(everyPath.length)
  })

  test.each(everyPath)('of %s gives a 304 without a body, with the right headers', async path => {
    const { ask, key, second } = await shared
    const { headers } = await ask(path, key)
    const tag = headers.get('etag') ?? ''
    for (const value of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      const again = await ask(path, second, { headers: { 'if-none-match': value } })
      expect([again.status, again.text], value).toEqual([304, ''])
      expect(again.headers.get('etag')).toBe(tag)
      for (const name of ['projection-time', 'cache-control', 'vary', 'ratelimit', 'x-request-id']) {
        expect(again.headers.has(name), name).toBe(true)
      }
      expect(again.headers.has('content-type')).toBe(false)
    }
    expect((await ask(path, key, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
  })

  test('gives no 304 for a request that is refused', async () => {
    const { ask, key } = await shared
    const any = { headers: { 'if-none-match': '*' } }
    expect((await ask('/payouts/payout_9', key, any)).status).toBe(404)
    expect((await ask('/payouts?starting_after=payout_9', key, any)).status).toBe(400)
    expect((await ask('/payouts', 'ck_unknown_unknown_unknown', any)).status).toBe(401)
  })

  test('changes when anything in the answer changes', async () => {
    const { store, ask } = await shared
    const org = 'org_tags'
    const key = await store.key(org)
    const tags = new Set<string | null>()
    const look = async (...paths: string[]) => {
      for (const path of paths) tags.add((await ask(path, key)).headers.get('etag'))
    }
    store.payout(org, 1, { id: 'payout_1' }, { until: 3, by: 'payout_3' })
    store.payout(org, 2, { id: 'payout_2', period: 'period_2' })
    store.payout(org, 3, { id: 'payout_3', supersedes: 'payout_1' })
    await store.publish(org, 2)
    await look('/payouts', '/payouts/payout_1', '/statements/payout_1')
    await store.publish(org, 3)
    await look('/payouts', '/payouts?limit=1', '/payouts?starting_after=payout_1')
    await store.publish(org, 4)
    await look('/payouts', '/payouts/payout_1', '/statements/payout_1')
    // The same single record on both pages, but now more records follow it.
    await look('/payouts?limit=1')
    expect(tags.size).toBe(10)
  })

  test('says nothing about other organizations: it does not change while their offsets grow', async () => {
    const { store, ask, key, org } = await shared
    const before = (await ask('/payouts', key)).headers.get('etag')
    await store.publish(org, 1_000)
    expect((await ask('/payouts', key)).headers.get('etag')).toBe(before)
  })
})

describe('the OpenAPI document', () => {
  test('is served without a key, and is valid JSON of version 3.1', async () => {
    const { ask } = await shared
    const answer = await ask('/openapi.json')
    expect(answer.status).toBe(200)
    expect(answer.json).toEqual(JSON.parse(JSON.stringify(openapi)))
    expect(answer.headers.has('ratelimit')).toBe(false)
    const tag = answer.headers.get('etag') ?? ''
    expect((await ask('/openapi.json', undefined, { headers: { 'if-none-match': tag } })).status).toBe(304)
  })
})

describe('a page of large payouts', () => {
  test('ends early and says that more follows, and a walk misses no record', async () => {
    const { store, ask } = await shared
    const org = 'org_large'
    const key = await store.key(org)
    const lines = Array.from({ length: 10_000 }, (_, n) => ({
      id: `line_${n}`,
      amount: '1.00',
      description: 'x'.repeat(120),
    }))
    for (let n = 0; n < 20; n++) {
      store.payout(org, n, { id: `payout_${n}`, period: `period_${n}`, ...(n === 3 ? {} : { lines }) })
      await store.flush()
    }
    await store.publish(org, 100)
    const ids: unknown[] = []
    let cursor = ''
    for (let more = true; more; ) {
      const page = listed(await ask(`/payouts?limit=200${cursor && `&starting_after=${cursor}`}`, key))
      expect(page.data.length).toBeGreaterThan(0)
      expect(JSON.stringify(page.data).length).toBeLessThanOrEqual(16 * 1024 * 1024 + 10_000)
      ids.push(...page.data.map(({ id }) => id))
      more = page.has_more
      cursor = page.next_cursor
    }
    expect(ids).toEqual(Array.from({ length: 20 }, (_, n) => `payout_${n}`))
  })
})
