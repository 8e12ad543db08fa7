/** Observes a projector while a service is faulty: its readiness, its memory and its progress. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import type { Projector } from './processes.ts'
import { eventually } from './scope.ts'
import type { Topics } from './topics.ts'

export type Readiness = { readonly ready: boolean; readonly reasons: Readonly<Record<string, string>> }

export const readiness = async (projector: Projector): Promise<Readiness> =>
  JSON.parse((await projector.ask('/readyz')).text)

/** Expects the process to be alive and not ready for this time. Returns its maximum memory in MiB. */
export const expectAliveAndNotReady = async (projector: Projector, seconds: number): Promise<number> => {
  const began = performance.now()
  let most = 0
  const looks: Readiness[] = []
  await eventually(
    async () => {
      expect((await projector.ask('/livez')).status).toBe(200)
      looks.push(await readiness(projector))
      most = Math.max(most, await memoryOf(projector.pid))
      expect(performance.now() - began).toBeGreaterThan(seconds * 1_000)
    },
    { within: seconds * 1_000 + 30_000, every: 250 },
  )
  expect(looks.filter(({ ready }) => ready)).toEqual([])
  return most
}

/** Returns the resident memory of a process in MiB. */
export const memoryOf = async (pid: number): Promise<number> => {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)])
  return Math.round(Number(stdout) / 1024)
}

/** Returns the sum of `searchable_to` over the events partitions. */
export const searchableInAll = async (projector: Projector, { events }: Topics): Promise<number> =>
  (await projector.status())
    .filter(({ topic }) => topic === events)
    .reduce((sum, { searchable_to }) => sum + searchable_to, 0)

/** Expects that Kafka has every published record exactly once: the model relies on that. */
export const expectLogHoldsWhatWasPublished = async ({ admin, events, apiKeys, published }: Topics): Promise<void> => {
  const ends = [...(await admin.fetchTopicOffsets(events)), ...(await admin.fetchTopicOffsets(apiKeys))]
  expect(ends.reduce((sum, { high }) => sum + Number(high), 0)).toBe(published().length)
}
