/** A copy that is proved with a checkpoint. The service’s own code makes the digest and signs it. */
import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  CheckpointInvalidError,
  type Copy,
  CopyDiffersError,
  type CopyState,
  continueCopy,
  createClient,
} from '../../client/src/index.ts'
import { CHECKPOINT_TIME_MAX } from '../../core/reading/limits.ts'
import { createSigningKey, type SigningKey, signNote, textOfVerifierKey } from '../../core/runtime/index.ts'
import { CLOCKS_APART_MS, READ_TIME_MAX } from '../../core/store/limits.ts'
import { CHECKPOINT_FORM, digestedText, textOfCheckpoint } from '../../schemas/checkpoint.ts'

type Fields = Record<string, unknown>
type Kind = 'reps' | 'periods' | 'payouts' | 'payroll_files'
const changeOf = (sequence: number, kind: Kind, id: string, record: Fields, supersedes_id: string | null = null) => ({
  id,
  kind,
  sequence,
  published_at: `2026-01-01T00:00:${String(sequence).padStart(2, '0')}.000Z`,
  supersedes_id,
  reverses_id: null,
  record: { id: id.split('.')[0], ...record },
})
const rep = { name: 'Ana', email: null, status: 'active', started_on: null, departed_on: null }
const period = { kind: 'month', name: 'January', timezone: 'Europe/Berlin', starts_at: 'a', ends_at: 'b' }
const payout = (net_amount: string, more: Fields = {}) => ({
  ...{ rep_id: 'rep_1', period_id: 'period_1', net_amount, earned_amount: net_amount, currency: 'EUR' },
  ...{ supersedes_id: null, superseded_by_id: null, calculated_at: '2026-01-01T00:00:00Z', recorded_at: null },
  line_items: [{ id: 'line_1', category: 'earned', description: 'text', amount: net_amount, deal_id: null }],
  ...more,
})
const payroll = (amount: string) => ({
  ...{ rep_id: 'rep_1', period_id: 'period_1', payout_id: null, reverses_id: null, amount, currency: 'EUR' },
  ...{ destination: { type: 'other', label: 'text' }, recorded_at: '2026-01-02T00:00:00Z' },
})
const all = [
  changeOf(1, 'reps', 'rep_1.1', rep),
  changeOf(2, 'periods', 'period_1.1', period),
  changeOf(3, 'payouts', 'payout_1', payout('10.50')),
  changeOf(4, 'reps', 'rep_1.2', { ...rep, status: 'departed' }, 'rep_1.1'),
  changeOf(5, 'payouts', 'payout_2', payout('12.25', { supersedes_id: 'payout_1' }), 'payout_1'),
  changeOf(6, 'payroll_files', 'payroll_1', payroll('2')),
  changeOf(7, 'payouts', 'payout_3', payout('1', { period_id: 'period_2', currency: 'USD' })),
]
type Served = (typeof all)[number]

const key = createSigningKey('api.example.com/checkpoints')
const publicKey = textOfVerifierKey(key.verifier)
const sha256 = (bytes: string | Buffer): Buffer => hash('sha256', bytes, 'buffer')
const totalsOf = (to: number) => [
  ...(to >= 3
    ? [['EUR', to >= 5 ? '12.25' : '10.5', to >= 6 ? '2' : '0', to >= 6 ? '10.25' : to >= 5 ? '12.25' : '10.5']]
    : []),
  ...(to >= 7 ? [['USD', '1', '0', '1']] : []),
]

type Signed = {
  readonly changes?: readonly Served[]
  readonly rules?: number
  readonly by?: SigningKey
  readonly organization?: string
  readonly owed?: string
  /** Milliseconds after the usual time. */
  readonly later?: number
}
/** A checkpoint of the first changes. */
const noteOf = (
  to: number,
  { changes = all, rules = 7, by = key, organization = 'org_1', owed, later = 0 }: Signed = {},
): string => {
  let digest = sha256(`${CHECKPOINT_FORM}\n`)
  for (const change of changes.slice(0, to)) digest = sha256(Buffer.concat([digest, sha256(digestedText(change))]))
  const totals = totalsOf(to).map(([currency = '', sum = '', paid = '', open = '']) => ({
    currency,
    owed: owed ?? sum,
    paid,
    open,
  }))
  const text = textOfCheckpoint({
    ...{ organization, rules, sequence: to, change: changes[to - 1]?.id ?? null, digest: digest.toString('hex') },
    ...{ totals, time: new Date(Date.UTC(2026, 1, 1) + later).toISOString() },
  })
  return signNote(Buffer.from(text), by).toString('utf8')
}

