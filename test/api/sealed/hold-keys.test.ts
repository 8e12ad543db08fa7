import { expect, test } from 'vitest'
import { holdKeys } from '../../../api/sealed/hold-keys.ts'
import { readSealKey } from '../../../api/sealed/key-directory.ts'
import { createKeys } from '../../support/seal.ts'

test('a key is trusted for less than its time, and is in memory no longer', async t => {
  const keys = createKeys(t, ['k'])
  let time = 0
  const timers: { at: number; run: () => void }[] = []
  const later = (milliseconds: number, run: () => void) => {
    timers.push({ at: time + milliseconds, run })
    return () => undefined
  }
  const read = holdKeys(
    id => readSealKey(keys.directory, id),
    () => time,
    later,
  )
  expect(await read('k')).toMatchObject({ state: 'here' })
  keys.putReceipt('k')
  time = 1_999
  expect(await read('k')).toMatchObject({ state: 'here' })
  time = 2_000
  expect(await read('k')).toEqual({ state: 'destroyed' })
  // The sweeps end when nothing is held.
  for (let sweeps = 0; timers.length > 0; sweeps++) {
    const next = timers.shift()
    time = next?.at ?? time
    next?.run()
    expect(sweeps).toBeLessThan(4)
  }
})

test('no more keys are held than the limit', async t => {
  const keys = createKeys(t, [])
  const read = holdKeys(
    id => readSealKey(keys.directory, id),
    () => 0,
    () => () => undefined,
  )
  const first = read('0')
  for (let id = 1; id <= 10_000; id++) void read(String(id))
  expect(read('10000')).toBe(read('10000'))
  expect(read('0')).not.toBe(first)
})
