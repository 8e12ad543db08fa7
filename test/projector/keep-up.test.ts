/** Which failures end the process, and which end only one stream. The test makes streams fail. */
import { describe, expect, test } from 'vitest'
import type { StreamOptions } from '../../core/projection/stream/stream.ts'
import { StopError } from '../../core/runtime/failures.ts'
import { createKeepUp } from '../../projector/keep-up.ts'
import { SPARE_PROVEN_MS, SPARE_RETRY_MS } from '../../projector/limits.ts'
import { everythingRuns } from './held.ts'

const setUp = () => {
  const story: string[] = []
  const failures: unknown[] = []
  const logged: Record<string, unknown>[] = []
  const fails = new Map<string, (error: unknown) => void>()
  /** The errors that the next start of a generation throws. */
  const refuses = new Map<string, Error>()
  let time = 0
  /** The live generation in the control index now, between two reads of it. */
  const control = { live: (): string | undefined => undefined }
  const log = (details: object) => void logged.push({ ...details })
  const keepUp = createKeepUp({
    start: async ({ identity: { generation } }, fail) => {
      story.push(`start ${generation}`)
      const refused = refuses.get(generation)
      if (refused) throw refused
      fails.set(generation, fail)
      await everythingRuns()
      return {
        status: () => [],
        stop: async () => void story.push(`stop ${generation}`),
        abandon: async () => void story.push(`abandon ${generation}`),
      }
    },
    fail: error => failures.push(error),
    readLiveGeneration: async () => control.live(),
    health: { forget: generation => story.push(`forget ${generation}`) },
    log: { info: () => undefined, error: log },
    elapsed: () => time,
    signal: new AbortController().signal,
  })
  const sources = [{ stream: 'events', topic: 't', partitions: 3 } as const]
  const optionsOf = (generation: string) => ({ identity: { generation } }) as StreamOptions
  const follow = async (live: string, names: readonly string[], broken: Record<string, StopError> = {}) => {
    const streams = ['api-keys', ...names].map(optionsOf)
    await keepUp.run({ live, streams, sources, broken: new Map(Object.entries(broken)) })
    return story.splice(0)
  }
  const fail = async (generation: string, error: unknown) => {
    fails.get(generation)?.(error)
    await everythingRuns()
    return story.splice(0)
  }
  const wait = (milliseconds: number) => {
    time += milliseconds
  }
  return { keepUp, sources, story, failures, logged, refuses, fails, follow, fail, wait, control }
}
const missing = new StopError('index_missing', 'commission-g2-reps', { status: 404 })

test('the live generation and the API keys start before the spare generations, in any order', async () => {
  const { follow } = setUp()
  expect(await follow('g3', ['g1', 'g2', 'g3'])).toEqual(['start api-keys', 'start g3', 'start g1', 'start g2'])
  expect(await follow('g3', ['g1', 'g2', 'g3'])).toEqual([])
  expect(await follow('g3', ['g2', 'g3'])).toEqual(['stop g1', 'forget g1'])
})

test.each(['g1', 'api-keys'])('a failure of %s ends the process and is not handled here', async name => {
  const { keepUp, failures, follow, fail } = setUp()
  await follow('g1', ['g1', 'g2'])
  expect(await fail(name, missing)).toEqual([])
  expect(failures).toEqual([missing])
  expect(keepUp.failed()).toEqual([])
})

test('a generation replaced since the last look fails as a spare one; if nobody can tell, it counts as live', async () => {
  const { failures, follow, fail, control } = setUp()
  await follow('g1', ['g1', 'g2'])
  control.live = () => {
    throw missing
  }
  expect(await fail('g1', missing)).toEqual([])
  control.live = () => 'g1'
  expect(await fail('g1', missing)).toEqual([])
  expect(failures).toEqual([missing, missing])
  control.live = () => 'g2'
  expect(await fail('g1', missing)).toEqual(['abandon g1', 'forget g1'])
  expect(failures).toHaveLength(2)
  await fail('g2', missing)
  expect(failures).toHaveLength(3)
})

