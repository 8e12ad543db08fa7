import { expect, test } from 'vitest'
import type { CommandContext } from '../../../tools/context.ts'
import { changeStored, expectStored, readStored, replaceUnchanged } from '../../../tools/generations/generations.ts'

type Asked = { readonly method: string }

/** An Elasticsearch that answers a read and a write with these statuses, again and again. */
const steps = (read: number, write = 200) => ({
  prefix: 'test',
  send: (async ({ method }: Asked) => ({
    status: method === 'GET' ? read : write,
    body: { _source: {}, _seq_no: 1, _primary_term: 1 },
  })) as unknown as CommandContext['send'],
})
const read = { _source: {}, _seq_no: 1, _primary_term: 1 } as never

test('a document of the control index that may not be read is not taken for a missing one', async () => {
  expect(await readStored('generation:g1', steps(404))).toBeUndefined()
  for (const ask of [readStored, expectStored]) {
    await expect(ask('generation:g1', steps(400))).rejects.toThrow(
      'generation:g1 cannot be read: Elasticsearch answers',
    )
  }
  await expect(expectStored('generation:g1', steps(404))).rejects.toThrow('generation:g1 is not under test')
  await expect(changeStored('generation:g1', () => ({}), steps(400))).rejects.toThrow('cannot be read')
})

test('a document that was changed meanwhile is not replaced, and says what to do', async () => {
  await replaceUnchanged('generation:g1', read, {}, steps(200))
  await expect(replaceUnchanged('generation:g1', read, {}, steps(200, 409))).rejects.toThrow(
    'generation:g1 was changed meanwhile: stop all projectors',
  )
  await expect(replaceUnchanged('generation:g1', read, {}, steps(200, 400))).rejects.toThrow('cannot be written')
})
