/** The promise about organizations: two with the same record ids, one without records, and their keys. */
import { beforeAll, expect, test } from 'vitest'
import { type Answer, type Client, createClient, lists } from '../../support/client.ts'
import {
  keyCreated,
  keyRevoked,
  newId,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
} from '../../support/events.ts'
import { type Api, type Projector, startApi, untilCaughtUp } from '../../support/processes.ts'
import { startProjection } from '../../support/projection.ts'
import { eventually, fileScope } from '../../support/scope.ts'
import type { Topics } from '../../support/topics.ts'

const file = fileScope()
const [ours, theirs, empty] = [newId('org'), newId('org'), newId('org')]
const keys = { ours: newKeyText(), theirs: newKeyText(), empty: newKeyText(), mayNotRead: newKeyText() }
let topics: Topics
let projector: Projector
let api: Api
let client: Record<keyof typeof keys, Client>

/** The same ids in both organizations, and more records in the other one. */
const recordsOf = (org: string, mark: string, more: number): Outgoing[] => [
  repRecorded({ org_id: org, name: mark }),
  ...Array.from({ length: more }, (_, place) => periodRecorded({ org_id: org, id: `period_${place + 1}`, name: mark })),
  ...Array.from({ length: more }, (_, place) =>
    payoutCalculated({
      org_id: org,
      id: `payout_${place + 1}`,
      period_id: `period_${place + 1}`,
      net_amount: amountOf(more),
    }),
  ),
  payoutCalculated({ org_id: org, id: 'payout_new', supersedes_id: 'payout_1', net_amount: amountOf(more) }),
  payrollRecorded({ org_id: org, amount: amountOf(more), destination: { type: 'other', label: mark } }),
  payrollVoided({ org_id: org, amount: `-${amountOf(more)}` }),
]

/** The digit four times, so that our amounts and theirs differ in any text. */
const amountOf = (digit: number): string => `${digit}`.repeat(4)

beforeAll(async () => {
  const records = [
    keyCreated({ org_id: ours, text: keys.ours }),
    // Ids of keys are also separate for each organization.
    keyCreated({ org_id: theirs, text: keys.theirs }),
    keyCreated({ org_id: empty, text: keys.empty }),
    keyCreated({ org_id: ours, id: 'key_2', text: keys.mayNotRead, permissions: [] }),
    ...recordsOf(ours, 'ours', 2),
    ...recordsOf(theirs, 'theirs', 4),
    // A record with the key of another organization is parked, in both directions.
    { ...repRecorded({ org_id: theirs, name: 'forged' }), key: ours },
    { ...repRecorded({ org_id: ours, name: 'forged' }), key: theirs },
    { ...keyRevoked({ org_id: theirs }), key: ours },
  ]
  const projection = await startProjection(file, records)
  ;({ topics, projector } = projection)
  api = await startApi(file, projection.prefix)
  const clientOf = (key: string): Client => createClient([api], key)
  client = {
    ours: clientOf(keys.ours),
    theirs: clientOf(keys.theirs),
    empty: clientOf(keys.empty),
    mayNotRead: clientOf(keys.mayNotRead),
  }
})

const everyPath = [
  ...lists.map(list => `/${list}`),
  '/reps/rep_1',
  ...[1, 2, 3, 4].flatMap(place => [
    `/periods/period_${place}`,
    `/payouts/payout_${place}`,
    `/statements/payout_${place}`,
    `/payroll_files/payroll_${place}`,
  ]),
  '/payouts/payout_new',
  '/statements/payout_new',
  ...lists.map(list => `/${list}?starting_after=payout_4`),
]

const parts = [
  'reps:read',
  'periods:read',
  'payouts:read',
  'statements:read',
  'payroll:read',
  'totals:read',
  'changes:read',
] as const

const neededFor = (path: string): (typeof parts)[number] => {
  const found = parts.find(part => path.replace('payroll_files', 'payroll').startsWith(`/${part.split(':')[0]}`))
  if (found === undefined) throw new Error(`no permission for ${path}`)
  return found
}

const refusedFor = (permissions: readonly string[], needed: string): string => {
  const message = permissions.length === 0 ? 'has no permission' : `lacks the permission ${needed}`
  return JSON.stringify({ error: { code: 'forbidden', message: `This API key ${message}.` } })
}

