import { expect, test } from 'vitest'
import { LARGE_ANSWERS_OF_ORGANIZATION } from '../../../../api/limits.ts'
import { unavailable } from '../../../../core/runtime/refusals.ts'
import { createSemaphores } from '../../../../core/runtime/semaphore.ts'
import {
  ANSWERS_HELD_OF_KEY,
  LARGE_READ_BYTES,
  RECORD_BYTES_EXPECTED,
  SLICE,
  UNKNOWN_ANSWER_BYTES,
} from '../../../../core/store/limits.ts'
import { allocate, createAnswerBudget } from '../../../../core/store/read/answer-budget.ts'
import { createReadMemory, createTurn, holdReads, type ReadScope } from '../../../../core/store/read/scope.ts'
import type { Search } from '../../../../core/store/read/search-client.ts'
import type { DocumentName } from '../../../../core/store/read/slice-documents.ts'
import { addressIn } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const given = (answer: () => Buffer | 'too_large' = () => Buffer.alloc(100), parts = 1) => {
  const budget = createAnswerBudget({ onRefused: () => undefined })
  const turns = createSemaphores({ ...LARGE_ANSWERS_OF_ORGANIZATION, queue: 1 }, () => () => undefined)
  const heldWhenAsked: number[] = []
  const ask = async () => {
    heldWhenAsked.push(budget.held())
    return answer()
  }
  const cameInAll = { bytes: 0 }
  const search: Search = async (_index, _body, _signal, arrived) => {
    const given = await ask()
    for (let part = 0; part < parts && given !== 'too_large'; part++) {
      cameInAll.bytes += given.length / parts
      arrived?.(given.length / parts)
    }
    return given
  }
  const multiGet = ask as () => Promise<Buffer>
  const reads = holdReads({
    search,
    multiGets: { ofRequest: async () => ({ answer: await multiGet() }), ofProcess: multiGet },
  })
  const request = () => {
    const { signal } = new AbortController()
    const reservation = budget.open({ org: 'org_1', id: 'key_1' })
    const turn = createTurn(turns, 'org_1', LARGE_READ_BYTES, signal)
    const kept: Buffer[] = []
    const read: number[] = []
    const onRead = (bytes: number) => void read.push(bytes)
    const memory = createReadMemory({ reservation, turn, org: 'org_1', reads: kept, onRead })
    const scope: ReadScope = { org: 'org_1', signal, memory }
    return { scope, reservation, turn, kept, read }
  }
  return { budget, heldWhenAsked, cameInAll, reads, request, turns }
}
const record: DocumentName = { ...addressIn('payouts', 'org_1:payout_1'), form: 'record' }

test('bytes are reserved before Elasticsearch is asked; afterwards exactly the bytes that came are held', async () => {
  const { budget, heldWhenAsked, reads, request } = given()
  const { scope } = request()
  await reads.search({ index: 'payouts', routing: undefined }, '', scope, 5_000)
  await reads.search({ index: 'payouts', routing: undefined }, '', scope)
  expect(heldWhenAsked).toEqual([5_000, UNKNOWN_ANSWER_BYTES + 100])
  expect(budget.held()).toBe(200)
})

test('the bytes reserved for a record follow the records last read for the organization', async () => {
  let bytes = 3_000_000
  const { heldWhenAsked, reads, request } = given(() => Buffer.alloc(bytes))
  for (let n = 0; n < 3; n++) {
    const { scope, reservation } = request()
    await reads.multiGet([record], scope)
    reservation.close()
    bytes = 100
  }
  expect(heldWhenAsked).toEqual([RECORD_BYTES_EXPECTED, 3_000_000, 1_500_000])
})

test('many records that are read at once say how large one is: the next request may ask for one', async () => {
  const { heldWhenAsked, reads, request } = given(() => Buffer.alloc(3_000_000))
  for (const names of [Array.from({ length: 10 }, () => record), [record]]) {
    const { scope, reservation } = request()
    await reads.multiGet(names, scope)
    reservation.close()
  }
  expect(heldWhenAsked).toEqual([RECORD_BYTES_EXPECTED, 300_000])
})

