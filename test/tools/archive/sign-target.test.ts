/** Archives that are signed after they were written: only what the log has, and what continues a signature. */
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { textOfVerifierKey } from '../../../core/runtime/index.ts'
import { parseManifest, readManifest, writeManifest } from '../../../tools/archive/manifest.ts'
import { signingTarget, signStored } from '../../../tools/archive/sign-target.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { openTopicArchive } from '../../../tools/archive/topic-archive.ts'
import { anyEntry, entriesFrom } from '../archive/any-entries.ts'

import { flip, grow, held, key, other, setUp, signAll, source, verify } from '../evidence/signed-archive.ts'

test('a run that was killed between a manifest and its note left a valid note; what came after is named, and the next run signs it', async t => {
  const { directory, target, file } = await setUp(t)
  await grow(target, 16)
  expect(await verify(directory)).toEqual({ code: 3, said: expect.stringContaining('it is not the signed one') })
  await signAll(target)
  expect((await verify(directory)).code).toBe(0)
  const before = await readFile(file('events/manifest.note'))
  await signAll(target)
  expect(await readFile(file('events/manifest.note'))).toEqual(before)
})

test('an archive that somebody made anew beside a signature of the key is not signed by the next run', async t => {
  const { directory, target, file } = await setUp(t)
  const anew = await mkdtemp(join(tmpdir(), 'commission-signed-'))
  t.onTestFinished(() => rm(anew, { recursive: true, force: true }))
  const note = await readFile(file('events/manifest.note'))
  await rm(file('events'), { recursive: true })
  // Longer than the signed one, with other records from the first one on.
  await grow(directoryTarget(anew), 16, 8)
  await rename(join(anew, 'events'), file('events'))
  await writeFile(file('events/manifest.note'), note)
  await expect(signAll(target)).rejects.toThrow('it does not follow what is signed')
  expect((await verify(directory)).code).toBe(3)
})

test('each record that the key has not signed yet is compared with the log before it is signed, not only the last one', async t => {
  const { directory, target, file } = await setUp(t)
  const note = await readFile(file('events/manifest.note'))
  // A run without the key, or somebody: two segments more, with another record in the middle of the first one.
  const entries = entriesFrom(0, fc.sample(anyEntry, { seed: 7, numRuns: 20 }))
  const [changed] = fc.sample(fc.uint8Array({ minLength: 9, maxLength: 9 }), 1)
  const forged = entries.map(entry => (entry.offset === 13 ? { ...entry, value: Buffer.from(changed ?? []) } : entry))
  const topic = await openTopicArchive(target, { stream: 'events', ...source }, 1, held)
  for (const to of [16, 20]) {
    topic.add(0, forged.slice(topic.readFrom(0), to), 0)
    await topic.cut(1)
  }
  await expect(signAll(target)).rejects.toThrow('has another record at offset 13 than the archive. Nothing is signed')
  expect(await readFile(file('events/manifest.note'))).toEqual(note)
  expect((await verify(directory)).code).toBe(3)
})

test('a log that ends before what is archived, and a manifest with another number of records, are not signed', async t => {
  const { target, file } = await setUp(t)
  await grow(target, 44)
  await expect(signAll(target)).rejects.toThrow('ends before offset 40, which is archived')
  const again = await setUp(t)
  await grow(again.target, 16)
  const manifest = parseManifest(await readFile(again.file('events/manifest.json')), 'events', 'x')
  const partitions = manifest.partitions.map(one => ({ ...one, records: one.records + 1 }))
  await writeManifest(again.target, { ...manifest, partitions })
  await expect(signAll(again.target)).rejects.toThrow('events/manifest.json: it does not follow what is signed')
  await rm(file('events'), { recursive: true })
})

test('a key that has signed nothing of an archive signs it after each of its records was compared', async t => {
  const { directory, target } = await setUp(t)
  await expect(signAll(target, other, 8)).rejects.toThrow('has another record at offset')
  expect(await signAll(target, other)).toEqual([expect.stringContaining('12 offsets are not signed by this key')])
  expect((await verify(directory, [textOfVerifierKey(other.verifier)])).code).toBe(0)
})

test('a manifest that was replaced after the run read it is not signed', async t => {
  const { target } = await setUp(t)
  await grow(target, 16)
  const manifest = await readManifest(target, 'events')
  await grow(target, 20)
  const compare = held
  const signing = signStored(target, key, manifest ? [manifest] : [], { compare, say: () => undefined })
  await expect(signing).rejects.toThrow('another run has written it meanwhile')
})

test('a note with a changed text is not replaced by a signature of the key', async t => {
  const { target, file } = await setUp(t)
  await flip(file('events/manifest.note'))
  await expect(signAll(target)).rejects.toThrow('its signature is not of its text')
})

test('nothing is signed before the archive was compared with its log', async t => {
  const { target, file } = await setUp(t)
  const before = await readFile(file('events/manifest.note'))
  await grow(
    signingTarget(target, key, () => false),
    16,
  )
  expect(await readFile(file('events/manifest.note'))).toEqual(before)
})