/** An API that serves these changes, and one checkpoint after the other. */
const copyOf = (notes: readonly string[], to = all.length, state?: CopyState, changes: readonly Served[] = all) => {
  const asked: string[] = []
  let given = 0
  const client = createClient({
    baseUrl: 'http://127.0.0.1',
    key: 'key_text',
    fetch: async ({ url }) => {
      const { pathname, searchParams } = new URL(url)
      asked.push(pathname)
      if (pathname === '/checkpoint') return Response.json({ data: { note: notes[given++] ?? notes.at(-1) } })
      const after = searchParams.get('starting_after')
      const from = after === null ? 0 : changes.findIndex(({ id }) => id === after) + 1
      const data = changes.slice(from, from + 3)
      return Response.json({ data, has_more: from + 3 < changes.length, next_cursor: data.at(-1)?.id ?? '' })
    },
  })
  const read = state ?? stateOf(to)
  return { copy: continueCopy(client, read), asked }
}
/** A copy as it is read from the lists as of a change. */
const stateOf = (to: number): CopyState => {
  const records = new Map<string, Served>()
  for (const change of all.slice(0, to)) {
    if (change.kind === 'payouts' && change.supersedes_id) records.delete(change.supersedes_id)
    records.set(String(change.record.id), change)
  }
  const listOf = (kind: Kind) =>
    [...records.values()].filter(one => one.kind === kind).map(({ record }) => ({ ...record }))
  const [reps, periods, payouts, payrollRecords] = (['reps', 'periods', 'payouts', 'payroll_files'] as const).map(
    listOf,
  )
  return JSON.parse(JSON.stringify({ lastChangeId: all[to - 1]?.id ?? null, reps, periods, payouts, payrollRecords }))
}
const stored = (copy: Copy): CopyState => JSON.parse(JSON.stringify(copy.state()))
type Path = readonly (string | number)[]
/** Sets a value of a stored copy. */
const altered = (state: CopyState, path: Path, value: unknown): CopyState => {
  const set = (of: unknown, [name = '', ...more]: Path): unknown => {
    const next = more.length === 0 ? value : set(Object(of)[name], more)
    return Array.isArray(of) ? of.with(Number(name), next) : { ...Object(of), [name]: next }
  }
  return set(state, path) as CopyState
}

test('a copy that was read from the lists is proved: its digest and its totals are those of the checkpoint', async () => {
  const { copy, asked } = copyOf([noteOf(7)])
  const { checkpoint, note, areTotalsCompared } = await copy.prove(publicKey)
  expect([checkpoint.sequence, checkpoint.changeId, checkpoint.organization, areTotalsCompared]).toEqual([
    7,
    'payout_3',
    'org_1',
    true,
  ])
  expect(note).toBe(noteOf(7))
  expect(checkpoint.totals).toEqual([
    { currency: 'EUR', owed: '12.25', paid: '2', open: '10.25' },
    { currency: 'USD', owed: '1', paid: '0', open: '1' },
  ])
  expect(asked).toEqual(['/checkpoint', '/changes', '/changes', '/changes'])
})

test('a copy that is behind reads up to the checkpoint, and one that is ahead is proved up to it', async () => {
  const behind = copyOf([noteOf(5)], 2)
  expect((await behind.copy.prove(publicKey)).areTotalsCompared).toBe(true)
  expect(behind.copy.lastChangeId()).toBe('payout_2')
  const ahead = copyOf([noteOf(4)])
  const { checkpoint, areTotalsCompared } = await ahead.copy.prove(publicKey)
  expect([checkpoint.sequence, areTotalsCompared, ahead.copy.lastChangeId()]).toEqual([4, false, 'payout_3'])
})

