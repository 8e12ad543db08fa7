import { expect, test } from 'vitest'
import { RULES_VERSION } from '../../../core/ledger/rules/rules.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import { generationId, LIVE_ID, positionId } from '../../../schemas/stored/documents.ts'
import type { SandboxBody } from '../../../schemas/stored/sandboxes.ts'
import { explain } from '../../../tools/analysis/explain.ts'
import { explainDeal } from '../../../tools/analysis/explain-deal.ts'
import type { CommandContext } from '../../../tools/context.ts'
import {
  assertMadeWith,
  assertNotAnew,
  describeMade,
  describeUntil,
  dropSandbox,
  findAny,
  findWhole,
  listSandboxes,
  sandboxIn,
  sandboxLabel,
} from '../../../tools/generations/sandboxes.ts'
import { searchedGenerations } from '../../../tools/subjects/find-subjects.ts'
import { validateFile } from '../../../tools/validate/validate.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'

const made: SandboxBody = {
  org: 'org_1',
  until: { offsets: [[2, 7]] },
  bounds: [0, 0, 7],
  rules: { name: 'capped.ts', sha256: 'a' },
}
const refusal = (wanted: Partial<SandboxBody>, rules_version = RULES_VERSION): string => {
  const source = { topic: 't', cluster_id: 'c', partitions: 3 }
  try {
    assertMadeWith({ generation: 's1', ...source, rules_version, sandbox: made }, { ...made, ...wanted })
    return 'the same'
  } catch (error) {
    return (error as Error).message
  }
}

test('a sandbox is continued only with the same organization, bounds and rules', () => {
  expect(refusal({})).toBe('the same')
  expect(refusal({ org: null })).toContain('made of org_1')
  expect(refusal({ until: null })).toContain('made up to 2:7')
  expect(refusal({ until: { offsets: [[2, 8]] } })).toContain('made up to 2:7')
  expect(refusal({ rules: null })).toContain('made with capped.ts')
  expect(refusal({ rules: { name: 'capped.ts', sha256: 'b' } })).toContain('made with another text of capped.ts')
  expect(refusal({}, RULES_VERSION + 1)).toContain(`made by version ${RULES_VERSION + 1} of the rules`)
})

test('a rules module is identified by its text, not by its path', () => {
  expect(refusal({ rules: { name: 'copy.ts', sha256: 'a' } })).toBe('the same')
})

test('the name tells a sandbox from a generation', () => {
  expect([sandboxIn(sandboxLabel('s1')), sandboxIn('g1')]).toEqual(['s1', undefined])
})

test('the bound of a sandbox is shown as it was requested', () => {
  expect(describeUntil(made)).toBe('2:7')
  expect(describeUntil({ until: { time: '2026-01-01T00:00:00.000Z' }, bounds: [] })).toBe('2026-01-01T00:00:00.000Z')
  expect(describeUntil({ until: null, bounds: [1, 2] })).toBe('the end of the topic then: 1, 2')
})

test('a sandbox and a generation say which rules decided them; a sandbox also what of the log it has', () => {
  const source = { generation: 's1', topic: 't', cluster_id: 'c', partitions: 3, rules_version: 4 }
  expect(describeMade({ ...source, sandbox: made })).toBe(
    'rules version 4 with capped.ts (SHA-256 a); only org_1; up to 2:7',
  )
  const plain = { org: null, until: null, bounds: [1, 2, 3], rules: null }
  expect(describeMade({ ...source, sandbox: plain })).toBe('rules version 4; up to the end of the topic then: 1, 2, 3')
  expect(describeMade(source)).toBe('rules version 4')
})

const org = 'org_1'
const own = partitionOf(org, 2)

/** The live generation g1, g2 that is being built, and a sandbox up to offset 9 of both partitions. */
const world = (reached: readonly number[], sandbox: Partial<SandboxBody> | undefined = {}) => {
  const engine = new MemoryElasticsearch()
  const add = (prefix: string, generation: string, positions: readonly number[], more: object): void => {
    const body = { generation, topic: 'events', cluster_id: 'c', partitions: 2, rules_version: 1, ...more }
    engine.put(`${prefix}-control`, generationId(generation), 1, { kind: 'generation', body })
    for (const [partition, position] of positions.entries()) {
      const found = { position, last: null, at: 1, time: 2, serve_from: 0 }
      engine.put(`${prefix}-control`, positionId(generation, partition), 1, { kind: 'position', body: found })
    }
  }
  add('p', 'g1', [9, 9], {})
  add('p', 'g2', [9, 9], {})
  const options = { org: null, until: null, bounds: [9, 9], rules: null, ...sandbox }
  add('p-sandbox', 's', reached, sandbox === undefined ? {} : { sandbox: options })
  engine.put('p-control', LIVE_ID, 1, { kind: 'live', body: { generation: 'g1', kept: ['g1'], building: 'g2' } })
  const said: string[] = []
  const context = {
    ...{ send: engine.send, prefix: 'p', out: () => undefined, say: (line: string) => void said.push(line) },
    ...{ now: () => 0, elapsed: () => 0, sleep: async () => undefined },
  } as CommandContext
  return { context, said }
}
const found = (text: string, { context }: ReturnType<typeof world>, of?: string) =>
  findWhole(text, context, of).then(
    ({ identity }) => identity.generation,
    (error: Error) => error.message,
  )

