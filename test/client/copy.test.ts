import { expect, test } from 'vitest'
import {
  type Change,
  CopyDiffersError,
  type CopyState,
  continueCopy,
  createClient,
  readCopy,
} from '../../client/src/index.ts'

const payout = (id: string, net_amount: string) => ({ id, period_id: 'period_1', currency: 'EUR', net_amount })
const payroll = (id: string, amount: string) => ({ id, period_id: 'period_1', currency: 'EUR', amount })
const change = (kind: Change['kind'], record: { readonly id: string }, supersedes_id: string | null = null) => ({
  id: kind === 'reps' || kind === 'periods' ? `${record.id}.1` : record.id,
  kind,
  supersedes_id,
  record,
})

/** A client of an API with these changes and totals. */
const clientOf = (changes: readonly object[], totals: readonly object[]) => {
  const asked: string[] = []
  const fetch = async ({ url }: Request): Promise<Response> => {
    const { pathname, search } = new URL(url)
    asked.push(pathname + search)
    return Response.json(
      pathname === '/totals'
        ? { data: { last_change_id: 'payout_2', totals } }
        : { data: changes, has_more: false, next_cursor: '' },
    )
  }
  return { asked, client: createClient({ baseUrl: 'http://127.0.0.1', key: 'key_text', fetch }) }
}

const stored = (state: CopyState): CopyState => JSON.parse(JSON.stringify(state))
const empty = { lastChangeId: null, reps: [], periods: [], payouts: [], payrollRecords: [] }
const changes = [
  change('reps', { id: 'rep_1' }),
  change('periods', { id: 'period_1' }),
  change('payouts', payout('payout_1', '0.1')),
  change('payroll_files', payroll('payroll_1', '12345678901234567890123456789012345678.90')),
  change('payroll_files', payroll('payroll_2', '-0.0000000000000000000000000000000000000001')),
  change('payouts', payout('payout_2', '0.2'), 'payout_1'),
].map((one, index) => ({ ...one, sequence: index + 1 }))
const totals = [
  {
    period_id: 'period_1',
    currency: 'EUR',
    owed_amount: '0.2',
    owed_count: 1,
    paid_amount: '12345678901234567890123456789012345678.8999999999999999999999999999999999999999',
    paid_count: 2,
    open_amount: '-12345678901234567890123456789012345678.6999999999999999999999999999999999999999',
  },
]

test('a copy applies changes, removes replaced payouts, and adds up exactly', async () => {
  const { client, asked } = clientOf(changes, totals)
  const copy = continueCopy(client, empty)
  const seen: string[] = []
  expect(await copy.update(({ id }) => void seen.push(id))).toBe(6)
  expect(seen).toEqual(['rep_1.1', 'period_1.1', 'payout_1', 'payroll_1', 'payroll_2', 'payout_2'])
  expect([...copy.reps.keys(), ...copy.periods.keys(), ...copy.payouts.keys()]).toEqual([
    'rep_1',
    'period_1',
    'payout_2',
  ])
  expect(copy.totals()).toEqual(totals)
  await copy.prove()
  expect(asked).toEqual(['/changes?limit=200', '/totals?as_of=payout_2'])
})

test('a stored copy continues after its last change', async () => {
  const first = continueCopy(clientOf(changes, totals).client, empty)
  await first.update()
  const { client, asked } = clientOf([{ ...change('payouts', payout('payout_3', '5'), 'payout_2'), sequence: 7 }], [])
  const copy = continueCopy(client, stored(first.state()))
  await copy.update()
  expect([copy.lastChangeId(), ...copy.payouts.keys()]).toEqual(['payout_3', 'payout_3'])
  expect(asked).toEqual(['/changes?limit=200&starting_after=payout_2'])
})