test('a stored copy continues its proof without reading all changes again, also with an older checkpoint', async () => {
  const first = copyOf([noteOf(3)], 4).copy
  await first.prove(publicKey)
  const { copy, asked } = copyOf([noteOf(7), noteOf(6)], 0, stored(first))
  await copy.update()
  expect((await copy.prove(publicKey)).areTotalsCompared).toBe(true)
  expect((await copy.prove(publicKey)).checkpoint.sequence).toBe(6)
  expect(asked).toEqual(['/changes', '/checkpoint', '/checkpoint'])
  expect(stored(copy).proved?.sequence).toBe(7)
})

test('a change that a proof has applied is handed over by the next update', async () => {
  const { copy } = copyOf([noteOf(7)], 2)
  await copy.prove(publicKey)
  const seen: number[] = []
  const continued = copyOf([], 0, stored(copy)).copy
  expect(await continued.update(({ sequence }) => void seen.push(sequence))).toBe(5)
  expect(seen).toEqual([3, 4, 5, 6, 7])
})

test('an empty organization is proved', async () => {
  const { copy } = copyOf([noteOf(0)], 0)
  expect((await copy.prove(publicKey)).checkpoint).toMatchObject({ sequence: 0, changeId: null, totals: [] })
})

test.for([
  ['an amount', ['payouts', 0, 'net_amount'], '12.26'],
  ['a line', ['payouts', 0, 'line_items', 0, 'deal_id'], 'deal_1'],
  ['a rep', ['reps', 0, 'status'], 'active'],
  ['a period', ['periods', 0, 'ends_at'], 'c'],
  ['a payment', ['payrollRecords', 0, 'recorded_at'], '2026-01-03T00:00:00Z'],
  ['the kind of a destination', ['payrollRecords', 0, 'destination', 'type'], 'bank_account'],
  ['a lost record', ['periods'], []],
  ['a record of nobody', ['reps', 1], { ...rep, id: 'rep_9' }],
] as const)('a copy that differs in %s is refused, at its first proof and after one', async ([, path, value]) => {
  const state = stateOf(7)
  const more = { ...state, reps: [...state.reps, ...(path[1] === 1 ? state.reps : [])] }
  await expect(copyOf([noteOf(7)], 0, altered(more, path, value)).copy.prove(publicKey)).rejects.toBeInstanceOf(
    CopyDiffersError,
  )
  const { copy } = copyOf([noteOf(7)])
  await copy.prove(publicKey)
  const proved = stored(copy)
  const later = altered({ ...proved, reps: more.reps }, path, value)
  await expect(copyOf([noteOf(7)], 0, later).copy.prove(publicKey)).rejects.toBeInstanceOf(CopyDiffersError)
})

test('texts of a person may change: an erasure breaks no proof', async () => {
  const { copy } = copyOf([noteOf(7)])
  await copy.prove(publicKey)
  const before = stored(copy)
  const rep_1 = { ...before.reps[0], name: '', email: null, erased: true }
  const destination = { type: 'other', label: '', erased: true }
  const forgotten = altered(altered(before, ['reps', 0], rep_1), ['payrollRecords', 0, 'destination'], destination)
  expect((await copyOf([noteOf(7)], 0, forgotten).copy.prove(publicKey)).areTotalsCompared).toBe(true)
})

test('a checkpoint of other changes is refused: one was left out, altered or published at another time', async () => {
  const others = [
    all.with(2, changeOf(3, 'payouts', 'payout_1', payout('10.51'))),
    all.with(5, { ...(all[5] as Served), published_at: '2026-01-01T00:01:00.000Z' }),
    all.toSpliced(2, 1),
  ]
  for (const changes of others) {
    const { copy } = copyOf([noteOf(6, { changes })])
    await expect(copy.prove(publicKey)).rejects.toThrow(
      /at sequence 6, the copy differs from what the service has signed/,
    )
  }
  const wrongSum = copyOf([noteOf(7, { owed: '12.2500000000000000000000000001' })])
  await expect(wrongSum.copy.prove(publicKey)).rejects.toThrow('at sequence 7, owed in EUR is 12.25')
})

