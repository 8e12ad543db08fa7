/** When a source is verified, in which order, and how long it stays trusted. */
import { expect, test } from 'vitest'
import { VERIFYING_PAUSE_MAX_MS, VERIFYING_TRUSTED_MS } from '../../../../core/projection/limits.ts'
import { createSourceVerifier } from '../../../../core/projection/stream/monitor-source.ts'
import { IDENTIFY_INTERVAL_MS } from '../../../../core/store/limits.ts'
import { Held } from '../../../projector/held.ts'

const setUp = (ends = [4, 2]) => {
  const clock = { time: 1_000 }
  const told: string[] = []
  const verifications = new Held<readonly unknown[], void>()
  const known = [
    { position: 4, last: { offset: 3, sha256: 'a' } },
    { position: 2, last: null },
  ]
  const verifier = createSourceVerifier({
    topic: 't',
    streamLog: {
      identify: async () => void told.push('identify'),
      ends: async () => {
        told.push('ends')
        return ends.map((end, partition) => ({ partition, low: 0, end }))
      },
      verify: (positions, onFurther) => {
        told.push('verify')
        onFurther()
        return verifications.call(positions)
      },
    },
    known: async () => {
      told.push('positions')
      return known
    },
    onFurther: () => told.push('further'),
    elapsed: () => clock.time,
  })
  return { clock, told, verifications, known, ...verifier }
}
/** Lets the steps before the records run. */
const settled = () => new Promise(setImmediate)

test('the identity comes first, then the positions, the ends, and the records of all partitions', async () => {
  const { verify, verifications, told, known } = setUp()
  const [first, second] = [verify(), verify()]
  await settled()
  expect(told).toEqual(['identify', 'positions', 'ends', 'verify', 'further'])
  expect(verifications.at(0).argument).toBe(known)
  await verifications.at(0).letGo()
  await Promise.all([first, second])
  expect(told).toHaveLength(5)
})

test('a partition that ends before its position has lost records, also one without a last record', async () => {
  const { verify, told } = setUp([4, 1])
  await expect(verify()).rejects.toMatchObject({ code: 'records_deleted', where: { partition: 1 } })
  expect(told).not.toContain('verify')
})

test('a run that began before a new connection neither serves later callers nor makes the source trusted', async () => {
  const { verify, verifications, onReconnected, isFresh } = setUp()
  const before = verify()
  await settled()
  onReconnected()
  const after = verify()
  await settled()
  expect(verifications.calls).toHaveLength(2)
  await verifications.at(0).letGo()
  await before
  expect(isFresh()).toBe(false)
  await verifications.at(0).letGo()
  await after
  expect(isFresh()).toBe(true)
})

test('a source stays trusted until the next verification is late, and not over a new connection', async () => {
  const { verify, verifications, onReconnected, isFresh, clock } = setUp()
  const verified = async () => {
    const running = verify()
    await settled()
    await verifications.at(0).letGo()
    await running
  }
  expect(isFresh()).toBe(false)
  await verified()
  clock.time += IDENTIFY_INTERVAL_MS + VERIFYING_TRUSTED_MS - 1
  expect(isFresh()).toBe(true)
  clock.time += 1
  expect(isFresh()).toBe(false)
  await verified()
  onReconnected()
  expect(isFresh()).toBe(false)
})

test.for([
  [5, IDENTIFY_INTERVAL_MS],
  [3_000, 30_000],
  [60_000, VERIFYING_PAUSE_MAX_MS],
] as const)(
  'after a verification of %s ms the next one begins after %s ms: a slow line is left to the records',
  async ([took, pause]) => {
    const { verify, verifications, clock, ...verifier } = setUp()
    const running = verify()
    await settled()
    clock.time += took
    await verifications.at(0).letGo()
    await running
    expect(verifier.pause()).toBe(pause)
  },
)
