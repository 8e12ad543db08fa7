import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lastUses } from '../../../tools/evidence/audit-lines.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'commission-audit-'))
})
afterAll(() => rm(folder, { recursive: true }))

const written = async (name: string, lines: readonly (object | string)[]): Promise<string> => {
  const file = join(folder, name)
  await writeFile(file, lines.map(line => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''))
  return file
}
const at = (day: number) => `2026-03-0${day}T08:30:00.123Z`
const use = (key_id: string, day: number, more: object = {}) => ({
  audit: true,
  time: at(day),
  org_id: 'org_1',
  key_id,
  count: 0,
  ...more,
})

test('the last use of each key is the latest line of all files, also of an answer without records', async () => {
  const files = [
    await written('one.ndjson', [use('key_1', 5), use('key_1', 2), use('key_2', 3), { level: 'info', time: at(9) }]),
    await written('two.ndjson', [use('key_1', 4), use('key_2', 6, { status: 304 }), '{"audit":true,"time":"2026-0']),
  ]
  expect([...(await lastUses(files, 'org_1'))]).toEqual([
    ['key_1', at(5)],
    ['key_2', at(6)],
  ])
})

test('a key of the same id in another organization, and a try from outside its networks, are no use', async () => {
  const file = await written('other.ndjson', [
    use('key_1', 7, { org_id: 'org_2' }),
    use('key_1', 8, { refused_for: 'address' }),
    use('key_1', 1),
  ])
  expect([...(await lastUses([file], 'org_1'))]).toEqual([['key_1', at(1)]])
})

test('a file without a line of the audit log is refused, and named', async () => {
  const file = await written('log.ndjson', [{ level: 'info' }, 'text'])
  await expect(lastUses([file], 'org_1')).rejects.toThrow(`${file}: expected lines of the audit log`)
})