test('the next checkpoint must continue the one before', async () => {
  const rewritten = all.with(0, changeOf(1, 'reps', 'rep_1.1', { ...rep, started_on: '2020-01-01' }))
  const { copy } = copyOf([noteOf(5), noteOf(7, { changes: rewritten }), noteOf(7, { organization: 'org_2' })])
  await copy.prove(publicKey)
  await expect(copy.prove(publicKey)).rejects.toBeInstanceOf(CopyDiffersError)
  await expect(copy.prove(publicKey)).rejects.toThrow('the checkpoint is of org_2, the copy of org_1')
  // Somebody has changed the copy and what it knows of the changes: the service has signed another history before.
  const state = stored(copy)
  const changes = [...(state.changes ?? [])]
  changes[0] = sha256(digestedText(rewritten[0] as Served)).toString('hex')
  const served = copyOf([noteOf(7, { changes: rewritten })], 0, { ...state, changes }).copy
  await expect(served.prove(publicKey)).rejects.toThrow('up to change 5, the copy is not as it was proved')
})

test('a checkpoint with fewer changes is refused if it was signed later: the history went back', async () => {
  const hour = 3_600_000
  const { copy } = copyOf([noteOf(7), noteOf(6, { later: hour }), noteOf(0, { later: 2 * hour }), noteOf(7)])
  const { checkpoint: continues } = await copy.prove(publicKey)
  for (const sequence of [6, 0]) {
    await expect(copy.prove(publicKey)).rejects.toThrow(
      new RegExp(`has signed 7 changes at 2026-02-01T00:00.* and ${sequence} at .*: its history went back`),
    )
  }
  expect((await copy.prove(publicKey)).checkpoint.sequence).toBe(7)
  const proved = stored(copy)
  const again = copyOf([noteOf(6, { later: hour })], 0, proved).copy.prove(publicKey)
  await expect(again).rejects.toBeInstanceOf(CopyDiffersError)
  const anew = copyOf([noteOf(6), noteOf(6, { later: hour })], 0, { ...stateOf(7), continues }).copy
  await anew.prove(publicKey)
  await expect(anew.prove(publicKey)).rejects.toThrow('its history went back')
  const otherRules = copyOf([noteOf(6, { later: hour, rules: 8 })], 0, proved).copy.prove(publicKey)
  await expect(otherRules).rejects.toThrow('its rules changed from rules-7 to rules-8, so read the copy anew')
})

test('a checkpoint with fewer changes is taken if it is older, or another process has signed it at the same time', async () => {
  // The longest request for a checkpoint, by the clock that is ahead.
  const atOnce = READ_TIME_MAX + CHECKPOINT_TIME_MAX + CLOCKS_APART_MS
  const { copy } = copyOf([noteOf(7), noteOf(6, { later: -60_000 }), noteOf(6, { later: atOnce })])
  for (const sequence of [7, 6, 6]) expect((await copy.prove(publicKey)).checkpoint.sequence).toBe(sequence)
  expect(stored(copy).proved?.sequence).toBe(7)
})

test('under other rules a copy is proved if nothing changed, and else the error says what to do', async () => {
  const { copy } = copyOf([noteOf(6), noteOf(7, { rules: 8 }), noteOf(7, { rules: 9, changes: all.toSpliced(2, 1) })])
  await copy.prove(publicKey)
  expect((await copy.prove(publicKey)).checkpoint.line).toBe('rules-8')
  await expect(copy.prove(publicKey)).rejects.toThrow(
    'its rules changed from rules-8 to rules-9, so read the copy anew',
  )
})

test('under other rules, a proof and the state of the copy name the last checkpoint of the rules before', async () => {
  const { copy } = copyOf([noteOf(5), noteOf(6, { rules: 8 }), noteOf(7, { rules: 8 })])
  const first = await copy.prove(publicKey)
  expect([first.continues, stored(copy).continues]).toEqual([undefined, undefined])
  for (const sequence of [6, 7]) {
    const { checkpoint, continues } = await copy.prove(publicKey)
    expect([checkpoint.line, checkpoint.sequence, continues]).toEqual(['rules-8', sequence, first.checkpoint])
  }
  expect(stored(copy).continues).toEqual(first.checkpoint)
})

