/** Calls of an agent that take too long, that it cancels, and that fail for no reason outside this server. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client as AgentClient, InMemoryTransport } from '@modelcontextprotocol/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createAgentServer } from '../../../client/mcp/src/server.ts'
import { type Client, createClient } from '../../../client/src/index.ts'

/** An agent that is connected to the server. */
const agentOf = async (client: Client, callMs?: number) => {
  const onDefect = vi.fn()
  const server = createAgentServer(client, 'ck_secret', { onDefect, ...(callMs !== undefined && { callMs }) })
  const agent = new AgentClient({ name: 'test', version: '0' })
  const [ofAgent, ofServer] = InMemoryTransport.createLinkedPair()
  await server.connect(ofServer)
  await agent.connect(ofAgent)
  onTestFinished(() => agent.close())
  const call = async (signal?: AbortSignal): Promise<readonly [isError: boolean, text: string]> => {
    const called = await agent.callTool({ name: 'list_reps', arguments: {} }, { ...(signal && { signal }) })
    const [first] = called.content as { readonly text: string }[]
    return [called.isError === true, first?.text ?? '']
  }
  return { agent, call, onDefect }
}

/** An API that takes requests and answers none. `left` counts the requests whose client has gone. */
const startSilentApi = async () => {
  const seen = { asked: 0, left: 0 }
  const api = createServer((request, response) => {
    seen.asked++
    response.on('close', () => void seen.left++)
    request.resume()
  }).listen(0, '127.0.0.1')
  await once(api, 'listening')
  onTestFinished(() => {
    api.closeAllConnections()
    api.close()
  })
  const { port } = api.address() as AddressInfo
  return { seen, client: createClient({ baseUrl: `http://127.0.0.1:${port}`, key: 'ck_secret' }) }
}

test('a call that takes too long ends with its request, and the answer says so', async () => {
  const { seen, client } = await startSilentApi()
  const { call, onDefect } = await agentOf(client, 3_000)
  const [isError, text] = await call()
  expect([isError, text]).toEqual([true, expect.stringMatching(/^The API did not answer: .* it took too long\./)])
  await expect.poll(() => seen).toEqual({ asked: 1, left: 1 })
  expect(onDefect).not.toHaveBeenCalled()
})

test('a call that the agent cancels ends its request, and is no defect', async () => {
  const { seen, client } = await startSilentApi()
  const { call, onDefect } = await agentOf(client, 600_000)
  const cancelled = new AbortController()
  const calling = call(cancelled.signal).catch((error: unknown) => String(error))
  await expect.poll(() => seen.asked).toBe(1)
  cancelled.abort('no longer wanted')
  expect(await calling).toContain('no longer wanted')
  // Before the request would end for its own time.
  await expect.poll(() => seen, { timeout: 30_000 }).toEqual({ asked: 1, left: 1 })
  expect(onDefect).not.toHaveBeenCalled()
})

test('an unknown argument is named, with those that the tool takes', async () => {
  const { agent } = await agentOf(createClient({ baseUrl: 'http://127.0.0.1', key: 'ck_secret' }))
  const messageOf = async (name: string, given: Record<string, unknown>) =>
    JSON.stringify((await agent.callTool({ name, arguments: given })).content)
  expect(await messageOf('list_periods', { repid: 'rep_1' })).toContain(
    'expected ids, as_of, limit, starting_after, got \\"repid\\"',
  )
  expect(await messageOf('describe_access', { key: 'ck' })).toContain('expected no argument, got')
  expect(await messageOf('list_periods', { limit: 0 })).toContain('limit must be >= 1')
})

test('an argument that is null is refused: without it, a tool would answer for the whole organization', async () => {
  const { seen, client } = await startSilentApi()
  const { agent } = await agentOf(client)
  const { tools } = await agent.listTools()
  const given = tools.flatMap(({ name, inputSchema: { properties = {} } }) =>
    Object.keys(properties).map(argument => ({ name, argument })),
  )
  expect(given).toContainEqual({ name: 'list_payouts', argument: 'deal_id' })
  for (const { name, argument } of given) {
    const { isError, content } = await agent.callTool({ name, arguments: { [argument]: null } })
    expect({ isError, text: JSON.stringify(content) }).toEqual({
      isError: true,
      text: expect.stringContaining(argument),
    })
  }
  expect(seen.asked).toBe(0)
})

test('a defect of this server is told once, and the agent reads nothing of its message', async () => {
  const defect = new TypeError('rep "Ada" is undefined')
  const broken = { ...createClient({ baseUrl: 'http://127.0.0.1', key: 'ck_secret' }) }
  broken.until = () => ({
    ...broken,
    reps: () => {
      throw defect
    },
  })
  const { call, onDefect } = await agentOf(broken)
  expect(await call()).toEqual([true, expect.stringMatching(/^An internal defect of this server/)])
  expect(onDefect.mock.calls).toEqual([[defect]])
})

