/** The server for agents, as a real process before a real API: what an agent reads, and what it can never read. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type Agent, startAgent, startByHand } from '../support/agents.ts'
import { line, payoutCalculated, payoutRecorded, repRecorded } from '../support/events.ts'
import { keys, LARGE, org_id, records } from '../support/explorer-records.ts'
import { fetchInTime } from '../support/in-time.ts'
import { startApi } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { fileScope } from '../support/scope.ts'
import { createKeys, seal } from '../support/seal.ts'

const scope = fileScope()
const MANY = 150
const lines = Array.from({ length: MANY }, (_, at) => line({ id: `line_${at}`, amount: '0.10', deal_id: `deal_${at}` }))

type Fields = Readonly<Record<string, unknown>>
type Page = { readonly data: readonly Fields[]; readonly has_more: boolean; readonly next_cursor: string | null }

const setUp = async () => {
  const seals = createKeys(scope, ['k3'])
  // The key of this person was destroyed.
  seals.putReceipt('k2')
  const more = [
    // Sealed for another field: nobody can read it.
    repRecorded({
      org_id,
      id: 'rep_3',
      name: seal('Cy', { org: org_id, record: 'rep_3', field: 'email', keyId: 'k3' }),
    }),
    payoutCalculated({ org_id, id: 'payout_4', rep_id: 'rep_3', net_amount: '15.0000000', line_items: lines }),
    payoutRecorded({ org_id, id: 'payout_5', rep_id: 'rep_3', period_id: 'period_2', net_amount: '-0.10' }),
  ]
  const { prefix } = await startProjection(scope, [...records, ...more])
  const api = await startApi(scope, prefix, { settings: { SEAL_KEYS_DIR: seals.directory } })
  /** The data of the API itself. */
  const ask = async <Data = readonly Fields[]>(path: string, key = keys.whole): Promise<Data> => {
    const answer = await fetchInTime(api, path, key)
    expect([path, answer.status]).toEqual([path, 200])
    return JSON.parse(await answer.text()).data
  }
  const agents = new Map<string, Promise<Agent>>()
  const agentOf = (key: string): Promise<Agent> => {
    const agent = agents.get(key) ?? startAgent(scope, { API: api.url, KEY: key })
    agents.set(key, agent)
    return agent
  }
  return { api, ask, agentOf, agent: await agentOf(keys.whole) }
}
let started: ReturnType<typeof setUp> | undefined
const shared = () => (started ??= setUp())

const withoutLines = ({ line_items, ...payout }: Fields) => ({
  ...payout,
  line_count: (line_items as unknown[]).length,
})

/** Reads all pages of a tool. */
const walk = async (agent: Agent, tool: string, given: Fields): Promise<Fields[]> => {
  const all: Fields[] = []
  for (let cursor: string | null | undefined; ; ) {
    const page = await agent.read<Page>(tool, { ...given, ...(cursor && { starting_after: cursor }) })
    all.push(...page.data)
    if (!page.has_more) return all
    cursor = page.next_cursor
  }
}

