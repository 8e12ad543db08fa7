/** Requests that end early, or wait for Elasticsearch, do not stop the times of partitions that stand still. */
import { expect, test } from 'vitest'
import { unavailable } from '../../../../core/runtime/refusals.ts'
import { createPositionReader } from '../../../../core/store/positions/position.ts'
import type { DocumentName } from '../../../../core/store/read/slice-documents.ts'
import { generationText, liveText, multiGetAnswer, positionText } from '../../../api/answers.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const TIMES = 'times:g1'
const timesText = (time: number) =>
  JSON.stringify({ kind: 'times', body: { partitions: { 0: { position: 10, time } } } })

/** A reader whose timers the test runs, and whose reads end when the test says so. */
const setUp = async () => {
  const documents: Record<string, string> = {
    live: liveText('g1'),
    'generation:g1': generationText('g1'),
    'position:g1:0': positionText(10, 1_000),
    [TIMES]: timesText(2_000),
  }
  const timers: (() => void)[] = []
  const asked: string[][] = []
  /** A read waits for this. If it is rejected, the client of the read has left. */
  let gate: Promise<void> = Promise.resolve()
  const multiGet = async (names: readonly DocumentName[]) => {
    asked.push(names.map(({ _id }) => _id))
    const answer = multiGetAnswer(names, documents)
    await gate
    return answer
  }
  const reader = createPositionReader('p', multiGet, (_, run) => {
    timers.push(run)
    return () => undefined
  })
  const read = async () => (await reader.readAt(scopeOf('org_a'), () => [], 'may-be-older')).position.time
  /** Begins a read that ends later. */
  const begin = () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    gate = promise
    const reading = read()
    gate = Promise.resolve()
    return { reading, answer: resolve, leave: () => reject(unavailable('client_gone')) }
  }
  const runTimers = (): void => {
    for (const run of timers.splice(0)) run()
  }
  await read()
  runTimers()
  documents[TIMES] = timesText(3_000)
  return { documents, asked, read, begin, runTimers }
}

test('after a request that ended before its answer, the next one reads the times', async () => {
  const { read, begin } = await setUp()
  const left = begin()
  left.leave()
  await expect(left.reading).rejects.toMatchObject({ reason: 'client_gone' })
  expect(await read()).toBe(3_000)
})

test('while a request waits for the times, another one reads them, too', async () => {
  const { read, begin } = await setUp()
  const left = begin()
  expect(await read()).toBe(3_000)
  left.leave()
  await expect(left.reading).rejects.toMatchObject({ reason: 'client_gone' })
})

test('after an answer, no request reads the times until the interval since the request is over', async () => {
  const { documents, asked, read, begin, runTimers } = await setUp()
  expect(await read()).toBe(3_000)
  await read()
  expect(asked.at(-1)).not.toContain(TIMES)
  runTimers()
  // The answer to this request is older than the interval when it arrives.
  const late = begin()
  runTimers()
  documents[TIMES] = timesText(4_000)
  late.answer()
  expect(await late.reading).toBe(3_000)
  expect(await read()).toBe(4_000)
})