test("9. A key sees its own organization's records only; nothing it sends can tell an unknown id from someone else's.", async () => {
  for (const path of everyPath) {
    const [own, other] = [await client.ours.askInTime(path), await client.theirs.askInTime(path)]
    expect(own.text).not.toMatch(/theirs|forged|4444/)
    expect(other.text).not.toMatch(/ours|forged|2222/)
    for (const org of [ours, theirs]) expect(own.text + other.text).not.toContain(org)
  }
  expect((await client.ours.all('payouts')).map(({ id }) => id)).toEqual(['payout_2', 'payout_new'])
  expect((await client.theirs.all('payouts')).map(({ id }) => id)).toEqual([
    'payout_2',
    'payout_3',
    'payout_4',
    'payout_new',
  ])

  // `…_4` is an id of the other organization. `…_9` does not exist.
  const alike = [
    ['/payouts/payout_4', '/payouts/payout_9'],
    ['/statements/payout_4', '/statements/payout_9'],
    ['/periods/period_4', '/periods/period_9'],
    ['/payouts?starting_after=payout_4', '/payouts?starting_after=payout_9'],
    ['/payouts?limit=1&starting_after=payout_3', '/payouts?limit=1&starting_after=payout_9'],
    ['/periods?starting_after=period_4', '/periods?starting_after=period_9'],
  ] as const
  for (const [ofAnother, ofNobody] of alike) {
    const [one, other] = [await client.ours.askInTime(ofAnother), await client.ours.askInTime(ofNobody)]
    expect([400, 404]).toContain(one.status)
    expect(seenBy(one)).toEqual(seenBy(other))
  }
})

/** An answer without the values that differ between requests. */
const seenBy = ({ status, headers, text }: Answer): unknown => ({
  status,
  text,
  headers: [...headers].filter(([name]) => !['x-request-id', 'date', 'ratelimit'].includes(name)),
})

/** Of two answers to the same request at different times, with the time as a mark that it is there. */
const seenWithoutTime = (answer: Answer): unknown => {
  const headers = new Headers(answer.headers)
  if (headers.has('projection-time')) headers.set('projection-time', 'at any time')
  return seenBy({ ...answer, headers })
}

test('an organization without records answers every id as unknown, and its lists are empty', async () => {
  for (const list of lists) {
    const page = await client.empty.askInTime(`/${list}`)
    expect(page.text).toBe('{"data":[],"has_more":false,"next_cursor":""}')
  }
  for (const path of everyPath.filter(path => /^\/\w+\/\w+$/.test(path))) {
    expect((await client.empty.askInTime(path)).status).toBe(404)
  }
  const answers = await Promise.all(
    ['payout_1', 'payout_4', 'payout_9'].map(id => client.empty.askInTime(`/payouts?starting_after=${id}`)),
  )
  for (const answer of answers)
    expect(seenBy(answer)).toEqual(seenBy(await client.ours.askInTime('/payouts?starting_after=payout_9')))
})

test('a key that may not read gets the same answer for existing, missing and impossible records', async () => {
  const paths = [...everyPath, '/payouts/payout_9', '/payouts/x', '/nowhere', '/payouts?limit=0']
  const answers = await Promise.all(paths.map(path => client.mayNotRead.askInTime(path)))
  for (const answer of answers) {
    expect(answer.status).toBe(403)
    expect(answer.text).toBe(answers[0]?.text)
  }
})

test('keys with every set of permissions see their own organization only, and nothing beyond their set', async () => {
  const sets = Array.from({ length: 2 ** parts.length }, (_, set) => parts.filter((_, part) => set & (2 ** part)))
  const made = sets.map((permissions, place) => ({
    permissions,
    text: newKeyText(),
    id: `key_set${place}`,
    org: place % 2 === 0 ? ours : theirs,
  }))
  await topics.publish(made.map(({ org, id, text, permissions }) => keyCreated({ org_id: org, id, text, permissions })))
  await untilCaughtUp(projector)
  for (const { permissions, text, org } of made) {
    const [one, whole] = [createClient([api], text), org === ours ? client.ours : client.theirs]
    const paths = everyPath.filter((_, place) => (place + permissions.length) % 3 === 0)
    await Promise.all(
      paths.map(async path => {
        const needed = neededFor(path)
        const [got, all] = [await one.askInTime(path), await whole.askInTime(path)]
        if (permissions.includes(needed)) expect(seenWithoutTime(got)).toEqual(seenWithoutTime(all))
        else expect([got.status, got.text]).toEqual([403, refusedFor(permissions, needed)])
        expect(got.text).not.toMatch(org === ours ? /theirs|forged|4444/ : /ours|forged|2222/)
      }),
    )
  }
})

