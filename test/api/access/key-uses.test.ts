/** The last use of keys is kept to the day, for a bounded number of keys. */
import { expect, test } from 'vitest'
import { createKeyUses } from '../../../api/access/key-uses.ts'

test('a key has the day of its last use, and keys that were used longest ago are forgotten', () => {
  let time = Date.UTC(2026, 1, 1, 23, 59)
  const { use, list } = createKeyUses(() => time, 2)
  const key = (id: string) => ({ org: 'org_1', orgHash: 'aa', id, permissions: new Set<never>() })
  for (const id of ['key_1', 'key_2', 'key_3']) use(key(id))
  time += 60_000
  use(key('key_2'))
  expect(list()).toEqual([
    { organization_hash: 'aa', key_id: 'key_2', last_used_on: '2026-02-02' },
    { organization_hash: 'aa', key_id: 'key_3', last_used_on: '2026-02-01' },
  ])
})
