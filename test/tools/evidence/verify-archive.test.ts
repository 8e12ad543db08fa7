/** Signed archives in a directory: who may write into it cannot change it unseen without the key. */
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { LogReader } from '../../../core/log/index.ts'
import { comparesWithLog } from '../../../tools/archive/compare-with-log.ts'
import { parseManifest, readManifest, writeManifest } from '../../../tools/archive/manifest.ts'
import { signingTarget, signStored } from '../../../tools/archive/sign-target.ts'
import { type ArchiveTarget, directoryTarget } from '../../../tools/archive/target.ts'
import { openTopicArchive } from '../../../tools/archive/topic-archive.ts'
import { verifyEvidence } from '../../../tools/evidence/verify.ts'
import { createSigningKey, textOfSigningKey, textOfVerifierKey } from '../../../tools/signing/note.ts'
import type { Scope } from '../../support/scope.ts'
import { anyEntry, entriesFrom } from '../archive/any-entries.ts'

const [key, other] = [createSigningKey('auditor.example/a'), createSigningKey('auditor.example/b')]
const PUBLIC = textOfVerifierKey(key.verifier)
const source = { cluster_id: 'cluster', topic: 'topic' }
const held = async (): Promise<void> => undefined

/** Adds entries up to this number, a segment for each four of them. */
const grow = async (target: ArchiveTarget, count: number, seed = 7): Promise<void> => {
  const entries = entriesFrom(0, fc.sample(anyEntry, { seed, numRuns: count }))
  const topic = await openTopicArchive(target, { stream: 'events', ...source }, 1, held)
  for (let at = topic.positions()[0] ?? 0; at < count; at += 4) {
    topic.add(0, entries.slice(topic.readFrom(0), at + 4), 0)
    await topic.cut(1)
  }
}

const setUp = async (t: Scope) => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-signed-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const target = directoryTarget(directory)
  const signing = signingTarget(target, key)
  await grow(signing, 12)
  await openTopicArchive(signing, { stream: 'api-keys', ...source }, 1, held)
  const file = (name: string) => join(directory, name)
  return { directory, target, signing, file }
}

const verify = async (directory: string, keys: readonly string[] = [PUBLIC], target = directoryTarget(directory)) => {
  const said: string[] = []
  const steps = {
    out: () => undefined,
    say: (line: string) => void said.push(line),
    draw: undefined,
    elapsed: () => 0,
    sleep: async () => undefined,
    signal: new AbortController().signal,
    openTarget: async () => target,
  }
  const code = await verifyEvidence({ address: directory, keys, json: false }, steps)
  return { code, said: said.join('\n') }
}

/** Signs what a run finds, whose log has the entries of a seed. @returns what it said */
const signAll = async (target: ArchiveTarget, by = key, seed = 7): Promise<readonly string[]> => {
  const entries = entriesFrom(0, fc.sample(anyEntry, { seed, numRuns: 40 }))
  const read = async (_: number, from: number) => ({ entries: entries.slice(from, from + 3), end: entries.length })
  const readerOf = (): LogReader => ({ topic: 'topic', read })
  const waits = { throttle: held, sleep: held, signal: new AbortController().signal }
  const said: string[] = []
  const manifests = [await readManifest(target, 'events'), await readManifest(target, 'api-keys')]
  await signStored(
    target,
    by,
    manifests.filter(one => one !== undefined),
    { compare: comparesWithLog({ readerOf, ...waits }), say: line => said.push(line) },
  )
  return said
}

/** Changes one byte in the middle of a file. */
const flip = async (file: string): Promise<void> => {
  const bytes = await readFile(file)
  const at = bytes.length >> 1
  bytes[at] = (bytes[at] ?? 0) ^ 1
  await writeFile(file, bytes)
}
const SEGMENTS = [0, 4, 8].map(from => `events/0/${String(from).padStart(20, '0')}.zst`)

test('an archive that is signed while it grows is whole, with the public key only', async t => {
  const { directory } = await setUp(t)
  expect(await verify(directory)).toEqual({ code: 0, said: expect.stringContaining('signed by auditor.example/a+') })
})