describe('a failure of a spare generation', () => {
  test('ends only its own stream, and is reported by its code', async () => {
    const { keepUp, failures, logged, follow, fail } = setUp()
    await follow('g1', ['g1', 'g2'])
    expect(await fail('g2', missing)).toEqual(['abandon g2', 'forget g2'])
    await fail('g2', missing)
    expect(failures).toEqual([])
    expect(keepUp.failed()).toEqual([{ generation: 'g2', code: 'index_missing' }])
    expect(keepUp.options().map(({ identity }) => identity.generation)).toEqual(['api-keys', 'g1'])
    expect(keepUp.streams()).toHaveLength(2)
    expect(logged).toEqual([{ generation: 'g2', code: 'index_missing', status: 404 }])
  })

  test('takes no topic away: records of the topic still have receipts, of the live generation', async () => {
    const { keepUp, sources, follow, fail } = setUp()
    expect(keepUp.sources()).toEqual([])
    await follow('g1', ['g2'])
    await fail('g2', missing)
    expect(keepUp.sources()).toEqual(sources)
    await follow('g1', [], { g2: missing })
    expect(keepUp.sources()).toEqual(sources)
  })

  test('is not retried at every look, but after SPARE_RETRY_MS', async () => {
    const { keepUp, follow, fail, wait } = setUp()
    await follow('g1', ['g1', 'g2'])
    await fail('g2', new TypeError('quotes a document'))
    expect(keepUp.failed()).toEqual([{ generation: 'g2', code: 'defect' }])
    wait(SPARE_RETRY_MS - 1)
    expect(await follow('g1', ['g1', 'g2'])).toEqual([])
    wait(1)
    expect(keepUp.stopped()).toEqual(keepUp.failed())
    expect(await follow('g1', ['g1', 'g2'])).toEqual(['start g2'])
    expect(keepUp.stopped()).toEqual([])
    expect(keepUp.options().map(({ identity }) => identity.generation)).toEqual(['api-keys', 'g1', 'g2'])
  })

  test('is reported until the generation has run again for SPARE_PROVEN_MS, however often it returns meanwhile', async () => {
    const { keepUp, follow, fail, wait } = setUp()
    await follow('g1', ['g1', 'g2'])
    await fail('g2', missing)
    const reported = [{ generation: 'g2', code: 'index_missing' }]
    for (let times = 0; times < 3; times++) {
      wait(SPARE_RETRY_MS)
      expect(await follow('g1', ['g1', 'g2'])).toEqual(['start g2'])
      expect(keepUp.failed()).toEqual(reported)
      wait(40_000)
      expect(await follow('g1', ['g1', 'g2'])).toEqual([])
      expect(keepUp.failed()).toEqual(reported)
      await fail('g2', missing)
    }
    wait(SPARE_RETRY_MS)
    await follow('g1', ['g1', 'g2'])
    wait(SPARE_PROVEN_MS - 1)
    await follow('g1', ['g1', 'g2'])
    expect(keepUp.failed()).toEqual(reported)
    wait(1)
    await follow('g1', ['g1', 'g2'])
    expect(keepUp.failed()).toEqual([])
  })

  test('is over at once when the generation is made live while it runs again', async () => {
    const { keepUp, follow, fail, wait } = setUp()
    await follow('g1', ['g1', 'g2'])
    await fail('g2', missing)
    wait(SPARE_RETRY_MS)
    await follow('g1', ['g1', 'g2'])
    await follow('g2', ['g1', 'g2'])
    expect(keepUp.failed()).toEqual([])
  })

  test('that cannot be opened is logged once, and the generation starts as soon as it can be opened', async () => {
    const { keepUp, logged, follow, fail } = setUp()
    await follow('g1', ['g1', 'g2'])
    await fail('g2', new StopError('write_refused', 'commission-g2-reps'))
    for (let look = 0; look < 3; look++) expect(await follow('g1', ['g1'], { g2: missing })).toEqual([])
    expect(logged.map(({ code }) => code)).toEqual(['write_refused', 'index_missing'])
    expect(keepUp.failed()).toEqual([{ generation: 'g2', code: 'index_missing' }])
    expect(await follow('g1', ['g1', 'g2'])).toEqual(['start g2'])
  })

  test('whose running stream cannot be opened any more stops that stream', async () => {
    const { follow } = setUp()
    await follow('g1', ['g1', 'g2'])
    expect(await follow('g1', ['g1'], { g2: missing })).toEqual(['stop g2', 'forget g2'])
  })

  test('during its start also ends it, whether the start throws or reports the failure', async () => {
    const { keepUp, failures, refuses, fails, story, follow } = setUp()
    refuses.set('g2', missing)
    expect(await follow('g1', ['g1', 'g2'])).toEqual(['start api-keys', 'start g1', 'start g2', 'forget g2'])
    refuses.clear()
    const starting = follow('g3', ['g1', 'g2', 'g3'])
    while (!fails.has('g3')) await everythingRuns()
    await starting
    const told = follow('g3', ['g1', 'g3', 'g4'])
    while (!fails.has('g4')) await Promise.resolve()
    fails.get('g4')?.(missing)
    expect((await told).concat(story)).toEqual(['start g4', 'abandon g4', 'forget g4'])
    expect(failures).toEqual([])
    expect(keepUp.failed().map(({ generation }) => generation)).toEqual(['g4'])
  })

  test('is retried at once when the generation is made live, and then ends the process', async () => {
    const { keepUp, failures, follow, fail } = setUp()
    await follow('g1', ['g1', 'g2'])
    await fail('g2', missing)
    expect(await follow('g2', ['g1', 'g2'])).toEqual(['start g2'])
    expect(keepUp.failed()).toEqual([])
    await fail('g2', missing)
    expect(failures).toEqual([missing])
    await fail('g1', missing)
    expect(failures).toHaveLength(1)
  })

  test('is forgotten once the generation is dropped', async () => {
    const { keepUp, follow, fail } = setUp()
    await follow('g1', ['g1', 'g2'])
    await fail('g2', missing)
    await follow('g1', ['g1'])
    expect(keepUp.failed()).toEqual([])
  })
})

test('a late report of an abandoned stream does not count against its generation, which is now live', async () => {
  const { keepUp, failures, fails, follow, fail } = setUp()
  await follow('g1', ['g1', 'g2'])
  const late = fails.get('g2')
  await fail('g2', missing)
  await follow('g2', ['g1', 'g2'])
  late?.(missing)
  await everythingRuns()
  expect(failures).toEqual([])
  expect(keepUp.failed()).toEqual([])
})

test('a failed start of the live generation ends the process', async () => {
  const { refuses, follow } = setUp()
  refuses.set('g1', missing)
  await expect(follow('g1', ['g1', 'g2'])).rejects.toBe(missing)
})
