/** A restore that is refused or stopped. Kafka is a double. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { createSigningKey, textOfVerifierKey } from '../../../core/runtime/index.ts'
import { archivedStreams, readManifest, writeManifest } from '../../../tools/archive/manifest.ts'
import { type RestoreSteps, restore } from '../../../tools/archive/restore.ts'
import { ArchiveDamaged } from '../../../tools/archive/segment.ts'
import { signingTarget } from '../../../tools/archive/sign-target.ts'
import { type ArchiveTarget, directoryTarget } from '../../../tools/archive/target.ts'
import { CommandError, exitCodes, Stopped } from '../../../tools/failures.ts'
import type { Scope } from '../../support/scope.ts'
import { adminOfRecord, archiveRecord, clusterOfRecord } from './memory-cluster.ts'

/** An archive of one installation, with a record of each topic. */
const archiveOf = async (t: Scope, value = 'a'): Promise<ArchiveTarget> => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-restore-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const target = directoryTarget(directory)
  for (const [stream, topic] of [
    ['events', 'commission'],
    ['api-keys', 'keys'],
  ] as const) {
    await archiveRecord(target, { stream, cluster_id: 'production', topic }, 1, value)
  }
  return target
}

const restoring = (target: ArchiveTarget, kafka: object, steps: Partial<RestoreSteps>, keys?: readonly string[]) =>
  restore({ from: 'archive', keys, maxRate: Number.POSITIVE_INFINITY, json: false }, {
    out: () => undefined,
    say: () => undefined,
    elapsed: () => 0,
    now: () => 0,
    sleep: async () => undefined,
    signal: new AbortController().signal,
    kafka: kafka as Kafka,
    topics: { events: 'commission', 'api-keys': 'keys' },
    openTarget: async () => target,
    keysDirectory: () => undefined,
    draw: undefined,
    ...steps,
  } as RestoreSteps)

/** Restores an archive. `asked`: which topics are opened, and what the double has no answer for. */
const restored = (target: ArchiveTarget, keys?: readonly string[]) => {
  const asked: string[] = []
  const admin = new Proxy(
    { connect: async () => undefined, disconnect: async () => undefined },
    {
      get: (known, name, self) => {
        // An await asks for `then`.
        if (name !== 'then' && !Reflect.has(known, name)) asked.push(String(name))
        return Reflect.get(known, name, self)
      },
    },
  )
  const openCluster = async (topic: string) => {
    asked.push(topic)
    throw new Error('no cluster')
  }
  return { run: restoring(target, { admin: () => admin }, { openCluster }, keys), asked }
}

test('events of one installation with the API keys of another are refused before anything is asked of Kafka', async t => {
  const target = await archiveOf(t)
  const whole = restored(target)
  await expect(whole.run).rejects.not.toBeInstanceOf(ArchiveDamaged)
  expect(whole.asked).not.toEqual([])

  const keys = await readManifest(target, 'api-keys')
  if (keys === undefined) throw new Error('no manifest')
  await writeManifest(target, { ...keys, cluster_id: 'staging' })
  const { run, asked } = restored(target)
  await expect(run).rejects.toThrow('not of one installation: cluster: events has production, api-keys has staging')
  expect(asked).toEqual([])
})

test('an archive that was forged beside its note, or lacks the signature of --key, is refused before anything is asked of Kafka', async t => {
  const target = await archiveOf(t)
  const key = createSigningKey('auditor.example/a')
  const signing = signingTarget(target, key)
  for (const stream of archivedStreams) {
    const manifest = await readManifest(target, stream)
    if (manifest !== undefined) await writeManifest(signing, manifest)
  }
  const keys = [textOfVerifierKey(key.verifier)]
  const whole = restored(target, keys)
  await expect(whole.run).rejects.not.toBeInstanceOf(ArchiveDamaged)
  expect(whole.asked).not.toEqual([])

  const note = await target.read('events/manifest.note')
  const another = await archiveOf(t, 'forged')
  for (const name of ['0/00000000000000000000.zst', 'manifest.json']) {
    const bytes = await another.read(`events/${name}`)
    if (bytes !== undefined) await target.replace(`events/${name}`, bytes)
  }
  expect(await target.read('events/manifest.note')).toEqual(note)
  const forged = restored(target)
  await expect(forged.run).rejects.toThrow('events/manifest.note does not name this segment')
  const unsigned = restored(another, keys)
  await expect(unsigned.run).rejects.toThrow('manifest.json is not signed')
  expect([...forged.asked, ...unsigned.asked]).toEqual([])
})

type OnRead = (stopping: AbortController, path: string) => ReturnType<ArchiveTarget['read']> | undefined

/** Restores into topics that have a record. `onRead`: what a read of the archive brings while they are compared. */
const comparing = async (t: Scope, value: string, onRead: OnRead) => {
  const target = await archiveOf(t)
  const stopping = new AbortController()
  const said: string[] = []
  const read: ArchiveTarget['read'] = async path => {
    const other = said.includes('comparing what is in the topics') ? onRead(stopping, path) : undefined
    return other ?? target.read(path)
  }
  const run = restoring(
    { ...target, read },
    { admin: adminOfRecord },
    {
      ...{ say: line => void said.push(line), signal: stopping.signal },
      openCluster: async () => clusterOfRecord(value),
    },
  )
  const ended = await run.catch((error: Error) => error.message)
  return { ended, said }
}

test('topics are to be deleted only if they differ from the archive, not if the archive cannot be read or a signal comes', async t => {
  expect((await comparing(t, 'b', () => undefined)).ended).toMatch(
    /^partition 0 of \w+ differs from the archive at offset 0: delete and create the topics first\. Nothing is changed$/,
  )
  const unread = await comparing(t, 'a', () => {
    throw new CommandError('s3 does not answer')
  })
  expect(unread.ended).toBe('s3 does not answer')
  const stopped = await comparing(t, 'a', stopping => {
    stopping.abort(new Stopped())
    throw stopping.signal.reason
  })
  expect(stopped.ended).toBe(exitCodes.failed)
  expect(stopped.said.slice(-2)).toEqual(['comparing what is in the topics', 'stopped; the same command continues'])
})

test('a segment that was replaced after it was verified is not restored, although the topics have its records', async t => {
  const another = await archiveOf(t, 'b')
  const { ended } = await comparing(t, 'b', (_, path) => another.read(path))
  expect(ended).toMatch(/\/0\/0+\.zst: it was replaced after it was verified$/)
})