test('a proof beside changes compares with the totals of the moment at which it began', async () => {
  const gate = Promise.withResolvers<void>()
  const asked: string[] = []
  const slow = createClient({
    baseUrl: 'http://127.0.0.1',
    key: 'key_text',
    fetch: async request => {
      const { pathname, search } = new URL(request.url)
      asked.push(pathname + search)
      if (pathname === '/totals') {
        await gate.promise
        return Response.json({
          data: {
            last_change_id: 'payout_1',
            totals: [{ ...totals[0], owed_amount: '0.1', paid_amount: '0', paid_count: 0 }],
          },
        })
      }
      const isFirst = search === '?limit=200'
      return Response.json({ data: isFirst ? changes.slice(0, 3) : changes.slice(3), has_more: false, next_cursor: '' })
    },
  })
  const copy = continueCopy(slow, empty)
  await copy.update()
  const proving = copy.prove()
  await copy.update()
  gate.resolve()
  await proving
  expect(asked).toContain('/totals?as_of=payout_1')
  expect(copy.lastChangeId()).toBe('payout_2')
})

test.for([
  ['an amount', [{ ...totals[0], owed_amount: '0.20000000000000000001' }]],
  ['a count', [{ ...totals[0], paid_count: 3 }]],
  ['a missing total', []],
  ['a total of another currency', [...totals, { ...totals[0], currency: 'USD' }]],
] as const)('a copy that differs in %s is refused', async ([, theirs]) => {
  const copy = continueCopy(clientOf(changes, theirs).client, empty)
  await copy.update()
  await expect(copy.prove()).rejects.toBeInstanceOf(CopyDiffersError)
})

test('two updates at the same time: the later one throws, and the copy stays right', async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let asked = 0
  const client = createClient({
    baseUrl: 'http://127.0.0.1',
    key: 'key_text',
    fetch: async () => {
      await gates[asked++]?.promise
      return Response.json({ data: changes, has_more: false, next_cursor: '' })
    },
  })
  const copy = continueCopy(client, empty)
  const [first, second] = [copy.update(), copy.update()]
  gates[0]?.resolve()
  await first
  // The second one would make payout_1 current again, next to payout_2.
  gates[1]?.resolve()
  await expect(second).rejects.toThrow('another update or follow has applied changes to this copy')
  expect([copy.lastChangeId(), ...copy.payouts.keys()]).toEqual(['payout_2', 'payout_2'])
})

test('a follow throws after an update of the same copy', async () => {
  const copy = continueCopy(clientAfter(), empty)
  const following = (async () => {
    for await (const { id } of copy.follow()) {
      if (id === 'payout_2') throw new Error('changes were applied twice')
      await copy.update()
    }
  })()
  await expect(following).rejects.toThrow('another update or follow has applied changes to this copy')
})

test('update() waits for what is done with a change, and ends with its error', async () => {
  const copy = continueCopy(clientOf(changes, totals).client, empty)
  const updating = copy.update(async ({ id }) => {
    await Promise.resolve()
    if (id === 'payout_1') throw new Error('the disk is full')
  })
  await expect(updating).rejects.toThrow('the disk is full')
  expect(copy.lastChangeId()).toBe('payout_1')
})

const lists: Readonly<Record<string, readonly object[]>> = {
  '/reps': [{ id: 'rep_1' }],
  '/periods': [{ id: 'period_1' }],
  '/payouts': [payout('payout_2', '0.2')],
  '/payroll_files': changes.slice(3, 5).map(({ record }) => record),
}
/** A client of an API that answers the changes after `starting_after`, and the lists and totals after all of them. */
const clientAfter = () =>
  createClient({
    baseUrl: 'http://127.0.0.1',
    key: 'key_text',
    fetch: async ({ url }) => {
      const { pathname, searchParams } = new URL(url)
      if (pathname === '/totals') {
        return Response.json({ data: { last_change_id: 'payout_2', last_sequence: 6, totals } })
      }
      const after = searchParams.get('starting_after')
      if (after !== null && !changes.some(({ id }) => id === after)) {
        return Response.json({ error: { code: 'invalid_cursor', message: 'no such change' } }, { status: 400 })
      }
      const data = lists[pathname] ?? changes.slice(changes.findIndex(({ id }) => id === after) + 1)
      return Response.json({ data, has_more: false, next_cursor: '' })
    },
  })
const idsOf = (all: readonly { readonly id: string }[], from: string) =>
  all.map(({ id }) => id).slice(all.findIndex(({ id }) => id === from))