describe('an agent', () => {
  test.each(['legacy', 'auto'] as const)(
    'finds the same tools in the protocol %s, and all of them only read',
    async mode => {
      const { api } = await shared()
      const { client } = await startAgent(scope, { API: api.url, KEY: keys.whole }, mode)
      const { tools } = await client.listTools()
      expect(tools.map(({ name }) => name)).toEqual([
        ...['list_payouts', 'get_payout', 'explain_payout', 'payout_history', 'get_totals', 'list_changes'],
        ...['list_reps', 'list_periods', 'list_payroll_records', 'describe_access'],
      ])
      for (const { name, annotations, inputSchema, outputSchema, description } of tools) {
        const only = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
        expect([name, annotations]).toEqual([name, only])
        expect([name, inputSchema.type, outputSchema?.type, description !== '']).toEqual([
          name,
          'object',
          'object',
          true,
        ])
      }
      const answer = await client.callTool({ name: 'list_payouts', arguments: { ids: ['payout_3'] } })
      expect(answer.structuredContent).toMatchObject({ data: [{ net_amount: LARGE }] })
    },
  )

  test('reads each record with the amounts of the API, character by character', async () => {
    const { agent, ask } = await shared()
    expect(await walk(agent, 'list_payouts', { limit: 1 })).toEqual((await ask('/payouts')).map(withoutLines))
    for (const [tool, path] of [
      ['list_reps', '/reps'],
      ['list_periods', '/periods'],
      ['list_payroll_records', '/payroll_files'],
    ] as const)
      expect(await walk(agent, tool, { limit: 2 }), tool).toEqual(await ask(path))

    const statement = await ask<Fields>('/statements/payout_1')
    const { line_items, calculation_trace, calculation_trace_recorded, ...payout } = statement
    const explained = await agent.read<Record<string, Page>>('explain_payout', { id: 'payout_1' })
    expect(explained.payout).toEqual({ ...payout, line_count: 2 })
    expect(explained.lines?.data).toEqual(line_items)
    expect(explained.steps?.data).toEqual(
      (calculation_trace as Fields[]).map(step => ({ ...step, inputs_left_out: 0 })),
    )
    expect(calculation_trace_recorded).toBe(true)
    expect((await agent.read<Record<string, Page>>('get_payout', { id: 'payout_1' })).lines?.data).toEqual(line_items)

    const history = await ask('/payouts/payout_1/history')
    const steps = history.map(({ difference, ...step }) => ({
      ...withoutLines(step),
      difference: difference && { ...(difference as Fields), line_items_left_out: 0 },
    }))
    expect(await walk(agent, 'payout_history', { payout_id: 'payout_2', limit: 1 })).toEqual(steps)
    expect(await walk(agent, 'payout_history', { rep_id: 'rep_1', period_id: 'period_1' })).toEqual(steps)
    expect(JSON.stringify(steps)).toContain('"1234567.5000"')
  })

  test('reads the totals of the API, row by row, of a rep, and as of a change and an instant', async () => {
    const { agent, ask } = await shared()
    type Totals = { last_change_id: string; totals: Fields[]; has_more: boolean; next_cursor: string | null }
    const whole = await ask<Totals>('/totals')
    expect(whole.totals.map(({ owed_amount }) => owed_amount)).toContain(LARGE.replace('99.01', '98.91'))
    const { has_more, next_cursor, ...read } = await agent.read<Totals>('get_totals')
    expect([read, has_more, next_cursor]).toEqual([whole, false, null])
    const first = await agent.read<Totals>('get_totals', { limit: 1 })
    expect([first.totals, first.has_more]).toEqual([whole.totals.slice(0, 1), true])
    const second = { starting_after: first.next_cursor, as_of: first.last_change_id }
    expect((await agent.read<Totals>('get_totals', second)).totals).toEqual(whole.totals.slice(1))

    const ofDeal = await agent.read<{ line_totals: Fields[] }>('get_totals', { deal_id: 'deal_17' })
    expect(ofDeal).toMatchObject(await ask<Fields>('/totals?deal_id=deal_17'))
    expect(ofDeal.line_totals).toMatchObject([{ category: 'earned', amount: '1300010.35' }])

    for (const asked of [{ rep_id: 'rep_1' }, { as_of: 'payout_1' }, { as_of: '2020-01-01T00:00:00Z' }]) {
      const query = new URLSearchParams(asked as Record<string, string>)
      expect((await agent.read<Totals>('get_totals', asked)).totals).toEqual(
        (await ask<Totals>(`/totals?${query}`)).totals,
      )
    }
    const before = await agent.read<Page>('list_payouts', { as_of: 'payout_1' })
    expect(before.data.map(({ id }) => id)).toEqual(['payout_1'])
  })

  test('is told the steps of a calculation in words, and that a recorded payout has none', async () => {
    const { agent } = await shared()
    const { text } = await agent.call('explain_payout', { id: 'payout_1' })
    expect(text.split('\n')).toEqual([
      'payout_1 of rep_1 for period_1: EUR 1234567.5000 owed, of a period that earned EUR 1234567.5000.',
      'It was replaced by payout_2: this amount is not owed any more.',
      'Its 2 lines add up to the amount owed:',
      '- earned EUR 1300000.0000: "Deal 17", deal_17',
      '- recovered EUR -65432.5: "Advance"',
      expect.stringMatching(/^It was calculated at \S+ in 2 steps:$/),
      '1. "Commission" → 1300000.00004, by "flat-rate" version "1" from {"base":"13000000","rate":"0.1"}',
      '2. "Rounding" → 1300000, by "half-even" version "3" from {"base":"1000.00","rate":"0.10"}',
    ])
    const recorded = await agent.call('explain_payout', { id: 'payout_3' })
    expect(recorded.text).toMatch(/It was recorded at \S+, and nothing was calculated here: there are no steps\./)
    expect(recorded.structured).toMatchObject({ calculation_trace_recorded: false, steps: { data: [], count: 0 } })
  })

  test('reads a long payout part by part, and in a search by deal the lines of this deal', async () => {
    const { agent, ask } = await shared()
    type Parts = { lines: { data: Fields[]; count: number; has_more: boolean; next: number | null } }
    const all: Fields[] = []
    let answers = 0
    for (let next: number | null = 1; next !== null; answers++) {
      const read: Parts = await agent.read('get_payout', { id: 'payout_4', lines_from: next, limit: 40 })
      all.push(...read.lines.data)
      expect([read.lines.count, read.lines.has_more]).toEqual([MANY, read.lines.next !== null])
      next = read.lines.next
    }
    expect([all, answers]).toEqual([(await ask<Fields>('/payouts/payout_4')).line_items, 4])
    const { data } = await agent.read<Page>('list_payouts', { deal_id: 'deal_149' })
    expect(data).toMatchObject([{ id: 'payout_4', line_count: MANY, lines_of_deal: [{ amount: '0.10' }] }])
  })

  test('learns what changed since a change, a sequence and an instant', async () => {
    const { agent, ask } = await shared()
    const all = await ask('/changes')
    const idsOf = (changes: readonly Fields[]) => changes.map(({ id }) => id)
    const read = async (given: Fields) => idsOf((await agent.read<Page>('list_changes', given)).data)
    expect(idsOf(await walk(agent, 'list_changes', { limit: 3 }))).toEqual(idsOf(all))
    const at = all.findIndex(({ id }) => id === 'payout_2')
    const later = idsOf(all.slice(at + 1))
    expect(later.length).toBeGreaterThan(0)
    expect(await read({ starting_after: 'payout_2' })).toEqual(later)
    expect(await read({ after_sequence: all[at]?.sequence })).toEqual(later)
    expect(await read({ since: '2020-01-01T00:00:00Z' })).toEqual(idsOf(all))
    const { data } = await agent.read<Page>('list_changes', { starting_after: 'payout_1', rep_id: 'rep_1' })
    const replaced = data.find(({ id }) => id === 'payout_2') as { record: Fields } & Fields
    expect(replaced).toMatchObject({ supersedes_id: 'payout_1', record: { net_amount: '1300010.25' } })
    const ofRep = await agent.call('payout_history', { payout_id: 'payout_1', rep_id: 'rep_2' })
    expect(ofRep).toMatchObject({ isError: true, text: expect.stringContaining('expected either `payout_id`') })
    const both = await agent.call('list_changes', { since: '2020-01-01T00:00:00Z', after_sequence: 1 })
    expect(both).toMatchObject({ isError: true, text: expect.stringContaining('after_sequence and since') })
  })

  test('sees that a text was erased or is unreadable, and that it is not merely empty', async () => {
    const { agent } = await shared()
    const { data } = await agent.read<Page>('list_reps')
    expect(data.map(({ id, name, erased, unreadable }) => [id, name, erased, unreadable])).toEqual([
      ['rep_1', 'Canary Ada', undefined, undefined],
      ['rep_2', '', true, undefined],
      ['rep_3', '', undefined, true],
    ])
  })
})

