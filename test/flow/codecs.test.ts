/** Batches in every form of compression, published to a real Kafka, and batches that are larger than the bound. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parkedId } from '../../schemas/stored/documents.ts'
import { registerCodecs } from '../support/codecs.ts'
import { GZIP, NONE, read, refused, ZSTD } from '../support/compressed.ts'
import { newId, type Outgoing, repRecorded } from '../support/events.ts'
import { partitionOf } from '../support/model-record.ts'
import { type Projector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { publishBatch } from '../support/publish-batch.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { allStored, indexNamed } from '../support/stored.ts'
import type { Topics } from '../support/topics.ts'

const file = fileScope()
const MiB = 1024 * 1024
let topics: Topics
let prefix: string
let projector: Projector

const namesOf = async (): Promise<readonly string[]> => {
  const reps = await allStored(indexNamed(prefix, 'reps'))
  return reps.map(({ source: { org_id, body } }) => `${org_id} ${(body as { id?: string }).id}`)
}

beforeAll(async () => {
  ;({ topics, prefix, projector } = await startProjection(file, [], { partitions: 6 }))
})
afterAll(registerCodecs)

/** Two events: the second one is longer than the part of it that the first half of a batch has. */
const twoReps = (org_id: string): Outgoing[] => [
  repRecorded({ org_id, id: 'rep_1', name: 'ä'.repeat(300) }),
  repRecorded({ org_id, id: 'rep_2', name: 'ö'.repeat(300) }),
]

test('every form that the Java client reads is read', async () => {
  const expected: string[] = []
  for (const [name, { codec, compress }] of Object.entries(read)) {
    if (codec === NONE) continue
    const org_id = newId('org')
    await publishBatch(topics, twoReps(org_id), codec, compress).catch((error: unknown) => {
      throw new Error(`${name}: ${error}`)
    })
    expected.push(`${org_id} rep_1`, `${org_id} rep_2`)
  }
  await untilCaughtUp(projector)
  const found = await namesOf()
  expect(expected.filter(one => !found.includes(one))).toEqual([])
})

test('forms that the Java client refuses are refused by the broker', async () => {
  const stored: string[] = []
  for (const [name, { codec, compress }] of Object.entries(refused)) {
    if (codec === 5) continue
    await publishBatch(topics, twoReps(newId('org')), codec, compress).then(
      () => stored.push(name),
      () => undefined,
    )
  }
  expect(stored).toEqual([])
})

describe('a batch above the bound', () => {
  test.each([
    ['zstd', ZSTD, 40],
    ['gzip', GZIP, 600],
  ] as const)('is parked in whole, and the next batch is read: %s', async (_, codec, kilobytesMax) => {
    const org_id = newId('org')
    const partition = partitionOf(org_id, topics.partitions)
    const bytes = read[codec === ZSTD ? 'zstd' : 'gzip']
    if (bytes === undefined) throw new Error('no such form')
    const zeros = { ...repRecorded({ org_id }), value: '\0'.repeat(10 * MiB) }
    let size = 0
    const first = await publishBatch(topics, Array<Outgoing>(52).fill(zeros), codec, plain => {
      const compressed = bytes.compress(plain)
      size = compressed.length
      return compressed
    })
    expect(size).toBeLessThan(kilobytesMax * 1024)
    await publishBatch(topics, twoReps(org_id), ZSTD, read.zstd?.compress ?? (plain => plain))
    await untilCaughtUp(projector)
    const parked = await allStored(indexNamed(prefix, 'parked'))
    const found = parked.filter(({ source }) => source.partition === partition && source.code === 'batch_undecodable')
    // The partition may have the batch of the other form, too, before this one.
    const offsets = found.map(({ source }) => Number(source.offset)).filter(offset => offset >= first)
    expect(offsets.sort((a, b) => a - b)).toEqual(Array.from({ length: 52 }, (_, index) => first + index))
    const [begin] = found.filter(({ id }) => id === parkedId(topics.events, partition, first))
    expect(begin?.source.org_id).toBeUndefined()
    const { value } = (begin?.source.body ?? {}) as { readonly value?: string }
    expect(Buffer.from(value ?? '', 'base64')).toHaveLength(size)
    expect(await namesOf()).toEqual(expect.arrayContaining([`${org_id} rep_1`, `${org_id} rep_2`]))
    const line = new RegExp(`"first":${first},"last":${first + 51},"codec":${codec},"reason":"too_large"`)
    await eventually(() => expect(projector.log()).toMatch(line))
  })
})
