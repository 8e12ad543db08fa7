import { expect, test } from 'vitest'
import { instantText } from '../../../../explorer/src/state/instants.ts'

test('an instant is easier to read, and the id of a change stays as it is', () => {
  expect(instantText('2026-02-01T08:30:00Z')).toBe('2026-02-01 08:30:00 UTC')
  expect(instantText('2026-02-01T08:30:00+01:00')).toBe('2026-02-01 08:30:00 +01:00')
  for (const id of ['payout_qT6AKIwNZ', 'rep_T1.12']) expect(instantText(id)).toBe(id)
})
