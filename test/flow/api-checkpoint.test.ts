/** Checkpoints: what the API signs about all changes of an organization. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { checkNote, createSigningKey, parseNote, unavailable } from '../../core/runtime/index.ts'
import { RATE_UNIT_BYTES } from '../../schemas/limits.ts'
import { type Answer, recorded, refusedWith, serveApi, useStore, walk } from '../support/api.ts'

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

type Fields = Record<string, unknown>
const sha256 = (...parts: (Buffer | string)[]): Buffer =>
  parts.reduce((sum, part) => sum.update(part), createHash('sha256')).digest()
/** The digest of changes, as docs/evidence.md describes it. */
const digestOf = (changes: readonly Fields[]): string => {
  let digest = sha256('commission checkpoint 1\n')
  for (const { kind, id, sequence, published_at, record } of changes) {
    const of = record as Fields & { destination: Fields; line_items: Fields[] }
    const pay = [of.id, of.rep_id, of.period_id]
    const fields: Record<string, () => unknown[]> = {
      reps: () => [of.id, of.status, of.started_on, of.departed_on],
      periods: () => [of.id, of.kind, of.timezone, of.starts_at, of.ends_at],
      payouts: () => [
        ...[...pay, of.net_amount, of.earned_amount, of.currency, of.supersedes_id, of.calculated_at, of.recorded_at],
        of.line_items.map(line => [line.id, line.category, line.amount, line.deal_id]),
      ],
      payroll_files: () => [
        ...pay,
        of.payout_id,
        of.reverses_id,
        of.amount,
        of.currency,
        of.destination.type,
        of.recorded_at,
      ],
    }
    const text = JSON.stringify([kind, id, sequence, published_at, ...(fields[String(kind)]?.() ?? [])])
    digest = sha256(digest, sha256(text))
  }
  return digest.toString('hex')
}

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

test('an organization gets one signature a minute, and the next checkpoint continues with the new changes', async t => {
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
  store.payout(org, 1, { id: 'payout_2', amount: '2', period: 'period_2' })
  await store.publish(org, 2)
  now += MINUTE - 1
  const tag = { 'if-none-match': first.headers.get('etag') ?? '' }
  expect([noteIn(await ask('/checkpoint', key)), (await ask('/checkpoint', key, { headers: tag })).status]).toEqual([
    noteIn(first),
    304,
  ])
  expect(searched).toHaveLength(1)
  now += 1
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