test('a copy that is read anew continues the last checkpoint: it may differ under other rules, and not under the same', async () => {
  const { copy } = copyOf([noteOf(7)])
  const { checkpoint: continues } = await copy.prove(publicKey)
  const changes = all.with(2, changeOf(3, 'payouts', 'payout_1', payout('10.51')))
  const anew = (of: Signed, to = 7) =>
    copyOf([noteOf(to, { changes, ...of })], 0, { ...stateOf(to), continues }, of.changes ?? changes).copy
  const proof = await anew({ rules: 8 }).prove(publicKey)
  expect([proof.checkpoint.line, proof.continues]).toEqual(['rules-8', continues])
  await expect(anew({}).prove(publicKey)).rejects.toThrow('up to change 7, the service has signed another history')
  const fewer = anew({ changes: all.slice(0, 6) }, 6).prove(publicKey)
  await expect(fewer).rejects.toThrow('the service has signed 7 changes, and serves 6')
  expect((await anew({ changes: all }).prove(publicKey)).continues).toEqual(continues)
  const foreign = anew({ rules: 8, organization: 'org_2' }).prove(publicKey)
  await expect(foreign).rejects.toThrow('the checkpoint is of org_2, the copy of org_1')
})

test('while the service changes its key, a note of either key is taken', async () => {
  const next = createSigningKey('api.example.com/checkpoints')
  const keys = [publicKey, textOfVerifierKey(next.verifier)]
  const { copy } = copyOf([noteOf(5), noteOf(6, { by: next }), noteOf(7)])
  for (const sequence of [5, 6, 7]) expect((await copy.prove(keys)).checkpoint.sequence).toBe(sequence)
  const other = copyOf([noteOf(7, { by: createSigningKey('api.example.com/checkpoints') })])
  await expect(other.copy.prove(keys)).rejects.toBeInstanceOf(CheckpointInvalidError)
  await expect(other.copy.prove([])).rejects.toBeInstanceOf(CheckpointInvalidError)
})

test('a note of another key, a changed one and a wrong public key are refused before anything is compared', async () => {
  const other = createSigningKey('api.example.com/checkpoints')
  const refusedFor = async (note: string, asked = publicKey) => {
    const { copy, asked: paths } = copyOf([note])
    await expect(copy.prove(asked)).rejects.toBeInstanceOf(CheckpointInvalidError)
    expect(paths).toEqual(['/checkpoint'])
  }
  await refusedFor(noteOf(7, { by: other }))
  await refusedFor(noteOf(7).replace('sequence 7', 'sequence 6'))
  await refusedFor(noteOf(7).replace('owed 1 ', 'owed 2 '))
  const timeless = noteOf(7)
    .split('\n\n')[0]
    ?.replace(/time .*/, 'time soon')
  await refusedFor(signNote(Buffer.from(`${timeless}\n`), key).toString('utf8'))
  await refusedFor('no note')
  await refusedFor(noteOf(7), publicKey.slice(0, -6))
  const manifest = signNote(Buffer.from('{"format":"commission-close/1"}\n'), key).toString('utf8')
  await refusedFor(manifest)
})

test('beside a follow, a copy that is behind is refused and stays as it is', async () => {
  const { copy } = copyOf([noteOf(7), noteOf(3)], 2)
  for await (const { id } of copy.follow()) {
    if (id !== 'payout_1') continue
    await expect(copy.prove(publicKey)).rejects.toThrow('the copy lacks 4 changes of the checkpoint')
    expect((await copy.prove(publicKey)).checkpoint.sequence).toBe(3)
    break
  }
  expect(copy.lastChangeId()).toBe('payout_1')
})

test('a change that does not follow the last one is refused once a copy was proved', async () => {
  const { copy } = copyOf([noteOf(2)], 2, undefined, all.toSpliced(3, 1))
  await copy.prove(publicKey)
  await expect(copy.update()).rejects.toThrow('expected the change with sequence 4, got 5')
})
