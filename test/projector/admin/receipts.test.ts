/** How receipts wait. `receipt-reader.test.ts` tests what one poll reads. */
import { expect, test } from 'vitest'
import { StopError } from '../../../core/runtime/failures.ts'
import { Unanswered } from '../../../core/runtime/keep-trying.ts'
import { NOT_SERVED, type NoReceipt } from '../../../projector/admin/read-control.ts'
import {
  createReceipts,
  type Receipt,
  type ReceiptOutcome,
  type RecordLocation,
} from '../../../projector/admin/receipts.ts'
import { RECEIPTS_POLL_MS, RECEIPTS_POLL_TIMEOUT_MS, RECEIPTS_WAITING_MAX } from '../../../projector/limits.ts'
import { Clock } from '../clock.ts'
import { everythingRuns, Held } from '../held.ts'

const SECOND = 1_000
const NOT_YET = { state: 'not_yet' } as const
const PUBLISHED = { state: 'published' } as const

const at = (offset: number, partition = 0): RecordLocation => ({
  stream: 'events',
  topic: 'commission.events',
  partition,
  offset,
})

const setUp = () => {
  const clock = new Clock()
  const looks = new Held<readonly RecordLocation[], (Receipt | NoReceipt)[]>()
  const signals: AbortSignal[] = []
  const receipts = createReceipts((places, signal) => {
    signals.push(signal)
    return looks.call(places)
  }, clock.sleep)
  /** Asks for a receipt. Its answer is set when it arrives. */
  const ask = (place: RecordLocation, milliseconds: number, gone = new AbortController().signal) => {
    const asked: { answer: ReceiptOutcome | undefined; error: unknown } = { answer: undefined, error: undefined }
    receipts.ask(place, milliseconds, gone).then(
      answer => (asked.answer = answer),
      error => (asked.error = error),
    )
    return asked
  }
  const offsets = () => looks.at(0).argument.map(({ offset }) => offset)
  const nextLook = () => clock.move(RECEIPTS_POLL_MS)
  return { clock, looks, signals, receipts, ask, offsets, nextLook }
}

test('without a wait the first look-up is the answer, whatever it sees', async () => {
  const { looks, ask, offsets, receipts } = setUp()
  const asked = ask(at(5), 0)
  await everythingRuns()
  expect([offsets(), asked.answer]).toEqual([[5], undefined])
  await looks.at(0).letGo([NOT_YET])
  expect([asked.answer, receipts.waiting()]).toEqual([NOT_YET, 0])
})

test('with a wait it looks up the record until it is published or parked', async () => {
  const { looks, ask, nextLook, receipts } = setUp()
  const asked = ask(at(5), 10 * SECOND)
  for (let look = 0; look < 3; look++) {
    await looks.at(0).letGo([NOT_YET])
    expect([asked.answer, receipts.waiting()]).toEqual([undefined, 1])
    await nextLook()
  }
  await looks.at(0).letGo([{ state: 'parked', code: 'rep_unknown' }])
  expect([asked.answer, receipts.waiting()]).toEqual([{ state: 'parked', code: 'rep_unknown' }, 0])
  await nextLook()
  expect(looks.count).toBe(4)
})

test('a wait goes on while readers are refused, and says so when its time is over', async () => {
  const { clock, looks, ask, nextLook } = setUp()
  const asked = ask(at(5), SECOND)
  for (let look = 0; look < 2; look++) {
    await looks.at(0).letGo([NOT_SERVED])
    expect(asked.answer).toBeUndefined()
    await nextLook()
  }
  await clock.move(SECOND - 2 * RECEIPTS_POLL_MS)
  expect(asked.answer).toEqual(NOT_SERVED)
})

test('a wait ends at once when the live generation is of another topic', async () => {
  const { looks, ask, nextLook, receipts } = setUp()
  const asked = ask(at(5), 10 * SECOND)
  await looks.at(0).letGo([NOT_YET])
  await nextLook()
  const otherTopic = { state: 'other_topic', live: 'commission.events-9' } as const
  await looks.at(0).letGo([otherTopic])
  expect([asked.answer, receipts.waiting()]).toEqual([otherTopic, 0])
})

test('when the time is over the latest look-up is the answer, at once', async () => {
  const { clock, looks, ask, nextLook } = setUp()
  const asked = ask(at(5), SECOND)
  await looks.at(0).letGo([NOT_YET])
  await nextLook()
  expect(looks.calls).toHaveLength(1)
  await clock.move(SECOND - RECEIPTS_POLL_MS - 1)
  expect(asked.answer).toBeUndefined()
  // The look-up in flight does not delay the answer.
  await clock.move(1)
  expect(asked.answer).toEqual(NOT_YET)
})

test('all waiting requests share one look-up, and each gets the answer for its record', async () => {
  const { looks, ask, offsets, nextLook } = setUp()
  const first = ask(at(1), 10 * SECOND)
  const others = [2, 3, 4].map(offset => ask(at(offset), 10 * SECOND))
  // The look-up in flight began without them.
  expect(offsets()).toEqual([1])
  await looks.at(0).letGo([NOT_YET])
  await nextLook()
  expect(offsets()).toEqual([1, 2, 3, 4])
  await looks.at(0).letGo([PUBLISHED, NOT_YET, { state: 'parked', code: 'id_reused' }, PUBLISHED])
  expect([first, ...others].map(({ answer }) => answer)).toEqual([
    PUBLISHED,
    undefined,
    { state: 'parked', code: 'id_reused' },
    PUBLISHED,
  ])
  await nextLook()
  expect([offsets(), looks.count]).toEqual([[2], 3])
})

