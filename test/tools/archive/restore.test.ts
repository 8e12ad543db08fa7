/** A restore from archives that are refused. Kafka is a double that counts what is asked of it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { readManifest, writeManifest } from '../../../tools/archive/manifest.ts'
import { type RestoreSteps, restore } from '../../../tools/archive/restore.ts'
import { ArchiveDamaged } from '../../../tools/archive/segment.ts'
import { type ArchiveTarget, directoryTarget } from '../../../tools/archive/target.ts'
import { openTopicArchive } from '../../../tools/archive/topic-archive.ts'
import type { Scope } from '../../support/scope.ts'

/** An archive without records of one installation. */
const archiveOf = async (t: Scope): Promise<ArchiveTarget> => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-restore-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const target = directoryTarget(directory)
  for (const [stream, topic] of [
    ['events', 'commission'],
    ['api-keys', 'keys'],
  ] as const) {
    await openTopicArchive(target, { stream, cluster_id: 'production', topic }, 1, async () => undefined)
  }
  return target
}

/** Restores an archive. `asked`: which topics are opened, and what the double has no answer for. */
const restored = (target: ArchiveTarget) => {
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
  const steps = {
    out: () => undefined,
    say: () => undefined,
    elapsed: () => 0,
    now: () => 0,
    sleep: async () => undefined,
    signal: new AbortController().signal,
    kafka: { admin: () => admin } as unknown as Kafka,
    topics: { events: 'commission', 'api-keys': 'keys' },
    openCluster: async (topic: string) => {
      asked.push(topic)
      throw new Error('no cluster')
    },
    openTarget: async () => target,
    keysDirectory: () => undefined,
    draw: undefined,
  } as unknown as RestoreSteps
  const run = restore({ from: 'archive', maxRate: Number.POSITIVE_INFINITY, json: false }, steps)
  return { run, asked }
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
