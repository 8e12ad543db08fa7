/** `commission validate` foresees what the projector then does with 10,000 generated records. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandSettings, jsonLines, runCommand } from '../support/commands.ts'
import type { Outgoing } from '../support/events.ts'
import { type Projector, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import type { Scope } from '../support/scope.ts'
import { allStored } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { place } from '../support/topics.ts'

const PARTITIONS = 3
const HALF = 5_000
const seed = seedOfRun()
console.log(`seed ${seed}`)

const base64 = (bytes: string | Buffer | null): object | null =>
  bytes === null ? null : { base64: Buffer.from(bytes as string).toString('base64') }

/** A line for each record, with its bytes and its place. */
const linesOf = (records: readonly Outgoing[]): string =>
  records
    .map(record => {
      const { stream, partition, key, headers, value } = place(record, PARTITIONS)
      const pairs = Object.entries(headers).flatMap(([name, values]) =>
        [values].flat().map(one => [name, base64((one ?? null) as Buffer | null)]),
      )
      return JSON.stringify({ stream, partition, key: base64(key), headers: pairs, value: base64(value) })
    })
    .join('\n')

const validated = async (
  t: Scope,
  records: readonly Outgoing[],
  settings: Record<string, string>,
  ...more: string[]
) => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-validate-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'records.ndjson')
  await writeFile(file, linesOf(records))
  const ran = await runCommand(['validate', file, '--partitions', String(PARTITIONS), '--json', ...more], settings)
  expect(ran.code, ran.said).toBe(3)
  return jsonLines(ran).map(({ outcome, code = outcome }) => String(code))
}

const countsOf = async (projector: Projector) => {
  const { text } = await projector.ask('/metrics')
  const sumOf = (outcome: string): number =>
    [...text.matchAll(new RegExp(`^commission_records_total\\{[^}]*outcome="${outcome}"[^}]*\\} (\\d+)`, 'gm'))]
      .map(([, count]) => Number(count))
      .reduce((sum, count) => sum + count, 0)
  return { applied: sumOf('applied'), duplicate: sumOf('duplicate') }
}

test('the outcomes of a file are those of the projector, of a whole log and behind a live projection', async t => {
  const random = createRandom(seed)
  const organizations = organizationsIn(random, [0, 1, 1, 2], PARTITIONS)
  const { topics, prefix, projector } = await startProjection(t, [], { partitions: PARTITIONS })
  const settings = commandSettings(topics, prefix)
  const stream = createStream(random, organizations, PARTITIONS, { reps: 3, periods: 3 })
  const [first, second] = [stream.take(HALF), stream.take(HALF)]

  const ofWhole = await validated(t, [...first, ...second], {})
  const published = [...(await topics.publish(first))]
  await untilCaughtUp(projector)
  const ofSecond = await validated(t, second, settings, '--live')
  published.push(...(await topics.publish(second)))
  await untilCaughtUp(projector)

  const parked = new Map<string, string>()
  for (const index of [`${prefix}-g1-parked`, `${prefix}-api-keys-parked`]) {
    for (const { id, source } of await allStored(index)) parked.set(id, String(source.code))
  }
  const verdicts = published.map(({ stream, partition, offset }) =>
    parked.get(`${topics.name(stream)}:${partition}:${offset}`),
  )
  const codesIn = (outcomes: readonly string[]) =>
    outcomes.map(outcome => (outcome === 'applied' || outcome === 'duplicate' ? undefined : outcome))
  expect(codesIn(ofWhole)).toEqual(verdicts)
  expect(ofWhole.slice(first.length)).toEqual(ofSecond)
  const countOf = (wanted: string): number => ofWhole.filter(outcome => outcome === wanted).length
  expect(await countsOf(projector)).toEqual({ applied: countOf('applied'), duplicate: countOf('duplicate') })
  expect(parked.size).toBeGreaterThan(100)
})
