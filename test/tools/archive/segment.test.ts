/** The bytes of a segment. */

import { zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ArchiveDamaged, encodeEntry, encodeSegment, NO_SEGMENT, openSegment } from '../../../tools/archive/segment.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'
import { anyEntry, contentOf, entriesFrom } from './any-entries.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

const source = { stream: 'events', cluster_id: 'c', topic: 't', partition: 0 } as const
const sealed = (from: number, entries: Parameters<typeof entriesFrom>[1]) => {
  const all = entriesFrom(from, entries)
  const header = { ...source, from, end: from + all.length, previous: NO_SEGMENT }
  return encodeSegment(header, all.map(encodeEntry))
}

test('every record comes back with its offset, time, key, value and headers, byte for byte', async () => {
  const lists = fc.array(anyEntry, { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(lists, fc.nat(2 ** 40), async (entries, from) => {
      const { bytes, sha256 } = await sealed(from, entries)
      const opened = await openSegment(bytes, 'a segment')
      expect(opened.entries.map(contentOf)).toEqual(entriesFrom(from, entries).map(contentOf))
      expect(opened.sha256).toBe(sha256)
      expect(opened.header).toMatchObject({ ...source, from, end: from + entries.length })
    }),
    { seed, numRuns: 200 },
  )
})

test('a segment with any byte changed, or cut off anywhere, is refused by its name', async () => {
  const random = createRandom(seed)
  const [entries = []] = fc.sample(fc.array(anyEntry, { minLength: 5, maxLength: 9 }), { seed, numRuns: 1 })
  const { bytes } = await sealed(7, entries)
  for (let time = 0; time < 200; time++) {
    const changed = Buffer.from(bytes)
    const at = Math.floor(random.next() * bytes.length)
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << (time % 8)), at)
    await expect(openSegment(changed, 'events/0/7')).rejects.toThrow(/^events\/0\/7: /)
    await expect(openSegment(bytes.subarray(0, at), 'events/0/7')).rejects.toThrow(ArchiveDamaged)
  }
})

test('a segment whose entries are not those that its header states is refused, although its digest is right', async () => {
  const [entries = []] = fc.sample(fc.array(anyEntry, { minLength: 3, maxLength: 3 }), { seed, numRuns: 1 })
  const all = entriesFrom(0, entries).map(encodeEntry)
  const header = { ...source, from: 0, end: 3, previous: NO_SEGMENT }
  const refusal = async (parts: Buffer[]) => openSegment((await encodeSegment(header, parts)).bytes, 's')
  await expect(refusal(all.slice(0, 2))).rejects.toThrow('s: expected 3 entries, got 2')
  await expect(refusal([...all.slice(0, 1), ...all.slice(2)])).rejects.toThrow('s: expected offset 1, got 2')
  await expect(refusal([...all, Buffer.alloc(3)])).rejects.toThrow('s: an entry is cut off or malformed')
})

test('zstd alone reads the content of a segment: a line of JSON, then the entries', async () => {
  const { bytes } = await sealed(5, [])
  const content = zstdDecompressSync(bytes.subarray(0, -72)).toString()
  expect(JSON.parse(content)).toMatchObject({ format: 'commission-segment-1', topic: 't', from: 5, end: 5 })
})
