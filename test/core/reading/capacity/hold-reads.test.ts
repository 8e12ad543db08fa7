import { expect, test } from 'vitest'
import { createHoldings, holdReads } from '../../../../core/reading/capacity/hold-reads.ts'
import { createTurn } from '../../../../core/reading/capacity/large-answers.ts'
import { LARGE_ANSWERS_OF_ORGANIZATION, LARGE_READ_BYTES } from '../../../../core/reading/limits.ts'
import { unavailable } from '../../../../core/runtime/refusals.ts'
import { createSemaphores } from '../../../../core/runtime/semaphore.ts'
import {
  ANSWERS_HELD_OF_KEY,
  RECORD_BYTES_EXPECTED,
  SLICE,
  UNKNOWN_ANSWER_BYTES,
} from '../../../../core/store/limits.ts'
import { createAnswerBudget } from '../../../../core/store/read/answer-budget.ts'
import type { Search } from '../../../../core/store/read/client.ts'
import { allocate } from '../../../../core/store/read/held-bytes.ts'
import type { DocumentName } from '../../../../core/store/read/slice-documents.ts'

const given = (answer: () => Buffer | 'too_large' = () => Buffer.alloc(100), parts = 1) => {
  const budget = createAnswerBudget({ onRefused: () => undefined })
  const holdings = createHoldings()
  const turns = createSemaphores({ ...LARGE_ANSWERS_OF_ORGANIZATION, queue: 1 }, () => () => undefined)
  const heldWhenAsked: number[] = []
  const ask = async () => {
    heldWhenAsked.push(budget.held())
    return answer()
  }
  const cameInAll = { bytes: 0 }
  const search: Search = async (_index, _body, _signal, _expected, arrived) => {
    const given = await ask()
    for (let part = 0; part < parts && given !== 'too_large'; part++) {
      cameInAll.bytes += given.length / parts
      arrived?.(given.length / parts)
    }
    return given
  }
  const multiGet = ask as () => Promise<Buffer>
  const reads = holdReads({ search, multiGets: { ofRequest: multiGet, ofProcess: multiGet } }, holdings)
  const request = () => {
    const { signal } = new AbortController()
    const reservation = budget.open({ org: 'org_1', id: 'key_1' })
    const turn = createTurn(turns, 'org_1', LARGE_READ_BYTES, signal)
    const kept: Buffer[] = []
    const read: number[] = []
    holdings.set(signal, { reservation, turn, org: 'org_1', reads: kept, onRead: bytes => void read.push(bytes) })
    return { signal, reservation, turn, kept, read }
  }
  return { budget, heldWhenAsked, cameInAll, reads, request, turns }
}
const record: DocumentName = { index: 'payouts', id: 'org_1:payout_1', form: 'record' }

test('bytes are reserved before Elasticsearch is asked; afterwards exactly the bytes that came are held', async () => {
  const { budget, heldWhenAsked, reads, request } = given()
  const { signal } = request()
  await reads.search('payouts', '', signal, 5_000)
  await reads.search('payouts', '', signal)
  expect(heldWhenAsked).toEqual([5_000, UNKNOWN_ANSWER_BYTES + 100])
  expect(budget.held()).toBe(200)
})

test('the bytes reserved for a record follow the records last read for the organization', async () => {
  let bytes = 3_000_000
  const { heldWhenAsked, reads, request } = given(() => Buffer.alloc(bytes))
  for (let n = 0; n < 3; n++) {
    const { signal, reservation } = request()
    await reads.multiGet([record], signal)
    reservation.close()
    bytes = 100
  }
  expect(heldWhenAsked).toEqual([RECORD_BYTES_EXPECTED, 3_000_000, 1_500_000])
})

test('only responses whose memory can be freed are remembered, so that many small ones take none', async () => {
  const [small, large] = [Buffer.alloc(100), allocate(SLICE.bytes + 1)]
  const answers = [small, large, small]
  const { reads, request } = given(() => answers.shift() ?? small)
  const { signal, kept } = request()
  for (let n = 0; n < 2; n++) await reads.search('payouts', '', signal)
  await reads.multiGet([record], signal)
  expect(kept).toEqual([large])
})

test('Elasticsearch is not asked once the budget is used up', async () => {
  const { heldWhenAsked, reads, request } = given()
  request().reservation.add(ANSWERS_HELD_OF_KEY)
  await expect(reads.search('payouts', '', request().signal)).rejects.toThrow('cannot be read')
  expect(heldWhenAsked).toEqual([])
})

