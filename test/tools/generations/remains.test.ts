import { expect, test } from 'vitest'
import { positionId } from '../../../schemas/stored/documents.ts'
import type { CommandContext } from '../../../tools/context.ts'
import { findRemains } from '../../../tools/generations/remains.ts'

type Asked = Parameters<CommandContext['send']>[0]

/** A control index with the positions of this many partitions of a generation. */
const withPositions = (partitions: number, failed = { refresh: 0, search: 0 }): CommandContext => {
  const all = Array.from({ length: partitions }, (_, partition) => ({ _id: positionId('g1', partition) }))
  const send = async ({ path, body }: Asked) => {
    if (path.startsWith('/_resolve/')) return { status: 200, body: { indices: [] } }
    if (path.endsWith('/_refresh')) return { status: 200, body: { _shards: { failed: failed.refresh } } }
    const { size = 0 } = (body ?? {}) as { readonly size?: number }
    return { status: 200, body: { _shards: { failed: failed.search }, hits: { hits: all.slice(0, size) } } }
  }
  return { send, prefix: 'test' } as unknown as CommandContext
}

test('everything that exists of a generation is found', async () => {
  const remains = await findRemains(withPositions(9_999))
  expect(remains.get('g1')?.positions).toHaveLength(9_999)
})

test('more documents than a search returns are an error, because drop would leave the rest', async () => {
  await expect(findRemains(withPositions(10_001))).rejects.toThrow('test-control has 10000 positions of generations')
})

test.each([
  ['refresh', { refresh: 1, search: 0 }],
  ['search', { refresh: 0, search: 1 }],
])('a %s that failed on a shard is an error, because drop would leave the rest', async (_, failed) => {
  await expect(findRemains(withPositions(3, failed))).rejects.toThrow(
    'test-control cannot be read whole: a shard is away',
  )
})
