import { expect, test } from 'vitest'
import { RULES_VERSION } from '../../../core/ledger/rules/rules.ts'
import type { SandboxBody } from '../../../schemas/stored/sandboxes.ts'
import { assertMadeWith, describeUntil, sandboxIn, sandboxLabel } from '../../../tools/generations/sandboxes.ts'

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