const oneRecord: readonly (readonly [string, Record<string, unknown>])[] = [
  ['get_payout', { id: 'payout_1' }],
  ['explain_payout', { id: 'payout_1' }],
  ['payout_history', { payout_id: 'payout_1' }],
]
const noRecord: typeof oneRecord = [
  ['payout_history', { rep_id: 'rep_1', period_id: 'period_1' }],
  ...['list_payouts', 'list_reps', 'list_periods', 'list_payroll_records', 'list_changes', 'get_totals'].map(
    name => [name, {}] as const,
  ),
  ['describe_access', {}],
]
const addressIsWrong = /^Nothing is there \(status 404\): the address in API is wrong, .* check that API ends with/

/** An agent of an API that answers each request so. */
const agentOfAnswer = async (answer: (path: string) => Response) => {
  const fetch = async ({ url }: Request) => answer(new URL(url).pathname)
  const { agent } = await agentOf(createClient({ baseUrl: 'http://127.0.0.1', key: 'ck_secret', fetch }))
  return async (name: string, given: Record<string, unknown>): Promise<string> => {
    const { content } = await agent.callTool({ name, arguments: given })
    return (content as { readonly text: string }[])[0]?.text ?? ''
  }
}
const refusing = (status: number, code: string) => Response.json({ error: { code, message: 'No.' } }, { status })

test.for([
  ['a proxy that answers 404 without JSON', () => new Response('<html>Not found</html>', { status: 404 })],
  ['a proxy that answers 404 with a code', () => refusing(404, 'no_such_route')],
] as const)('%s is a wrong address, and no missing record', async ([, answer]) => {
  const call = await agentOfAnswer(answer)
  for (const [name, given] of [...oneRecord, ...noRecord]) expect(await call(name, given), name).toMatch(addressIsWrong)
})

test('at an address where the API has nothing, only the questions about one record may be about a missing one', async () => {
  const call = await agentOfAnswer(() => refusing(404, 'not_found'))
  for (const [name, given] of noRecord) expect(await call(name, given), name).toMatch(addressIsWrong)
  for (const [name, given] of oneRecord) {
    expect(await call(name, given), name).toMatch(/No record has this id.* `describe_access` checks the address in API/)
  }
})

test('a change shows its payout as it was then, and does not say that it is a current one', async () => {
  const payoutOf = (id: string, supersedes_id: string | null) => ({
    ...{ id, rep_id: 'rep_1', period_id: 'period_1', net_amount: '1.00', earned_amount: '1.00', currency: 'EUR' },
    ...{ supersedes_id, superseded_by_id: null, calculated_at: null, recorded_at: '2026-01-01T00:00:00.000Z' },
    line_items: [],
  })
  const changeOf = (sequence: number, id: string, supersedes_id: string | null) => ({
    ...{ id, kind: 'payouts', sequence, published_at: '2026-01-01T00:00:00.000Z', supersedes_id, reverses_id: null },
    record: payoutOf(id, supersedes_id),
  })
  const data = [changeOf(1, 'payout_1', null), changeOf(2, 'payout_2', 'payout_1')]
  const call = await agentOfAnswer(() => Response.json({ data, has_more: false, next_cursor: 'payout_2' }))
  const { line_items: _, superseded_by_id: __, ...first } = payoutOf('payout_1', null)
  const changes = JSON.parse(await call('list_changes', {})).data
  expect(changes).toMatchObject([{ supersedes_id: null }, { supersedes_id: 'payout_1' }])
  expect(changes[0].record).toEqual({ ...first, line_count: 0 })
})

test('each tool that selects by an id says how to check one that selects nothing', async () => {
  const { agent } = await agentOf(createClient({ baseUrl: 'http://127.0.0.1', key: 'ck_secret' }))
  const { tools } = await agent.listTools()
  const checks = { rep_id: 'list_reps', period_id: 'list_periods', deal_id: 'list_changes' }
  const selecting = tools.flatMap(({ name, inputSchema }) =>
    Object.entries(checks).flatMap(([argument, check]) => {
      const { description } = Object(inputSchema.properties?.[argument])
      return description === undefined ? [] : [{ name, argument, check, description }]
    }),
  )
  expect(selecting).toHaveLength(13)
  for (const { name, argument, check, description } of selecting)
    expect(description, `${name} ${argument}`).toMatch(
      new RegExp(`An unknown id gives no rows: .*\`${check}\`.* before you say that nothing is owed`),
    )
  expect(tools.find(({ name }) => name === 'get_totals')?.description).toContain(
    'An unknown id gives no rows, not an error',
  )
})

test('a key may read what the API answers, and the records that the API does not know', async () => {
  const call = await agentOfAnswer(path => {
    if (path === '/changes') return Response.json({ data: [], has_more: false, next_cursor: '' })
    return path.startsWith('/statements/') || path === '/totals'
      ? refusing(403, 'forbidden')
      : refusing(404, 'not_found')
  })
  const { permissions } = JSON.parse(await call('describe_access', {}))
  const allowed = permissions.flatMap((one: { permission: string; allowed: boolean }) =>
    one.allowed ? one.permission : [],
  )
  expect(allowed).toEqual(['reps:read', 'periods:read', 'payouts:read', 'payroll:read', 'changes:read'])
})