test('a key is refused as an unknown one from its expiry on, on an API that knew it', async () => {
  const unknown = seenBy(await createClient([api], newKeyText()).askInTime('/reps'))
  /** Returns whether the API knew a key before its expiry. */
  const wasKnown = async (seconds: number): Promise<boolean> => {
    const text = newKeyText()
    const expiring = createClient([api], text)
    const expiry = Date.now() + seconds * 1_000
    const id = `key_expiring${seconds}`
    await topics.publish([keyCreated({ org_id: ours, id, text, expires_at: new Date(expiry).toISOString() })])
    const seen: { readonly status: number; readonly at: number }[] = []
    await eventually(
      async () => {
        const { status } = await expiring.askInTime('/reps')
        seen.push({ status, at: Date.now() })
        expect(Date.now()).toBeGreaterThanOrEqual(expiry)
      },
      { every: 10 },
    )
    expect(seenBy(await expiring.askInTime('/reps'))).toEqual(unknown)
    const first = seen.findIndex(({ status }) => status === 200)
    if (first === -1) return false
    for (const { status, at } of seen.slice(first)) if (status === 401) expect(at).toBeGreaterThanOrEqual(expiry)
    return true
  }
  // On a busy machine a key may expire before the API knows it: the next one is valid for longer.
  let seconds = 4
  while (!(await wasKnown(seconds))) seconds *= 2
})

/** Waits for a status. Fails if a request that begins after more than five seconds gets another status. */
const expectWithinFiveSeconds = async (client: Client, status: number): Promise<void> => {
  const first = performance.now()
  const late: number[] = []
  await eventually(async () => {
    const isLate = performance.now() - first > 5_000
    const answer = await client.askInTime('/reps')
    if (isLate) late.push(answer.status)
    expect(answer.status).toBe(status)
  })
  expect(late.filter(other => other !== status)).toEqual([])
}

test('a new key works, and a revoked key stops working, within 5 seconds on an API that already knew it', async () => {
  const text = newKeyText()
  const later = createClient([api], text)
  expect((await later.askInTime('/reps')).status).toBe(401)
  await topics.publish([keyCreated({ org_id: ours, id: 'key_3', text })])
  await untilCaughtUp(projector)
  await expectWithinFiveSeconds(later, 200)

  await topics.publish([keyRevoked({ org_id: ours, id: 'key_3' })])
  await untilCaughtUp(projector)
  await expectWithinFiveSeconds(later, 401)
  // The other keys of both organizations still work.
  for (const one of [client.ours, client.theirs, client.empty]) expect((await one.askInTime('/reps')).status).toBe(200)
})

test('a revoked key gets the same answer as an unknown one', async () => {
  const text = newKeyText()
  await topics.publish([keyCreated({ org_id: ours, id: 'key_4', text }), keyRevoked({ org_id: ours, id: 'key_4' })])
  await untilCaughtUp(projector)
  const [revoked, never] = [createClient([api], text), createClient([api], newKeyText())]
  for (const path of ['/payouts', '/payouts/payout_1', '/nowhere']) {
    expect(seenBy(await revoked.askInTime(path))).toEqual(seenBy(await never.askInTime(path)))
  }
})

/** The instant up to which an answer includes everything published. */
const projectionTime = ({ headers }: Answer): number => Date.parse(headers.get('projection-time') ?? '')

test('an answer includes everything that was published before its Projection-Time', async () => {
  for (let place = 0; place < 25; place++) {
    const id = `rep_timed${place}`
    await topics.publish([repRecorded({ org_id: ours, id })])
    const published = Date.now()
    const answer = await eventually(
      async () => {
        const answer = await client.ours.askInTime('/reps?limit=200')
        expect(projectionTime(answer)).toBeGreaterThan(published)
        return answer
      },
      { every: 1 },
    )
    expect(JSON.parse(answer.text).data.map((rep: { id: string }) => rep.id)).toContain(id)
  }
})

test('Projection-Time advances while nothing is published, also without records, and never goes back', async () => {
  for (const one of [client.ours, client.empty]) {
    const times: number[] = []
    await eventually(async () => {
      times.push(projectionTime(await one.askInTime('/reps')))
      expect(new Set(times).size).toBeGreaterThan(4)
    })
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  }
})
