/** Checkpoints: what the API signs about all changes of an organization. */
import { expect, test } from 'vitest'
import { checkNote, createSigningKey, parseNote, unavailable } from '../../core/runtime/index.ts'
import { RATE_UNIT_BYTES } from '../../schemas/limits.ts'
import { type Answer, recorded, refusedWith, serveApi, useStore, walk } from '../support/api.ts'
import { type AnsweredChange, digestsOf } from '../support/checkpoints.ts'

const org = 'org_checkpoint'
const checkpointKey = createSigningKey('api.example.com/checkpoints')
const MINUTE = 60_000

const noteIn = (answer: Answer): string => String(recorded(answer).note)
const linesOf = (answer: Answer): Record<string, string> =>
  Object.fromEntries(
    noteIn(answer)
      .split('\n')
      .map(line => [line.split(' ')[0] ?? '', line.slice(line.indexOf(' ') + 1)]),
  )
const unitsLeft = ({ headers }: Answer): number => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])

const digestOf = (changes: readonly AnsweredChange[]): string => digestsOf(changes).at(-1) ?? ''

test('a checkpoint has the digest of all changes and the totals as of the last one, signed by the key', async t => {
  const store = await useStore(t)
  store.rep(org, 'rep_1', [
    { seq: 0, name: 'Ana' },
    { seq: 3, name: 'Ana B', status: 'departed' },
  ])
  store.period(org, 'period_1', [{ seq: 1, name: 'January' }])
  const line = { id: 'line_1', amount: '12.50', deal: 'deal_1' }
  store.payout(org, 2, { id: 'payout_1', amount: '12.50', lines: [line] }, { until: 4, by: 'payout_2' })
  store.payout(org, 4, { id: 'payout_2', amount: '20.10', lines: [{ ...line, amount: '20.10' }] })
  store.payout(org, 5, { id: 'payout_3', amount: '-3', currency: 'USD', period: 'period_2' })
  store.payout(org, 6, { id: 'payout_4', amount: '0.005', period: 'period_3' })
  store.payroll(org, 7, 'payroll_1', '5.1')
  store.payroll(org, 8, 'payroll_2', '-5.1', 'payroll_1')
  store.payroll(org, 9, 'payroll_3', '1')
  // It is not published.
  store.payout(org, 10, { id: 'payout_5', amount: '1000', period: 'period_4' })
  await store.publish(org, 10)
  const key = await store.key(org)
  const { ask } = await serveApi(t, store.prefix, { checkpointKey })

  const answer = await ask('/checkpoint', key)
  expect(answer.status).toBe(200)
  const note = parseNote(Buffer.from(noteIn(answer)))
  expect(note && checkNote(note, [checkpointKey.verifier]).outcome).toBe('signed')
  const { records } = await walk(ask, '/changes', key, 4)
  expect(note?.text.toString('utf8').split('\n')).toEqual([
    'commission checkpoint 1',
    `organization ${org}`,
    expect.stringMatching(/^line rules-\d+$/),
    'sequence 10',
    'change payroll_3',
    `digest ${digestOf(records)}`,
    'total EUR owed 20.105 paid 1 open 19.105',
    'total USD owed -3 paid 0 open -3',
    expect.stringMatching(/^time 20\d\d-[0-9T:.-]+Z$/),
    '',
  ])
})

test('an organization without a new change gets one signature a minute, and a new change is signed at once', async t => {
  const store = await useStore(t)
  store.payout(org, 0, { id: 'payout_1', amount: '1' })
  await store.publish(org, 1)
  const key = await store.key(org)
  let now = Date.now()
  const searched: string[] = []
  const { ask } = await serveApi(t, store.prefix, {
    checkpointKey,
    now: () => now,
    between: client => ({
      ...client,
      search: (where, body, ...more) => {
        if (body.includes('"size":') && !body.includes('"size":1,') && !body.includes('"size":0,')) searched.push(body)
        return client.search(where, body, ...more)
      },
    }),
  })
  const first = await ask('/checkpoint', key)
  await store.publish(org, 2)
  now += MINUTE - 1
  const tag = { 'if-none-match': first.headers.get('etag') ?? '' }
  expect([noteIn(await ask('/checkpoint', key)), (await ask('/checkpoint', key, { headers: tag })).status]).toEqual([
    noteIn(first),
    304,
  ])
  expect(searched).toHaveLength(1)
  now += 1
  const later = await ask('/checkpoint', key)
  expect(linesOf(later)).toMatchObject({ sequence: '1', time: new Date(now).toISOString() })
  store.payout(org, 2, { id: 'payout_2', amount: '2', period: 'period_2' })
  await store.publish(org, 3)
  const second = linesOf(await ask('/checkpoint', key))
  expect([second.sequence, second.change]).toEqual(['2', 'payout_2'])
  expect(second.digest).toBe(digestOf((await walk(ask, '/changes', key)).records))
  // The change of the first one is not read again.
  expect(searched[1]).toContain('"gt":0')
})