describe('never', () => {
  test('a record of another organization is more than unknown', async () => {
    const { agent, agentOf } = await shared()
    for (const [tool, id] of [
      ['get_payout', 'payout_9'],
      ['explain_payout', 'payout_9'],
      ['get_payout', 'payout_none'],
    ] as const) {
      const { isError, text } = await agent.call(tool, { id })
      expect([isError, text.replace(/request \S+$/, '')]).toEqual([
        true,
        expect.stringContaining('No record has this id'),
      ])
    }
    expect((await agent.read<Page>('list_payouts', { ids: ['payout_9'] })).data).toEqual([])
    expect((await agent.read<Page>('list_payouts', { rep_id: 'rep_9' })).data).toEqual([])
    const other = await (await agentOf(keys.other)).read<Page>('list_payouts')
    expect(other.data.map(({ id }) => id)).toEqual(['payout_9'])
  })

  test('a key reads more than its permissions: the answer names the one that is missing', async () => {
    const { agent, agentOf } = await shared()
    const narrow = await agentOf(keys.payoutsOnly)
    expect((await narrow.read<Page>('list_payouts')).data).toHaveLength(4)
    for (const [tool, given, permission] of [
      ['explain_payout', { id: 'payout_1' }, 'statements:read'],
      ['get_totals', {}, 'totals:read'],
      ['list_reps', {}, 'reps:read'],
      ['list_periods', {}, 'periods:read'],
      ['list_payroll_records', {}, 'payroll:read'],
      ['list_changes', {}, 'changes:read'],
    ] as const) {
      const { isError, text, structured } = await narrow.call(tool, given)
      expect([isError, structured]).toEqual([true, undefined])
      expect(text).toContain(`This API key lacks the permission ${permission}. Ask whoever operates the API`)
    }
    type Access = { permissions: { permission: string; allowed: boolean }[] }
    const allowed = async (of: Agent) =>
      (await of.read<Access>('describe_access')).permissions.flatMap(one => (one.allowed ? [one.permission] : []))
    expect(await allowed(narrow)).toEqual(['payouts:read'])
    expect(await allowed(agent)).toHaveLength(7)
  })

  test('the key is in an answer or a message', async () => {
    const { api, agent, agentOf } = await shared()
    const unknown = `ck_${'0'.repeat(40)}`
    const stranger = await agentOf(unknown)
    const { isError, text } = await stranger.call('list_reps')
    expect([isError, text]).toEqual([true, expect.stringContaining('does not accept the key of this server')])
    for (const tool of ['describe_access', 'get_totals']) expect((await stranger.call(tool)).isError).toBe(true)
    expect(stranger.answered() + stranger.said()).not.toContain(unknown)
    expect(agent.answered() + agent.said()).not.toContain(keys.whole)
    expect(agent.said()).toBe('')

    for (const settings of [{ API: api.url, KEY: 'ck_ secret' }, { API: `${api.url}?key=ck_secret`, KEY: '' }, {}]) {
      const { ended, said, lines } = startByHand(scope, settings)
      expect([await ended, lines]).toEqual([1, []])
      expect(said()).toMatch(/^(?:API|KEY): expected /m)
      expect(said()).not.toContain('secret')
    }
  })

  test('something else than the protocol is on standard output, and the process stays when its input ends', async () => {
    const { api } = await shared()
    const byHand = startByHand(scope, { API: api.url, KEY: keys.whole })
    const clientInfo = { name: 'by hand', version: '0' }
    byHand.send({
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
    })
    byHand.send({ method: 'notifications/initialized' })
    byHand.send({ id: 2, method: 'tools/call', params: { name: 'list_payouts', arguments: { ids: ['payout_1'] } } })
    byHand.send({ id: 3, method: 'tools/call', params: { name: 'get_payout', arguments: { id: 7 } } })
    byHand.send({ id: 4, method: 'tools/call', params: { name: 'no_such_tool', arguments: {} } })
    await expect.poll(() => byHand.lines.length).toBe(4)
    byHand.endInput()
    expect(await byHand.ended).toBe(0)
    const answers = byHand.lines.map(answer => JSON.parse(answer))
    expect(answers.map(({ jsonrpc, id }) => [jsonrpc, id]).toSorted()).toEqual([1, 2, 3, 4].map(id => ['2.0', id]))
    expect(byHand.lines.join('\n')).toContain('"net_amount":"1234567.5000"')
    expect(answers.find(({ id }) => id === 3)).toMatchObject({ result: { isError: true } })
    expect(byHand.said()).toBe('')
  })

  test('an answer that has not changed is sent twice: the calls share one client', async () => {
    const tags: unknown[] = []
    const body = JSON.stringify({ data: [{ id: 'rep_1', name: 'Ada' }], has_more: false, next_cursor: 'rep_1' })
    const api = createServer(({ headers }, response) => {
      tags.push(headers['if-none-match'])
      const isKnown = headers['if-none-match'] === '"1"'
      response.writeHead(isKnown ? 304 : 200, { ETag: '"1"', 'Content-Type': 'application/json' })
      response.end(isKnown ? undefined : body)
    }).listen(0, '127.0.0.1')
    await once(api, 'listening')
    scope.onTestFinished(async () => void api.close())
    const agent = await startAgent(scope, {
      API: `http://127.0.0.1:${(api.address() as AddressInfo).port}`,
      KEY: keys.whole,
    })
    const texts = [(await agent.call('list_reps')).text, (await agent.call('list_reps')).text]
    expect(tags).toEqual([undefined, '"1"'])
    expect(texts[1]).toBe(texts[0])
  })

  test('a request that waits for the API keeps a process whose input has ended', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    scope.onTestFinished(async () => void silent.close())
    const asked = once(silent, 'request')
    const { port } = silent.address() as AddressInfo
    const byHand = startByHand(scope, { API: `http://127.0.0.1:${port}`, KEY: keys.whole })
    byHand.send({ id: 1, method: 'tools/call', params: { name: 'list_reps', arguments: {} } })
    await asked
    const began = performance.now()
    byHand.endInput()
    expect(await byHand.ended).toBe(0)
    expect(performance.now() - began).toBeLessThan(20_000)
  })
})
