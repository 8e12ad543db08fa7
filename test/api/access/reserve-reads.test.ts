import { describe, expect, test } from 'vitest'
import { createRequestMemory } from '../../../api/access/permits.ts'
import type { Spent } from '../../../api/http/request.ts'
import { createSemaphores } from '../../../core/runtime/semaphore.ts'
import { createAnswerBudget } from '../../../core/store/read/answer-budget.ts'
import { holdReads } from '../../../core/store/read/scope.ts'
import type { Search } from '../../../core/store/read/search-client.ts'

describe('the memory of a request', () => {
  const key = { org: 'org_1', orgHash: 'aa', id: 'key_1', permissions: new Set<never>() }
  const opened = async () => {
    const budget = createAnswerBudget({ onRefused: () => undefined })
    const turns = createSemaphores({ permits: 1, queue: 0, waitMax: 0 }, () => () => undefined)
    const spent: Spent = { waited: 0, bytesRead: 0, added: { bytes: 0, isFirst: false }, held: undefined }
    const request = {
      requestId: 'r',
      path: '/',
      query: '',
      baseAddress: () => '',
      spent,
      key,
      route: '/',
      isCopied: false,
    }
    const { signal } = new AbortController()
    const nothing = { signal, renewTime: () => undefined, recheckKey: async () => undefined, methodOffered: true }
    const memory = createRequestMemory(budget, turns)
    const { scope } = memory.open({ ...request, ...nothing })
    const search: Search = async (_index, _body, _signal, arrived) => {
      arrived?.(100)
      return Buffer.alloc(100)
    }
    const multiGet = async () => Buffer.alloc(0)
    const reads = holdReads({
      search,
      multiGets: { ofRequest: async () => ({ answer: await multiGet() }), ofProcess: multiGet },
    })
    await reads.search({ index: 'payouts', routing: undefined }, '', scope, 10)
    return { budget, spent, close: () => memory.close(request) }
  }

  test('holds the bytes of its reads, and counts them for its price', async () => {
    const { budget, spent } = await opened()
    expect([budget.held(), spent.bytesRead]).toEqual([100, 100])
  })

  test('holds nothing once it is closed, and keeps the count', async () => {
    const { budget, spent, close } = await opened()
    close()
    expect([budget.held(), spent.held, spent.bytesRead]).toEqual([0, undefined, 100])
  })
})
