import { expect, test } from 'vitest'
import { holdKeys } from '../../../../core/reading/sealed/hold-keys.ts'
import { readSealKey } from '../../../../core/reading/sealed/key-directory.ts'
import { unavailable } from '../../../../core/runtime/refusals.ts'
import { createKeys } from '../../../support/seal.ts'

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

test('a key that is held needs no turn; a turn that is refused reads and holds nothing; a turn ends with its read', async () => {
  const asked: string[] = []
  let turns = 0
  const read = holdKeys(
    async id => {
      asked.push(id)
      return { state: 'here', key: Buffer.alloc(32) }
    },
    () => 0,
    () => () => undefined,
  )
  const refused = async () => {
    throw unavailable('client_gone')
  }
  const turn = async () => {
    turns++
    return () => turns--
  }
  await expect(read('k', refused)).rejects.toMatchObject({ reason: 'client_gone' })
  expect(asked).toEqual([])
  // Both wait for a turn, and the second one finds the key of the first.
  const both = [read('k', turn), read('k', turn)]
  for (const key of both) expect(await key).toMatchObject({ state: 'here' })
  expect(await read('k', refused)).toMatchObject({ state: 'here' })
  expect([asked, turns]).toEqual([['k'], 0])
})