/** A copy whose `update` has failed to hand over this change. */
const failedAt = async (failing: string) => {
  const copy = continueCopy(clientAfter(), empty)
  const updating = copy.update(({ id }) => {
    if (id === failing) throw new Error('the disk is full')
  })
  await expect(updating).rejects.toThrow('the disk is full')
  return copy
}

test.each(['rep_1.1', 'payout_1', 'payout_2'])(
  'a change whose onChange failed is the first of the next update, also after a further failure: %s',
  async failing => {
    const copy = await failedAt(failing)
    await expect(copy.update(() => Promise.reject(new Error('still full')))).rejects.toThrow('still full')
    const seen: string[] = []
    expect(await copy.update(({ id }) => void seen.push(id))).toBe(seen.length)
    expect(seen).toEqual(idsOf(changes, failing))
    expect([copy.lastChangeId(), ...copy.payouts.keys()]).toEqual(['payout_2', 'payout_2'])
    expect(await copy.update(({ id }) => void seen.push(id))).toBe(0)
  },
)

test('while an update hands over changes, a further one is refused, and a follow or plain update leaves none out', async () => {
  const copy = continueCopy(clientAfter(), empty)
  const [held, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = copy.update(async ({ id }) => {
    if (id !== 'payout_1') return
    reached.resolve()
    await held.promise
    throw new Error('the disk is full')
  })
  await reached.promise
  await expect(copy.update(() => undefined)).rejects.toThrow('another update hands over changes of this copy')
  for await (const { id } of copy.follow()) if (id === 'payroll_1') break
  await copy.update()
  held.resolve()
  await expect(first).rejects.toThrow('the disk is full')
  const seen: string[] = []
  await copy.update(({ id }) => void seen.push(id))
  expect(seen).toEqual(idsOf(changes, 'payout_1'))
})

test('a copy that continues a state begins with the change whose onChange failed', async () => {
  const failed = await failedAt('rep_1.1')
  const copy = continueCopy(clientAfter(), stored(failed.state()))
  const seen: string[] = []
  await copy.update(({ id }) => void seen.push(id))
  expect(seen).toEqual(idsOf(changes, 'rep_1.1'))
})

test('the state that onChange gets with a change, and one after the update, has it as handed over', async () => {
  const copy = continueCopy(clientAfter(), empty)
  const states: CopyState[] = []
  await copy.update((_, stateAfter) => void states.push(stateAfter()))
  expect(states.map(state => state.lastChangeId)).toEqual(changes.map(({ id }) => id))
  for (const state of [...states, copy.state()]) expect(state).not.toHaveProperty('handedOver')
})

test('a state that is stored while onChange works on a change does not have it as handed over', async () => {
  const copy = continueCopy(clientAfter(), empty)
  const [held, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const updating = copy.update(async ({ id }) => {
    if (id !== 'payout_1') return
    reached.resolve()
    await held.promise
  })
  await reached.promise
  const state = stored(copy.state())
  held.resolve()
  await updating
  const seen: string[] = []
  await continueCopy(clientAfter(), state).update(({ id }) => void seen.push(id))
  expect(seen).toEqual(idsOf(changes, 'payout_1'))
})

test.for([
  ['the change that the earlier copy handed over last', { handedOver: 'period_1.1' }, 'payout_1'],
  ['the last change of an earlier copy that handed over all', {}, 'payroll_1'],
  ['the beginning if the earlier copy handed over none', { handedOver: null }, 'rep_1.1'],
] as const)('a copy that is read anew hands over the changes after %s', async ([, earlier, first]) => {
  const copy = await readCopy(clientAfter(), { ...empty, lastChangeId: 'payout_1', ...earlier })
  for (const one of [continueCopy(clientAfter(), stored(copy.state())), copy]) {
    const seen: string[] = []
    await one.update(({ id }) => void seen.push(id))
    expect([one.lastChangeId(), ...seen]).toEqual(['payout_2', ...idsOf(changes, first)])
  }
})

test('a copy is read anew although the last change that was handed over is gone, once handOver says what to do', async () => {
  for (const before of [
    { ...empty, lastChangeId: 'payout_1', handedOver: 'gone_1' },
    { ...empty, lastChangeId: 'gone_1' },
  ]) {
    const refused = readCopy(clientAfter(), before)
    await expect(refused).rejects.toBeInstanceOf(CopyDiffersError)
    await expect(refused).rejects.toThrow("no change gone_1, the last one handed over: choose handOver 'all'")
    for (const [handOver, ids] of [
      ['all', changes.map(({ id }) => id)],
      ['none', []],
    ] as const) {
      const copy = await readCopy(clientAfter(), before, { handOver })
      const seen: string[] = []
      await continueCopy(clientAfter(), stored(copy.state())).update(({ id }) => void seen.push(id))
      expect(seen).toEqual(ids)
    }
  }
})

test('only the code invalid_cursor says that the change is gone: another refusal stays the error', async () => {
  const client = createClient({
    baseUrl: 'http://127.0.0.1',
    key: 'key_text',
    fetch: async ({ url }) =>
      new URL(url).pathname === '/totals'
        ? Response.json({ data: { last_change_id: 'payout_2', last_sequence: 6, totals } })
        : Response.json({ error: { code: 'forbidden', message: 'not this list' } }, { status: 403 }),
  })
  const reading = readCopy(client, { ...empty, lastChangeId: 'payout_1' })
  await expect(reading).rejects.toThrow('403 forbidden: not this list')
})

test('a copy whose last change does not come hands over each change once, and asks to be read anew', async () => {
  const state = { ...empty, lastChangeId: 'payout_1', lastSequence: 3, handedOver: 'payroll_1' }
  const copy = continueCopy(clientAfter(), state)
  const seen: string[] = []
  const see = ({ id }: { readonly id: string }) => void seen.push(id)
  for (const _ of [1, 2]) {
    const updating = copy.update(see)
    await expect(updating).rejects.toBeInstanceOf(CopyDiffersError)
    await expect(updating).rejects.toThrow('not served change payout_1, the last one of the copy: read the copy anew')
  }
  await (await readCopy(clientAfter(), stored(copy.state()))).update(see)
  expect(seen).toEqual(['payroll_2', 'payout_2'])
})

test('a copy that no key has proved refuses a change that does not follow its last one', async () => {
  const some = (...sequences: number[]) =>
    clientOf(
      changes.filter(({ sequence }) => sequences.includes(sequence)),
      [],
    ).client
  const first = continueCopy(some(1, 2), empty)
  await first.update()
  const { lastSequence: _, ...older } = stored(first.state())
  for (const copy of [
    continueCopy(some(1, 2, 4), empty),
    continueCopy(some(4), stored(first.state())),
    continueCopy(some(2, 4), older),
  ]) {
    await expect(copy.update()).rejects.toThrow('expected the change with sequence 3, got 4: read the copy anew')
    expect(copy.payrollRecords.size).toBe(0)
  }
  expect((await readCopy(clientAfter())).state().lastSequence).toBe(6)
})

test('those who get a change may alter it: the copy has a record of its own', async () => {
  const copy = continueCopy(clientAfter(), empty)
  await copy.update(({ record }) => void Object.assign(record, { net_amount: '0', amount: '0' }))
  expect(copy.totals()).toEqual(totals)
})

test('a follow begins with the change whose onChange failed', async () => {
  const copy = await failedAt('payroll_2')
  const seen: string[] = []
  for await (const { id } of copy.follow()) if (seen.push(id) === 2) break
  expect(seen).toEqual(['payroll_2', 'payout_2'])
})

test('an update without onChange leaves out what was not handed over', async () => {
  const copy = await failedAt('payout_1')
  expect(await copy.update()).toBe(3)
  expect(await copy.update(() => Promise.reject(new Error('handed over')))).toBe(0)
  expect(copy.state()).not.toHaveProperty('handedOver')
})

test('an organization without a change is an empty copy', async () => {
  const { client, asked } = clientOf([], [])
  const copy = continueCopy(client, empty)
  expect(await copy.update()).toBe(0)
  await copy.prove()
  expect([copy.lastChangeId(), copy.totals()]).toEqual([null, []])
  expect(asked).toEqual(['/changes?limit=200'])
})