test('a walk that ends early goes on at the next request, costs what it read, and a known checkpoint one unit', async t => {
  const store = await useStore(t)
  const texts = Array.from({ length: 2_000 }, (_, at) => ({
    id: `line_${at}`,
    amount: '1',
    description: 'x'.repeat(900),
  }))
  const ids = [0, 1, 2, 3, 4, 5]
  for (const seq of ids) store.payout(org, seq, { id: `payout_${seq}`, period: `period_${seq}`, lines: texts })
  await store.publish(org, ids.length)
  const key = await store.key(org)
  const starts: string[] = []
  let breaks = true
  const { ask } = await serveApi(t, store.prefix, {
    checkpointKey,
    between: client => ({
      ...client,
      search: (where, body, ...more) => {
        const [, after] = /"seq":\{"gt":(-?\d+),"lt"/.exec(body) ?? []
        if (after !== undefined && body.includes('"track_total_hits":false,"timeout"')) {
          if (breaks && Number(after) >= 3) {
            breaks = false
            throw unavailable('elasticsearch_connection')
          }
          if (!body.includes('"aggs"')) starts.push(after)
        }
        return client.search(where, body, ...more)
      },
    }),
  })
  let left = unitsLeft(await ask('/reps', key))
  const spent = async () => {
    const answer = await ask('/checkpoint', key)
    const units = left - unitsLeft(answer)
    left -= units
    return { answer, units }
  }
  const broken = await spent()
  expect(broken.answer.status).toBe(503)
  const ended = starts.length
  expect(ended).toBeGreaterThan(0)
  const whole = await spent()
  expect([whole.answer.status, linesOf(whole.answer).sequence]).toEqual([200, '6'])
  expect(Number(starts[ended])).toBeGreaterThan(0)
  const { records } = await walk(ask, '/changes', key)
  expect(linesOf(whole.answer).digest).toBe(digestOf(records))
  left = unitsLeft(await ask('/reps', key))
  const bytes = records.reduce((sum, { record }) => sum + JSON.stringify(record).length, 0)
  expect(broken.units + whole.units).toBeGreaterThanOrEqual(Math.ceil(bytes / RATE_UNIT_BYTES) - 1)
  expect(Math.min(broken.units, whole.units)).toBeGreaterThan(1)
  expect((await spent()).units).toBe(1)
})

test('an organization without changes has a checkpoint, too', async t => {
  const store = await useStore(t)
  const key = await store.key(org)
  const { ask } = await serveApi(t, store.prefix, { checkpointKey })
  const { sequence, change, digest } = linesOf(await ask('/checkpoint', key))
  expect([sequence, change, digest]).toEqual(['0', 'none', digestOf([])])
})

test('a checkpoint needs changes:read and totals:read, has no parameters, and is refused clearly without a key', async t => {
  const store = await useStore(t)
  const { ask } = await serveApi(t, store.prefix, { checkpointKey })
  const statusWith = async (permissions: string[]) => {
    const answer = await ask('/checkpoint', await store.key(org, { permissions }))
    return answer.status === 200 ? 200 : refusedWith(answer).message
  }
  expect(await statusWith(['changes:read', 'totals:read'])).toBe(200)
  expect(await statusWith(['changes:read'])).toBe('This API key lacks the permission totals:read.')
  expect(await statusWith(['totals:read'])).toBe('This API key lacks the permission changes:read.')
  const key = await store.key(org)
  expect((await ask('/checkpoint?as_of=payout_1', key)).status).toBe(400)
  const without = await serveApi(t, store.prefix)
  const refused = await without.ask('/checkpoint', key)
  expect([refused.status, refusedWith(refused).message]).toEqual([
    400,
    expect.stringContaining('API_CHECKPOINT_KEY_FILE'),
  ])
})

test('HEAD has the headers of a checkpoint, `*` after a walk costs what it read, and other methods are refused', async t => {
  const store = await useStore(t)
  const texts = Array.from({ length: 1_500 }, (_, at) => ({
    id: `line_${at}`,
    amount: '1',
    description: 'x'.repeat(900),
  }))
  for (const seq of [0, 1, 2]) store.payout(org, seq, { id: `payout_${seq}`, period: `period_${seq}`, lines: texts })
  await store.publish(org, 3)
  const key = await store.key(org)
  const { ask } = await serveApi(t, store.prefix, { checkpointKey })
  const before = unitsLeft(await ask('/reps', key))
  const any = await ask('/checkpoint', key, { headers: { 'if-none-match': '*' } })
  expect([any.status, any.text]).toEqual([304, ''])
  expect(before - unitsLeft(any)).toBeGreaterThan(2)
  // The checkpoint is known by now: one unit, as each `*` costs.
  const again = await ask('/checkpoint', key, { headers: { 'if-none-match': '*' } })
  expect([again.status, unitsLeft(any) - unitsLeft(again)]).toEqual([304, 1])

  const whole = await ask('/checkpoint', key)
  const head = await ask('/checkpoint', key, { method: 'HEAD' })
  const shown = ({ status, headers }: Answer) => [
    status,
    ...['etag', 'content-length', 'content-type', 'projection-time'].map(name => headers.get(name)),
  ]
  expect([shown(head), head.text]).toEqual([shown(whole), ''])
  for (const method of ['POST', 'PUT', 'DELETE']) {
    const refused = await ask('/checkpoint', key, { method })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  }
  for (const path of ['/checkpoint/payout_1', '/checkpoints']) expect((await ask(path, key)).status).toBe(404)
})

test('a key reads the checkpoint of its own organization, and an unknown one is refused', async t => {
  const store = await useStore(t)
  store.payout(org, 0, { id: 'payout_1', amount: '1' })
  await store.publish(org, 1)
  const { ask } = await serveApi(t, store.prefix, { checkpointKey })
  const own = linesOf(await ask('/checkpoint', await store.key(org)))
  const foreign = linesOf(await ask('/checkpoint', await store.key('org_foreign')))
  expect([own.organization, own.sequence]).toEqual([org, '1'])
  expect([foreign.organization, foreign.sequence, foreign.change, foreign.total]).toEqual([
    'org_foreign',
    '0',
    'none',
    undefined,
  ])
  for (const key of [undefined, 'unknown_key_text']) expect((await ask('/checkpoint', key)).status).toBe(401)
})

test('after a swap a checkpoint of the other generation is signed at once, under the same rules with the same digest', async t => {
  const store = await useStore(t)
  store.payout(org, 0, { id: 'payout_1', amount: '1' })
  store.payout(org, 1, { id: 'payout_2', amount: '2', period: 'period_2' })
  await store.publish(org, 2)
  const key = await store.key(org)
  const { ask } = await serveApi(t, store.prefix, { checkpointKey })
  const first = await ask('/checkpoint', key)
  const swapped = async (generation: string, rules: number) => {
    const other = await useStore(t, { prefix: store.prefix, generation, rules })
    // The other rules have parked the first payout.
    other.payout(org, 1, { id: 'payout_2', amount: '2', period: 'period_2' })
    await other.publish(org, 2)
    await other.makeLive()
    return ask('/checkpoint', key)
  }
  const second = await swapped('g2', 2)
  expect([first, second].map(linesOf)).toMatchObject([
    { line: 'rules-1', sequence: '2' },
    {
      line: 'rules-2',
      sequence: '1',
      change: 'payout_2',
      digest: digestOf((await walk(ask, '/changes', key)).records),
    },
  ])
  const untimed = ({ time: _, '\u2014': __, ...lines }: Record<string, string>) => lines
  expect(untimed(linesOf(await swapped('g3', 2)))).toEqual(untimed(linesOf(second)))
})

test('a swap between the changes and the totals is refused: a checkpoint has both of one generation', async t => {
  const store = await useStore(t)
  store.payout(org, 0, { id: 'payout_1', amount: '1' })
  await store.publish(org, 1)
  const other = await useStore(t, { prefix: store.prefix, generation: 'g2' })
  other.payout(org, 0, { id: 'payout_1', amount: '100' })
  await other.publish(org, 1)
  const key = await store.key(org)
  let isSwapped = false
  const { ask, logged } = await serveApi(t, store.prefix, {
    checkpointKey,
    between: client => ({
      ...client,
      search: async (where, body, ...more) => {
        const answer = await client.search(where, body, ...more)
        if (!isSwapped && body.includes('"track_total_hits":false,"timeout"')) {
          isSwapped = true
          await other.makeLive()
        }
        return answer
      },
    }),
  })
  expect((await ask('/checkpoint', key)).status).toBe(503)
  expect([isSwapped, logged.join('')]).toEqual([true, expect.stringContaining('live_generation_changes')])
  expect(linesOf(await ask('/checkpoint', key)).total).toBe('EUR owed 100 paid 0 open 100')
})
