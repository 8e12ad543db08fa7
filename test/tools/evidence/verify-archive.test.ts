/** Signed archives in a directory: who may write into it cannot change it unseen without the key. */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { textOfSigningKey, textOfVerifierKey } from '../../../core/runtime/index.ts'
import {
  type ArchiveManifest,
  encodeManifest,
  parseManifest,
  readManifest,
  writeManifest,
} from '../../../tools/archive/manifest.ts'
import { signingTarget } from '../../../tools/archive/sign-target.ts'
import { type ArchiveTarget, directoryTarget } from '../../../tools/archive/target.ts'
import type { Scope } from '../../support/scope.ts'

import { flip, grow, key, other, PUBLIC, SEGMENTS, setUp, signAll, source, told, verify } from './signed-archive.ts'

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

test('of a damaged archive it is still said who signed it, and what that covers', async t => {
  const { directory, file } = await setUp(t)
  await flip(file(SEGMENTS[1] ?? ''))
  await writeFile(file('more.txt'), '')
  const { code, said } = await verify(directory)
  expect([code, told.at(-1)?.signed.map(({ signers }) => signers.length)]).toEqual([3, [1, 1]])
  expect(told.at(-1)?.differences).toEqual([
    expect.stringContaining(`${file(SEGMENTS[1] ?? '')}: its bytes were changed`),
    expect.stringContaining(file('more.txt')),
  ])
  expect(said).toContain('is signed by auditor.example/a')
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

test('files and folders that no archive has are named, at its top too, and a folder once', async t => {
  const { directory, file } = await setUp(t)
  await mkdir(file('other'))
  await mkdir(file('api-keys/9'))
  for (const name of ['events/0/more.zst', 'other/a', 'more.txt']) await writeFile(file(name), '')
  await symlink('/etc/hosts', file('hosts'))
  expect((await verify(directory)).code).toBe(3)
  expect(told.at(-1)?.differences).toEqual([
    `${file('api-keys/9')}: no archive has such a folder`,
    `${file('events/0/more.zst')}: no archive has such a file`,
    `${file('hosts')}: no archive has such a symbolic link`,
    `${file('more.txt')}: no archive has such a file`,
    `${file('other')}: no archive has such a folder`,
  ])
})

test('what a killed run has not finished is said, and is no difference; a segment that no manifest names is one', async t => {
  const { directory, target, file } = await setUp(t)
  const next = `events/0/${'12'.padStart(20, '0')}.zst`
  const lock = `archive.${randomUUID()}.lock`
  const left = ['events/manifest.json.new', 'api-keys/manifest.note.new', `${next}.new`, lock]
  for (const name of left) await writeFile(file(name), '')
  const { code, said } = await verify(directory)
  expect([code, told.at(-1)?.differences]).toEqual([0, []])
  expect(told.at(-1)?.unfinished.sort()).toEqual(
    left.map(name => `${file(name)}: of a run that goes on, or was killed. It is not part of what is signed`).sort(),
  )
  expect(said).toContain(file(lock))
  const killed = { ...target, replace: () => Promise.reject(new Error('killed')) }
  await expect(grow(killed, 16)).rejects.toThrow('killed')
  expect((await verify(directory)).code).toBe(3)
  expect(told.at(-1)?.differences).toEqual([expect.stringContaining(`${file(next)}: the manifest does not name it`)])
})

test.each(['events', 'events/0', SEGMENTS[1] ?? '', 'events/manifest.json', 'api-keys/manifest.note'])(
  'a symbolic link in place of %s is a difference, and is not followed',
  async name => {
    const cleanUps: (() => unknown)[] = []
    const scope = { onTestFinished: (done: () => unknown) => void cleanUps.push(done) } as unknown as Scope
    const { directory, file } = await setUp(scope)
    const outside = await setUp(scope)
    await rename(file(name), outside.file('moved'))
    await symlink(outside.file('moved'), file(name))
    const expected = name === 'events' || name === 'events/0' ? 'folder' : 'file'
    expect(await verify(directory)).toMatchObject({ code: 3 })
    const what = `it is a symbolic link: expected a ${expected}, which is here itself`
    expect(told.at(-1)?.differences).toEqual([`${file(name)}: ${what}`])
    for (const done of cleanUps) await done()
  },
)

test('a folder in place of a file, and a file in place of a folder, are named', async t => {
  const { directory, file } = await setUp(t)
  await rm(file('events/manifest.note'))
  await mkdir(file('events/manifest.note'))
  await rm(file(SEGMENTS[0] ?? ''))
  await mkdir(file(SEGMENTS[0] ?? ''))
  await writeFile(file('api-keys/0'), '')
  expect((await verify(directory)).code).toBe(3)
  expect(told.at(-1)?.differences).toEqual([
    `${file('api-keys/0')}: it is a file: expected a folder, which is here itself`,
    `${file(SEGMENTS[0] ?? '')}: it is a folder: expected a file, which is here itself`,
    `${file('events/manifest.note')}: it is a folder: expected a file, which is here itself`,
  ])
  await expect(verify(file('api-keys/manifest.json'))).rejects.toThrow('expected a folder: it is a file')
  await expect(verify(file('nothing'))).rejects.toThrow('expected a folder: there is none')
})

test('each stream says which key signed it, which log that is, and which offsets it has', async t => {
  const { directory, target } = await setUp(t)
  const manifest = await readManifest(target, 'api-keys')
  if (manifest) await signingTarget(target, other).replace('api-keys/manifest.json', encodeManifest(manifest))
  const both = [PUBLIC, textOfVerifierKey(other.verifier)]
  const { code, said } = await verify(directory, both)
  const partitions = [{ partition: 0, from: 0, end: 12 }]
  expect([code, told.at(-1)?.signed]).toEqual([
    0,
    [
      {
        manifest: 'events/manifest.json',
        signers: [`auditor.example/a+${key.id}`],
        covers: { stream: 'events', ...source, topic_id: null, partitions, records: expect.any(Number) },
      },
      {
        manifest: 'api-keys/manifest.json',
        signers: [`auditor.example/b+${other.id}`],
        covers: expect.objectContaining({ stream: 'api-keys', records: 0 }),
      },
    ],
  ])
  expect(said).toContain('covers topic topic, id unknown, of the cluster cluster: ')
  expect(said).toContain('at the offsets of partition 0: 0 to before 12')
})

test('streams of two installations are not one archive, although the key signed both', async t => {
  const { directory, target, signing } = await setUp(t)
  const [events, keys] = [await readManifest(signing, 'events'), await readManifest(signing, 'api-keys')]
  if (events === undefined || keys === undefined) throw new Error('no archive')
  const ours = { ...events, topic_id: 'id', beside: { topic: keys.topic } }
  const theirs = { ...keys, beside: { topic: events.topic, topic_id: 'id' } }
  const differenceOf = async (...manifests: ArchiveManifest[]) => {
    for (const manifest of manifests) await writeManifest(signing, manifest)
    await verify(directory)
    return told.at(-1)?.differences.join()
  }
  expect(await differenceOf(ours, theirs)).toBe('')
  const other = 'its streams are not of one installation: '
  expect(await differenceOf(ours, { ...keys, cluster_id: 'another' })).toContain(
    `${other}cluster: events has cluster, `,
  )
  expect(await differenceOf({ ...ours, beside: { topic: 'another' } }, theirs)).toContain(`${other}topic beside it: `)
  expect(await differenceOf(events, { ...theirs, beside: { topic: 'another' } })).toContain(`${other}topic beside it: `)
  expect(await differenceOf({ ...ours, topic_id: 'made anew' }, theirs)).toContain(
    `${other}id of the topic beside it: `,
  )
  // Without the key: the manifests are changed, and what is signed is still of two installations.
  await writeManifest(signing, { ...theirs, cluster_id: 'another' })
  await writeManifest(signing, ours)
  await writeManifest(target, theirs)
  await verify(directory)
  expect(told.at(-1)?.differences.join()).toContain(`${other}cluster: events has cluster, api-keys has another`)
})

test('in the end each note must be signed too: one that came meanwhile is checked like the first one', async t => {
  const { directory, target, file } = await setUp(t)
  let lists = 0
  const attacked: ArchiveTarget = {
    ...target,
    list: async folder => {
      // Without the key: one more segment, with a note of the forger.
      if (lists++ === 0) await grow(signingTarget(target, other), 16)
      return target.list(folder)
    },
  }
  expect(await verify(directory, [PUBLIC], attacked)).toEqual({
    code: 3,
    said: expect.stringContaining(`${file('events/manifest.note')} is signed by auditor.example/b`),
  })
})

test('a directory without a manifest is refused, and a text that is no public key too', async t => {
  const { directory, file } = await setUp(t)
  await expect(verify(file('events/0'))).rejects.toThrow('has no manifest')
  await expect(verify(directory, [PUBLIC.replace('auditor', 'auditoR')])).rejects.toThrow('with the id of this key')
})
