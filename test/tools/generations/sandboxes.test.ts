import { expect, test } from 'vitest'
import { RULES_VERSION } from '../../../core/ledger/rules/rules.ts'
import { generationId, LIVE_ID, positionId } from '../../../schemas/stored/documents.ts'
import type { SandboxBody } from '../../../schemas/stored/sandboxes.ts'
import type { CommandContext } from '../../../tools/context.ts'
import {
  assertMadeWith,
  describeUntil,
  dropSandbox,
  findAny,
  listSandboxes,
  sandboxIn,
  sandboxLabel,
} from '../../../tools/generations/sandboxes.ts'
import { searchedGenerations } from '../../../tools/subjects/find-subjects.ts'
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