test('no command answers from a sandbox before its replay is complete, nor from a generation that is being built', async () => {
  const half = own === 0 ? [5, 9] : [9, 5]
  expect(await found('sandbox:s', world([9, 9]))).toBe('s')
  expect(await found('g1', world([9, 9]))).toBe('g1')
  expect(await found('g2', world([9, 9]), org)).toContain('g2 is not complete yet: npx commission projection rebuild')
  for (const of of [undefined, org]) {
    expect(await found('sandbox:s', world(half), of)).toContain(
      'sandbox:s has 14 records of 18, and is not complete yet',
    )
  }
  // All records of an organization are in one partition.
  expect(await found('sandbox:s', world(half.toReversed()), org)).toBe('s')
  const json = true
  const commands = {
    explain: (context: CommandContext, generation: string) =>
      explain({ org, payout: 'payout_1', generation, json }, context),
    'explain of a deal': (context: CommandContext, generation: string) =>
      explainDeal({ org, deal: 'deal_1', generation, json }, context),
    validate: (context: CommandContext, generation: string) => {
      const options = { file: 'f', type: undefined, partitions: 1, live: false, json, generation }
      const { signal } = new AbortController()
      const open = async function* () {}
      const steps = { ...context, out: () => undefined, draw: undefined, signal, context: () => context, open }
      return validateFile(options, steps)
    },
  }
  for (const run of Object.values(commands)) {
    for (const name of ['sandbox:s', 'g2']) {
      await expect(run(world(half).context, name)).rejects.toThrow('not complete yet')
    }
  }
  const { context, said } = world([9, 9], { org, rules: { name: 'capped.ts', sha256: 'a' } })
  expect(await commands.validate(context, 'sandbox:s')).toBe(0)
  expect(said.join()).toContain(
    `warning: the records follow sandbox:s (rules version 1 with capped.ts (SHA-256 a); only ${org}; up to the end of`,
  )
})

test('a sandbox of one organization is not asked for another one, whose records it never had', async () => {
  expect(await found('sandbox:s', world([9, 9], { org }), org)).toBe('s')
  expect(await found('sandbox:s', world([9, 9], { org }), 'org_2')).toBe(
    'sandbox:s has only org_1, and nothing of org_2',
  )
})

/** An installation `p`, and what is under the prefix of its sandboxes: g1, which is no sandbox. */
const underSandboxPrefix = (documents: Readonly<Record<string, object>>) => {
  const engine = new MemoryElasticsearch()
  const requests: string[] = []
  engine.onRequest = ({ method, path }) => void requests.push(`${method} ${path}`)
  const body = { generation: 'g1', topic: 't', cluster_id: 'c', partitions: 1, rules_version: 1 }
  const position = { position: 9, last: null, at: 1, time: 2, serve_from: 0 }
  engine.put('p-sandbox-control', generationId('g1'), 1, { kind: 'generation', body })
  engine.put('p-sandbox-control', positionId('g1', 0), 1, { kind: 'position', body: position })
  for (const [id, document] of Object.entries(documents)) engine.put('p-sandbox-control', id, 1, { ...document })
  const out: string[] = []
  const context: CommandContext = {
    ...{ send: engine.send, prefix: 'p', out: text => void out.push(String(text)), say: () => undefined },
    ...{ now: () => 0, elapsed: () => 0, sleep: async () => undefined },
  }
  return { context, out, deletions: () => requests.filter(request => request.startsWith('DELETE ')) }
}
const options = { name: 'g1', json: false }
const live = { [LIVE_ID]: { kind: 'live', body: { generation: 'g1' } } }

test('a generation of another installation is no sandbox: it is neither listed, read, searched nor dropped', async () => {
  const { context, out, deletions } = underSandboxPrefix(live)
  const refusal =
    'p-sandbox is the ELASTICSEARCH_INDEX_PREFIX of another installation: p has no sandboxes (docs/settings.md)'
  await expect(dropSandbox(options, context, undefined)).rejects.toThrow(refusal)
  await expect(listSandboxes({ json: false }, context)).rejects.toThrow(refusal)
  await expect(findAny('sandbox:g1', context)).rejects.toThrow(refusal)
  expect((await searchedGenerations(context)).map(({ label }) => label)).toEqual(['api-keys'])
  expect([out, deletions()]).toEqual([[], []])
})

test('the rest of a sandbox is listed, with the command that drops it', async () => {
  const { context, out, deletions } = underSandboxPrefix({})
  await listSandboxes({ json: false }, context)
  expect(out.join('')).toContain('not whole; npx commission projection drop sandbox:g1 removes it')
  await dropSandbox(options, context, undefined)
  expect(deletions()).toContain(`DELETE /p-sandbox-control/_doc/${encodeURIComponent(generationId('g1'))}`)
})

test('a sandbox that was dropped and made anew is another one: its indices have other ids', async () => {
  const { context } = world([9, 9])
  const inSandboxes = { ...context, prefix: 'p-sandbox' }
  const { identity } = await findAny('sandbox:s', context)
  await assertNotAnew(identity, inSandboxes)
  const before = { ...identity, indices: { 'p-sandbox-s-payouts': 'before' } }
  await expect(assertNotAnew(before, inSandboxes)).rejects.toThrow('sandbox:s was made anew meanwhile')
})
