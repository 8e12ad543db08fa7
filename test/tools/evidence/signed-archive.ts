/** Signed archives of any entries in a directory, for tests: made, grown, signed and checked. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { LogReader } from '../../../core/log/index.ts'
import { createSigningKey, textOfVerifierKey } from '../../../core/runtime/index.ts'
import { comparesWithLog } from '../../../tools/archive/compare-with-log.ts'
import { readManifest } from '../../../tools/archive/manifest.ts'
import { signingTarget, signStored } from '../../../tools/archive/sign-target.ts'
import { type ArchiveTarget, directoryTarget } from '../../../tools/archive/target.ts'
import { openTopicArchive } from '../../../tools/archive/topic-archive.ts'
import { verifyEvidence } from '../../../tools/evidence/verify.ts'
import type { Scope } from '../../support/scope.ts'
import { anyEntry, entriesFrom } from '../archive/any-entries.ts'

export const [key, other] = [createSigningKey('auditor.example/a'), createSigningKey('auditor.example/b')]
export const PUBLIC = textOfVerifierKey(key.verifier)
export const source = { cluster_id: 'cluster', topic: 'topic' }
export const held = async (): Promise<void> => undefined

/** Adds entries up to this number, a segment for each four of them. */
export const grow = async (target: ArchiveTarget, count: number, seed = 7): Promise<void> => {
  const entries = entriesFrom(0, fc.sample(anyEntry, { seed, numRuns: count }))
  const topic = await openTopicArchive(target, { stream: 'events', ...source }, 1, held)
  for (let at = topic.positions()[0] ?? 0; at < count; at += 4) {
    topic.add(0, entries.slice(topic.readFrom(0), at + 4), 0)
    await topic.cut(1)
  }
}

export const setUp = async (t: Scope) => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-signed-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const target = directoryTarget(directory)
  const signing = signingTarget(target, key)
  await grow(signing, 12)
  await openTopicArchive(signing, { stream: 'api-keys', ...source }, 1, held)
  const file = (name: string) => join(directory, name)
  return { directory, target, signing, file }
}

export const verify = async (
  directory: string,
  keys: readonly string[] = [PUBLIC],
  target = directoryTarget(directory),
) => {
  const [said, out]: [string[], string[]] = [[], []]
  const steps = {
    out: (text: string) => void out.push(text),
    say: (line: string) => void said.push(line),
    draw: undefined,
    elapsed: () => 0,
    sleep: async () => undefined,
    signal: new AbortController().signal,
    openTarget: async () => target,
  }
  const code = await verifyEvidence({ address: directory, keys, json: true }, steps)
  told.push(JSON.parse(out.join('')))
  return { code, said: said.join('\n') }
}
type Told = {
  signed: { manifest: string; signers: string[]; covers: object }[]
  unfinished: string[]
  differences: string[]
}
/** The answer of each check, as JSON. */
export const told: Told[] = []

/** Signs what a run finds, whose log has the entries of a seed. @returns what it said */
export const signAll = async (target: ArchiveTarget, by = key, seed = 7): Promise<readonly string[]> => {
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
export const flip = async (file: string): Promise<void> => {
  const bytes = await readFile(file)
  const at = bytes.length >> 1
  bytes[at] = (bytes[at] ?? 0) ^ 1
  await writeFile(file, bytes)
}
export const SEGMENTS = [0, 4, 8].map(from => `events/0/${String(from).padStart(20, '0')}.zst`)