test('a read that fails, or whose response is too large, holds nothing', async () => {
  let fails = true
  const { budget, reads, request } = given(() => {
    if (fails) throw unavailable('elasticsearch_partial')
    return 'too_large'
  })
  const { signal } = request()
  await expect(reads.search('payouts', '', signal)).rejects.toThrow('cannot be read')
  fails = false
  expect(await reads.search('payouts', '', signal)).toBe('too_large')
  expect(budget.held()).toBe(0)
})

test('a response with more bytes than the budget has left is refused', async () => {
  const { budget, reads, request } = given(() => Buffer.alloc(ANSWERS_HELD_OF_KEY + 1))
  await expect(reads.search('payouts', '', request().signal, 10)).rejects.toThrow('cannot be read')
  expect(budget.held()).toBe(0)
})

test('reads of the process itself and of small documents are not counted', async () => {
  const { budget, reads, request } = given()
  await reads.search('payouts', '', new AbortController().signal)
  await reads.multiGet([{ ...record, form: 'small' }], request().signal)
  expect(budget.held()).toBe(0)
})

test('a second large read waits for its turn before it asks Elasticsearch; a third one is refused', async () => {
  const { heldWhenAsked, reads, request, turns } = given(() => Buffer.alloc(2 * LARGE_READ_BYTES))
  const [first, second, third] = [request(), request(), request()]
  const expected = LARGE_READ_BYTES + 1
  await reads.search('payouts', '', first.signal, expected)
  const waits = reads.search('payouts', '', second.signal, expected)
  await expect(reads.search('payouts', '', third.signal, expected)).rejects.toMatchObject({
    reason: 'large_answers',
  })
  expect(heldWhenAsked).toHaveLength(1)
  for (const { reservation, turn } of [first, third]) {
    reservation.close()
    turn.end()
  }
  await waits
  expect(heldWhenAsked).toEqual([expected, expected])
  second.turn.end()
  await Promise.resolve()
  expect([turns.held(), turns.waiting()]).toEqual([0, 0])
})

test.each(['search', 'multiGet'] as const)(
  'a response to %s that is larger than expected is dropped while another request has the turn, and read again after it',
  async kind => {
    const { budget, heldWhenAsked, reads, request } = given(() => Buffer.alloc(2 * LARGE_READ_BYTES))
    const [first, second] = [request(), request()]
    await reads.search('payouts', '', first.signal)
    const waits =
      kind === 'search' ? reads.search('payouts', '', second.signal) : reads.multiGet([record], second.signal)
    await new Promise(resolve => setImmediate(resolve))
    expect(heldWhenAsked).toHaveLength(2)
    expect(second.read).toEqual([2 * LARGE_READ_BYTES])
    expect(budget.held()).toBe(2 * LARGE_READ_BYTES)
    first.reservation.close()
    first.turn.end()
    expect(await waits).toHaveLength(2 * LARGE_READ_BYTES)
    expect(heldWhenAsked.at(-1)).toBe(2 * LARGE_READ_BYTES)
    // A refusal is charged for both reads.
    expect(second.read).toEqual([2 * LARGE_READ_BYTES, 2 * LARGE_READ_BYTES])
  },
)

test('a response larger than expected is not read to its end while another request has the turn', async () => {
  const { budget, cameInAll, reads, request } = given(() => Buffer.alloc(8 * LARGE_READ_BYTES), 8)
  const [first, second] = [request(), request()]
  await reads.search('payouts', '', first.signal)
  cameInAll.bytes = 0
  const waits = reads.search('payouts', '', second.signal)
  await new Promise(resolve => setImmediate(resolve))
  expect(cameInAll.bytes).toBe(2 * LARGE_READ_BYTES)
  expect(budget.held()).toBe(8 * LARGE_READ_BYTES)
  first.reservation.close()
  first.turn.end()
  expect(await waits).toHaveLength(8 * LARGE_READ_BYTES)
})

test('bytes beyond the expected ones count against the key as they arrive', async () => {
  const { budget, cameInAll, reads, request } = given(() => Buffer.alloc(LARGE_READ_BYTES), 8)
  request().reservation.add(ANSWERS_HELD_OF_KEY - 2_000_000)
  await expect(reads.search('payouts', '', request().signal, 10)).rejects.toMatchObject({
    reason: 'answer_bytes_of_key',
  })
  expect(cameInAll.bytes).toBe(4 * (LARGE_READ_BYTES / 8))
  expect(budget.held()).toBe(ANSWERS_HELD_OF_KEY - 2_000_000)
})

test('a response that arrives after its request has ended takes no turn', async () => {
  const { reads, request, turns } = given(() => Buffer.alloc(2 * LARGE_READ_BYTES))
  const { signal, reservation, turn } = request()
  const late = reads.search('payouts', '', signal)
  reservation.close()
  turn.end()
  await late
  expect(turns.held()).toBe(0)
})