test('only responses whose memory can be freed are remembered, so that many small ones take none', async () => {
  const [small, large] = [Buffer.alloc(100), allocate(SLICE.bytes + 1)]
  const answers = [small, large, small]
  const { reads, request } = given(() => answers.shift() ?? small)
  const { scope, kept } = request()
  for (let n = 0; n < 2; n++) await reads.search({ index: 'payouts', routing: undefined }, '', scope)
  await reads.multiGet([record], scope)
  expect(kept).toEqual([large])
})

test('Elasticsearch is not asked once the budget is used up', async () => {
  const { heldWhenAsked, reads, request } = given()
  request().reservation.add(ANSWERS_HELD_OF_KEY)
  await expect(reads.search({ index: 'payouts', routing: undefined }, '', request().scope)).rejects.toThrow(
    'cannot be read',
  )
  expect(heldWhenAsked).toEqual([])
})

test('a read that fails, or whose response is too large, holds nothing', async () => {
  let fails = true
  const { budget, reads, request } = given(() => {
    if (fails) throw unavailable('elasticsearch_partial')
    return 'too_large'
  })
  const { scope } = request()
  await expect(reads.search({ index: 'payouts', routing: undefined }, '', scope)).rejects.toThrow('cannot be read')
  fails = false
  expect(await reads.search({ index: 'payouts', routing: undefined }, '', scope)).toBe('too_large')
  expect(budget.held()).toBe(0)
})

test('a response with more bytes than the budget has left is refused', async () => {
  const { budget, reads, request } = given(() => Buffer.alloc(ANSWERS_HELD_OF_KEY + 1))
  await expect(reads.search({ index: 'payouts', routing: undefined }, '', request().scope, 10)).rejects.toThrow(
    'cannot be read',
  )
  expect(budget.held()).toBe(0)
})

test('reads of the process itself and of small documents are not counted', async () => {
  const { budget, reads, request } = given()
  await reads.search({ index: 'payouts', routing: undefined }, '', scopeOf('org_1'))
  await reads.multiGet([{ ...record, form: 'small' }], request().scope)
  expect(budget.held()).toBe(0)
})

test('a second large read waits for its turn before it asks Elasticsearch; a third one is refused', async () => {
  const { heldWhenAsked, reads, request, turns } = given(() => Buffer.alloc(2 * LARGE_READ_BYTES))
  const [first, second, third] = [request(), request(), request()]
  const expected = LARGE_READ_BYTES + 1
  await reads.search({ index: 'payouts', routing: undefined }, '', first.scope, expected)
  const waits = reads.search({ index: 'payouts', routing: undefined }, '', second.scope, expected)
  await expect(reads.search({ index: 'payouts', routing: undefined }, '', third.scope, expected)).rejects.toMatchObject(
    {
      reason: 'large_answers',
    },
  )
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
    await reads.search({ index: 'payouts', routing: undefined }, '', first.scope)
    const waits =
      kind === 'search'
        ? reads.search({ index: 'payouts', routing: undefined }, '', second.scope)
        : reads.multiGet([record], second.scope)
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
  await reads.search({ index: 'payouts', routing: undefined }, '', first.scope)
  cameInAll.bytes = 0
  const waits = reads.search({ index: 'payouts', routing: undefined }, '', second.scope)
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
  await expect(reads.search({ index: 'payouts', routing: undefined }, '', request().scope, 10)).rejects.toMatchObject({
    reason: 'answer_bytes_of_key',
  })
  expect(cameInAll.bytes).toBe(4 * (LARGE_READ_BYTES / 8))
  expect(budget.held()).toBe(ANSWERS_HELD_OF_KEY - 2_000_000)
})

test('a response that arrives after its request has ended takes no turn', async () => {
  const { reads, request, turns } = given(() => Buffer.alloc(2 * LARGE_READ_BYTES))
  const { scope, reservation, turn } = request()
  const late = reads.search({ index: 'payouts', routing: undefined }, '', scope)
  reservation.close()
  turn.end()
  await late
  expect(turns.held()).toBe(0)
})
