/** How a stream is watched: the age of what is published, a Kafka that is away, and errors. */
import { expect, test } from 'vitest'
import { ENDS_INTERVAL_MS, ENDS_LATE_MS, WATCHDOG_INTERVAL_MS } from '../../../../core/projection/limits.ts'
import { type MonitoredStream, monitorSource } from '../../../../core/projection/stream/monitor-source.ts'
import { StopError } from '../../../../core/runtime/failures.ts'
import { createHealth } from '../../../../core/runtime/health.ts'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import type { Stream } from '../../../../schemas/events.ts'
import { Clock } from '../../../projector/clock.ts'

const setUp = (
  publishedUntil: readonly number[],
  error: Error = new Unanswered('elasticsearch', 0),
  stream: Stream = 'events',
) => {
  const clock = new Clock()
  const ages: number[] = []
  const reasons: unknown[] = []
  const failures: unknown[] = []
  const stopping = new AbortController()
  let isAway = false
  const seen: { readonly publishedUntil: number }[] = []
  /** Milliseconds by which another owner moves each published time while the ends are read. */
  const during = { published: 0 }
  const flows = publishedUntil.map((until, partition) => {
    const progress = { publishedTo: 0, publishedUntil: until }
    return [
      partition,
      { progress, sawEnd: () => undefined, sawClocks: (_: unknown, end: (typeof seen)[0]) => void seen.push(end) },
    ] as const
  })
  const watched = {
    stream,
    identity: { topic: 'events' },
    part: 'events',
    assignment: { flows: () => flows, isTrusted: () => true, isReading: true, standing: () => ({}) },
    committer: { offer: async () => undefined },
    watchdog: { check: () => undefined },
    verification: { verify: async () => undefined, pause: () => 10_000, isFresh: () => true },
  } as unknown as MonitoredStream
  const ends = async () => {
    if (isAway) throw error
    for (const [, { progress }] of flows) progress.publishedUntil += during.published
    return publishedUntil.map((_, partition) => ({ partition, start: 0, end: 0 }))
  }
  const context = {
    streamLog: { ends },
    clocks: { read: async () => 0 },
    elapsed: clock.now,
    now: clock.now,
    metrics: { observeAge: (seconds: number) => void ages.push(seconds) },
    retryOptions: { sleep: clock.sleep },
    health: {
      set: (_: string, reason: unknown) => void reasons.push(reason),
      during: (_: string, task: (report: (reason: unknown) => void) => unknown) =>
        task(reason => void reasons.push(reason)),
    },
    fail: (failure: unknown) => void failures.push(failure),
  } as unknown as Parameters<typeof monitorSource>[1]
  const running = async (body: () => Promise<void>) => {
    const ended = monitorSource(watched, context, stopping.signal)
    await body()
    stopping.abort()
    await ended
    expect(failures).toEqual(error instanceof Unanswered ? [] : [error])
  }
  const goesAway = (): void => {
    isAway = true
  }
  return { clock, ages, reasons, seen, during, running, goesAway, context }
}

test('while nothing is published, each look at Kafka observes the age of each partition', async () => {
  const { clock, ages, running } = setUp([1_000, 0, 2_000])
  await clock.move(3_000)
  await running(async () => {
    await clock.move(ENDS_INTERVAL_MS)
    await clock.move(ENDS_INTERVAL_MS)
  })
  const later = ENDS_INTERVAL_MS / 1_000
  // The time of the second partition is not known.
  expect(ages.slice(0, 6)).toEqual([2, 3, 1, 2 + later, 3 + later, 1 + later])
})

test('API keys have no published time: no age of them is observed', async () => {
  const { clock, ages, running } = setUp([0, 1_000], undefined, 'api-keys')
  await running(() => clock.move(ENDS_INTERVAL_MS))
  expect(ages).toEqual([])
})

test('a flow learns the time that was published when the clocks were read, not while the ends were read', async () => {
  const { clock, seen, during, running } = setUp([1_000])
  during.published = 60_000
  await running(() => clock.move(0))
  expect(seen.map(({ publishedUntil }) => publishedUntil)).toEqual([1_000])
})

test('while Kafka does not answer, the age is observed and grows', async () => {
  const { clock, ages, reasons, running, goesAway } = setUp([1_000])
  await clock.move(3_000)
  goesAway()
  await running(async () => {
    await clock.move(60_000)
    await clock.move(0)
  })
  expect(ages.slice(0, 2)).toEqual([2, 62])
  expect(reasons).toContain('does not answer')
})

test('the reason names the partitions that Kafka does not answer for, also after a while', async () => {
  const { clock, reasons, running, goesAway } = setUp(
    [1_000],
    new Unanswered('kafka', 0, 'events 3 (LEADER_NOT_AVAILABLE)'),
  )
  goesAway()
  await running(async () => {
    for (let passed = 0; passed <= 2 * ENDS_LATE_MS; passed += WATCHDOG_INTERVAL_MS) {
      await clock.move(WATCHDOG_INTERVAL_MS)
    }
  })
  expect(new Set(reasons)).toEqual(new Set(['does not answer for events 3 (LEADER_NOT_AVAILABLE)']))
})

test('a stream whose ends are read takes back no reason of another stream', async () => {
  const health = createHealth({ warn: () => undefined, info: () => undefined }, () => 0)
  const [broken, whole] = [setUp([1_000]), setUp([1_000])]
  for (const { context } of [broken, whole]) Object.assign(context, { health })
  broken.goesAway()
  await broken.running(() =>
    whole.running(async () => {
      for (const { clock } of [broken, whole, whole]) await clock.move(ENDS_INTERVAL_MS)
      expect(health.reasons()).toEqual({ kafka: 'does not answer' })
    }),
  )
  expect(health.reasons()).toEqual({})
})

test.each([new StopError('records_deleted', 'the log begins later'), new TypeError('a defect')])(
  'another error than a Kafka that is away ends the stream, and is not taken for one: %s',
  async error => {
    const { clock, reasons, running, goesAway } = setUp([1_000], error)
    goesAway()
    await running(async () => {
      await clock.move(ENDS_INTERVAL_MS)
      await clock.move(0)
    })
    expect(reasons).toEqual([])
  },
)
