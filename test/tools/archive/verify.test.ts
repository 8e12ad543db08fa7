/** Commands that rely on an archive check its signature. The archive is in a directory. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { sourceInArchive } from '../../../tools/analysis/replay-source.ts'
import { encodeManifest, readManifest, writeManifest } from '../../../tools/archive/manifest.ts'
import { signingTarget } from '../../../tools/archive/sign-target.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { verifyTarget } from '../../../tools/archive/verify.ts'
import { exitCodes } from '../../../tools/failures.ts'
import type { Scope } from '../../support/scope.ts'
import { grow, key, other, PUBLIC, setUp } from '../evidence/signed-archive.ts'

const stepsFor = (said: string[]) => ({
  out: () => undefined,
  say: (line: string) => void said.push(line),
  draw: undefined,
  elapsed: () => 0,
  now: () => 0,
  sleep: async () => undefined,
  signal: new AbortController().signal,
  openTarget: async (address: string) => directoryTarget(address),
  keysDirectory: () => undefined,
})

/** How `archive verify` and a replay from the archive end; `said` by `archive verify`. */
const used = async (address: string, keys?: readonly string[]) => {
  const [said, more]: [string[], string[]] = [[], []]
  const options = { address, keys, maxRate: Number.POSITIVE_INFINITY, json: false }
  const verified = await verifyTarget(options, stepsFor(said)).catch((error: Error) => error.message)
  await using stack = new AsyncDisposableStack()
  const open = sourceInArchive(address, stepsFor(more), keys)
  const replayed = await open({ org: undefined, time: undefined }, stack).then(
    ({ ends }) => ends[0]?.end,
    (error: Error) => error.message,
  )
  return { verified, replayed, said: said.join('\n') }
}

/** A signed archive whose events somebody without the key has written anew, with right digests, beside the old note. */
const forgedWith = async (t: Scope, count: number, seed: number) => {
  const { directory, target, file } = await setUp(t)
  const note = await readFile(file('events/manifest.note'))
  await rm(file('events'), { recursive: true })
  await grow(target, count, seed)
  await writeFile(file('events/manifest.note'), note)
  return directory
}

test.each([
  ['as long as the signed one', 12, 8],
  ['longer', 16, 8],
  ['longer, without a segment that ends where the signed one ends', 22, 8],
])('a log that was written anew beside the old note is refused, with and without --key: %s', async (_, count, seed) => {
  const cleanUps: (() => unknown)[] = []
  const scope = { onTestFinished: (done: () => unknown) => void cleanUps.push(done) } as unknown as Scope
  const directory = await forgedWith(scope, count, seed)
  const refused = expect.stringMatching(/events\/0\/0{19}8\.zst: events\/manifest\.note does not name this segment/)
  for (const keys of [undefined, [PUBLIC]]) {
    expect(await used(directory, keys)).toMatchObject({ verified: refused, replayed: refused })
  }
  for (const done of cleanUps) await done()
})

test('a log that was cut off beside the old note is refused, and a manifest of another topic', async t => {
  const refused = expect.stringContaining('events/manifest.json: it does not continue what manifest.note says')
  expect(await used(await forgedWith(t, 8, 7))).toMatchObject({ verified: refused, replayed: refused })
  const { directory, target } = await setUp(t)
  const events = await readManifest(target, 'events')
  if (events === undefined) throw new Error('no archive')
  await writeManifest(target, { ...events, topic: 'another' })
  expect(await used(directory)).toMatchObject({ verified: refused, replayed: refused })
})

test('records that a killed run has not signed yet are used, and their number is said', async t => {
  const { directory, target } = await setUp(t)
  const signed = (await readManifest(target, 'events'))?.partitions[0]?.records ?? 0
  await grow(target, 24)
  const unsigned = ((await readManifest(target, 'events'))?.partitions[0]?.records ?? 0) - signed
  expect(unsigned).toBeGreaterThan(0)
  const { verified, replayed, said } = await used(directory, [PUBLIC])
  expect([verified, replayed]).toEqual([exitCodes.done, 24])
  expect(said).toContain(`events/manifest.json is signed by ${key.name}+${key.id}`)
  expect(said).toContain(`${directory}/events: ${unsigned} records after the signed end are not signed`)
  expect((await used(directory)).said).toContain('which was not checked: give the public key with --key')
})

test('with --key each manifest must be signed by one of the keys; without it an archive needs no signature', async t => {
  const { directory, target, file } = await setUp(t)
  expect(await used(directory, [PUBLIC])).toMatchObject({ verified: exitCodes.done, replayed: 12 })
  const keys = await readManifest(target, 'api-keys')
  if (keys === undefined) throw new Error('no archive')
  await signingTarget(target, other).replace('api-keys/manifest.json', encodeManifest(keys))
  const foreign = expect.stringContaining('api-keys/manifest.note is signed by auditor.example/b')
  expect(await used(directory, [PUBLIC])).toMatchObject({ verified: foreign, replayed: foreign })
  await rm(file('api-keys/manifest.note'))
  const missing = expect.stringContaining('api-keys/manifest.json is not signed')
  expect(await used(directory, [PUBLIC])).toMatchObject({ verified: missing, replayed: missing })
  expect(await used(directory)).toMatchObject({ verified: exitCodes.done, replayed: 12 })
})

test('streams of two installations are refused also if only their signed manifests say so', async t => {
  const { directory, target, signing } = await setUp(t)
  const events = await readManifest(target, 'events')
  if (events === undefined) throw new Error('no archive')
  await writeManifest(signing, { ...events, beside: { topic: 'another' } })
  await writeManifest(target, events)
  const refused = expect.stringContaining('its streams are not of one installation: topic beside it')
  expect(await used(directory, [PUBLIC])).toMatchObject({ verified: refused, replayed: refused })
})