test.each([
  ...SEGMENTS,
  'events/manifest.json',
  'events/manifest.note',
  'api-keys/manifest.json',
  'api-keys/manifest.note',
])('one changed byte, and the loss, of %s is named', async name => {
  const scope = { onTestFinished: (done: () => unknown) => void cleanUps.push(done) } as unknown as Scope
  const cleanUps: (() => unknown)[] = []
  for (const change of [flip, rm]) {
    const { directory, file } = await setUp(scope)
    await change(file(name))
    const { code, said } = await verify(directory)
    const folder = name.slice(0, name.lastIndexOf('/'))
    expect(code, said).toBe(3)
    expect(said).toContain(change === flip && name.endsWith('.zst') ? `${directory}/${name}` : `${directory}/${folder}`)
  }
  for (const done of cleanUps) await done()
})

test('two segments that were exchanged are found, and the first is named', async t => {
  const { directory, file } = await setUp(t)
  const [first = '', second = ''] = SEGMENTS.map(file)
  await rename(first, `${first}.x`)
  await rename(second, first)
  await rename(`${first}.x`, second)
  expect(await verify(directory)).toEqual({ code: 3, said: expect.stringContaining(first) })
})

test('an archive that somebody without the key made anew as a whole, with right digests, is not the signed one', async t => {
  const { directory, file } = await setUp(t)
  const forged = await setUp(t)
  await rm(file('events'), { recursive: true })
  const { target } = forged
  // A shorter log, signed by nobody, beside the old signature, or with the key of the forger.
  const cut = await mkdtemp(join(tmpdir(), 'commission-signed-'))
  t.onTestFinished(() => rm(cut, { recursive: true, force: true }))
  await grow(directoryTarget(cut), 8)
  await rename(join(cut, 'events'), file('events'))
  expect(await verify(directory)).toEqual({ code: 3, said: expect.stringContaining('is not signed') })
  const note = await target.read('events/manifest.note')
  await writeFile(file('events/manifest.note'), note ?? '')
  expect((await verify(directory)).code).toBe(3)
  await signAll(signingTarget(directoryTarget(directory), other), other)
  expect(await verify(directory)).toEqual({ code: 3, said: expect.stringContaining('by none of the given keys') })
  const both = [PUBLIC, textOfVerifierKey(other.verifier)]
  expect((await verify(directory, both)).code).toBe(0)
})

test('a manifest that was edited, with a digest that fits again, is named', async t => {
  const { directory, target, file } = await setUp(t)
  const manifest = parseManifest(await readFile(file('events/manifest.json')), 'events', 'x')
  await writeManifest(target, { ...manifest, topic: 'another' })
  expect(await verify(directory)).toEqual({ code: 3, said: expect.stringContaining(file('events/manifest.json')) })
})

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

test('a message about a secret key in place of the public one does not have the key', async t => {
  const { directory } = await setUp(t)
  const refused = await verify(directory, [textOfSigningKey(key)]).catch(String)
  expect(refused).toMatch(/--key: expected NAME\+ID\+KEY, .*; got a secret key$/)
})

test('a check beside a run that goes on ends well: each note has a whole manifest', async t => {
  const { directory, target, signing } = await setUp(t)
  let lists = 0
  const growing: ArchiveTarget = {
    ...target,
    list: async folder => {
      if (lists++ === 0) await grow(signing, 20)
      return target.list(folder)
    },
  }
  expect(await verify(directory, [PUBLIC], growing)).toMatchObject({ code: 0 })
})

test('an archive without a signature is whole without --key, which says what that means, and is not with --key', async t => {
  const { directory, file } = await setUp(t)
  for (const stream of ['events', 'api-keys']) await rm(file(`${stream}/manifest.note`))
  expect(await verify(directory, [])).toEqual({ code: 0, said: expect.stringContaining('manifest.json is not signed') })
  expect((await verify(directory)).code).toBe(3)
})

test('files that no archive has are named', async t => {
  const { directory, file } = await setUp(t)
  await writeFile(file('events/0/more.zst'), '')
  await writeFile(file('api-keys/9'), '')
  const { code, said } = await verify(directory)
  expect(code).toBe(3)
  expect(said).toContain(file('events/0/more.zst'))
  expect(said).toContain(file('api-keys/9'))
})

test('a directory without a manifest is refused, and a text that is no public key too', async t => {
  const { directory, file } = await setUp(t)
  await expect(verify(file('events/0'))).rejects.toThrow('has no manifest')
  await expect(verify(directory, [PUBLIC.replace('auditor', 'auditoR')])).rejects.toThrow('with the id of this key')
})