test('look-ups keep a minimum interval, however quickly requests arrive', async () => {
  const { clock, looks, ask } = setUp()
  ask(at(1), 0)
  await looks.at(0).letGo([PUBLISHED])
  const second = ask(at(2), 0)
  await clock.move(RECEIPTS_POLL_MS - 1)
  expect([looks.count, second.answer]).toEqual([1, undefined])
  await clock.move(1)
  await looks.at(0).letGo([PUBLISHED])
  expect([looks.count, second.answer]).toEqual([2, PUBLISHED])
})

test('after an idle time the next request is looked up at once', async () => {
  const { clock, looks, ask } = setUp()
  ask(at(1), 0)
  await looks.at(0).letGo([PUBLISHED])
  await clock.move(RECEIPTS_POLL_MS)
  ask(at(2), 0)
  expect(looks.count).toBe(2)
})

test('a failed look-up is followed by another one, and is the answer only if the time is over', async () => {
  const { clock, looks, ask, nextLook } = setUp()
  const [now, later, longer] = [ask(at(1), 0), ask(at(2), 300), ask(at(3), 10 * SECOND)]
  await looks.at(0).fail(new Unanswered('elasticsearch', 503))
  expect(now.answer).toEqual({ state: 'unavailable' })
  await nextLook()
  // An index that a swap left behind, and that is being dropped.
  await looks.at(0).fail(new StopError('index_missing', 'commission-g1-parked'))
  await clock.move(300)
  expect([later.answer, longer.answer]).toEqual([{ state: 'unavailable' }, undefined])
  await looks.at(0).letGo([PUBLISHED])
  expect(longer.answer).toEqual(PUBLISHED)
})

test('if the time is over before the first look-up ends, that look-up is the answer', async () => {
  const { clock, looks, ask } = setUp()
  const asked = ask(at(5), SECOND)
  await clock.move(SECOND)
  expect(asked.answer).toBeUndefined()
  await looks.at(0).letGo([NOT_YET])
  expect(asked.answer).toEqual(NOT_YET)
})

test('a look-up without an answer is aborted', async () => {
  const { clock, looks, signals, ask } = setUp()
  const asked = ask(at(1), 0)
  await clock.move(RECEIPTS_POLL_TIMEOUT_MS - 1)
  expect(signals[0]?.aborted).toBe(false)
  await clock.move(1)
  expect(signals[0]?.aborted).toBe(true)
  await looks.at(0).fail(new Unanswered('elasticsearch', 0))
  expect(asked.answer).toEqual({ state: 'unavailable' })
})

test('a defect is reported to all waiting requests, and later requests are looked up', async () => {
  const { looks, ask, nextLook, receipts } = setUp()
  const asked = ask(at(1), 10 * SECOND)
  await looks.at(0).fail(new TypeError('a defect'))
  expect([asked.error, receipts.waiting()]).toEqual([new TypeError('a defect'), 0])
  const next = ask(at(2), 0)
  await nextLook()
  await looks.at(0).letGo([PUBLISHED])
  expect(next.answer).toEqual(PUBLISHED)
})

test('the number of waiting requests is limited; each answer makes room', async () => {
  const { looks, ask, receipts } = setUp()
  const all = Array.from({ length: RECEIPTS_WAITING_MAX }, (_, offset) => ask(at(offset), 10 * SECOND))
  const tooMany = ask(at(0), 0)
  await everythingRuns()
  expect([tooMany.answer, receipts.waiting()]).toEqual([{ state: 'too_many' }, RECEIPTS_WAITING_MAX])
  await looks.at(0).letGo([PUBLISHED])
  expect([all[0]?.answer, receipts.waiting()]).toEqual([PUBLISHED, RECEIPTS_WAITING_MAX - 1])
  const next = ask(at(0), 10 * SECOND)
  await everythingRuns()
  expect([next.answer, receipts.waiting()]).toEqual([undefined, RECEIPTS_WAITING_MAX])
})

test('records of disconnected clients are not looked up any more', async () => {
  const { looks, ask, nextLook, receipts } = setUp()
  const gone = new AbortController()
  ask(at(1), 10 * SECOND, gone.signal)
  ask(at(2), 10 * SECOND, AbortSignal.abort())
  await looks.at(0).letGo([NOT_YET])
  expect(receipts.waiting()).toBe(1)
  gone.abort()
  expect(receipts.waiting()).toBe(0)
  await nextLook()
  expect(looks.count).toBe(1)
})

test('a stop answers all waiting requests at once, aborts the look-up, and starts no other', async () => {
  const { looks, signals, ask, nextLook, receipts } = setUp()
  const before = ask(at(1), 10 * SECOND)
  await looks.at(0).letGo([NOT_YET])
  await nextLook()
  const during = ask(at(2), 10 * SECOND)
  receipts.stop()
  await everythingRuns()
  expect([before.answer, during.answer, receipts.waiting()]).toEqual([NOT_YET, NOT_YET, 0])
  expect(signals[1]?.aborted).toBe(true)
  await looks.at(0).fail(new Unanswered('elasticsearch', 0))
  const after = ask(at(3), 10 * SECOND)
  await nextLook()
  expect([after.answer, looks.count]).toEqual([{ state: 'stopping' }, 2])
})
