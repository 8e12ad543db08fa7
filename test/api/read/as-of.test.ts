import { describe, expect, test } from 'vitest'
import { type DocumentName, sliceMultiGet } from '../../../api/elasticsearch/slice-documents.ts'
import { Refusal } from '../../../api/failures.ts'
import { AS_OF_MARGIN } from '../../../api/limits.ts'
import { createPositionAt } from '../../../api/read/as-of.ts'
import { createCursorResolver } from '../../../api/read/cursors.ts'
import type { RecordName } from '../../../api/read/read-parameters.ts'
import { documentText } from '../../support/bodies.ts'
import { multiGetAnswer } from '../answers.ts'

const signal = new AbortController().signal
const generation = { name: 'g1', source: 's', partitions: 1, rules: 1 }
const NOW = 1_000_000
const position = { generation, publishedTo: 100, time: NOW, takenBack: 0 }

const answerOf = (seq: number | undefined): Buffer => {
  const hits = seq === undefined ? '' : `{"_index":"i","_id":"org_a:x","_score":null,"sort":[${seq}]}`
  return Buffer.from(
    `{"took":1,"timed_out":false,"_shards":{"total":4,"successful":4,"skipped":0,"failed":0},"hits":{"max_score":null,"hits":[${hits}]}}`,
  )
}

/** @param first the offset of the first event after the requested moment */
const moments = (first: number | undefined, ours = NOW) => {
  const asked: string[] = []
  const positionAt = createPositionAt(
    'p',
    async (_, body) => {
      asked.push(body)
      return answerOf(first)
    },
    async () => NOW,
    () => ours,
  )
  return {
    asked,
    positionAt,
    at: (milliseconds: number) => positionAt('org_a', position, { kind: 'instant', milliseconds }, undefined, signal),
  }
}

describe('the position at an instant', () => {
  test('is that of the first event after it', async () => {
    const { asked, at } = moments(42)
    expect(await at(5)).toEqual({ ...position, publishedTo: 42 })
    expect(JSON.parse(asked[0] ?? '').query.bool.filter).toContainEqual({ range: { at: { gt: 5 } } })
  })

  test('never changes, whatever comes later, and is looked up once', async () => {
    const { asked, at } = moments(undefined)
    expect(await at(5)).toEqual(position)
    const later = createPositionAt(
      'p',
      async () => answerOf(500),
      async () => NOW,
      () => NOW,
    )
    expect(await at(5)).toEqual(position)
    expect(asked.length).toBe(1)
    expect((await later('org_a', position, undefined, undefined, signal)).publishedTo).toBe(100)
  })

  test('is known at once if a later event exists, without any clock', async () => {
    expect((await moments(42).at(NOW)).publishedTo).toBe(42)
  })

  test('is refused without a later event until the instant is surely over; the message gives the last sure instant', async () => {
    const { at } = moments(undefined)
    expect((await at(NOW - AS_OF_MARGIN)).publishedTo).toBe(100)
    const refusal = await at(NOW - AS_OF_MARGIN + 1).catch((error: unknown) => error as Refusal)
    expect(refusal).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('1970-01-01T00:16:10.000Z'),
    })
  })

  test('is refused while the instant is not over by the clock of the API, whatever time is published', async () => {
    const { at } = moments(undefined, NOW - 3_600_000)
    expect((await at(NOW - 3_600_000 - AS_OF_MARGIN)).publishedTo).toBe(100)
    await expect(at(NOW - AS_OF_MARGIN)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('is looked up again after a published time was taken back', async () => {
    const { asked, positionAt } = moments(undefined)
    for (const takenBack of [0, 0, 1]) {
      await positionAt('org_a', { ...position, takenBack }, { kind: 'instant', milliseconds: 5 }, undefined, signal)
    }
    expect(asked.length).toBe(2)
  })

  test('is unavailable if the search is incomplete', async () => {
    const partial = answerOf(42).toString().replace('"failed":0', '"failed":1')
    const positionAt = createPositionAt(
      'p',
      async () => Buffer.from(partial),
      async () => NOW,
      () => NOW,
    )
    const asked = positionAt('org_a', position, { kind: 'instant', milliseconds: 5 }, undefined, signal)
    await expect(asked).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('the position just after a change', () => {
  const name = { kind: 'payouts', id: 'payout_1' } as const
  const justAfter = (changeOffset: number | undefined) =>
    createPositionAt(
      'p',
      async () => answerOf(1),
      async () => NOW,
      () => NOW,
    )('org_a', position, { kind: 'change', name }, changeOffset, signal)

  test('is the next offset', async () => {
    expect((await justAfter(7)).publishedTo).toBe(8)
    expect((await justAfter(99)).publishedTo).toBe(100)
  })

  test('does not exist for a change that is missing or not yet published', async () => {
    for (const changeOffset of [undefined, 100, 101])
      await expect(justAfter(changeOffset)).rejects.toBeInstanceOf(Refusal)
  })
})

describe('the sort value of a record that a client names', () => {
  const versions = [
    { seq: 3, hash: 'a' },
    { seq: 8, hash: 'b' },
  ]
  const stored: Record<string, string> = {
    'org_a:rep_1': documentText({ org_id: 'org_a' }, JSON.stringify({ versions })),
    'org_a:payout_1': documentText({ org_id: 'org_a', seq: 5 }, '{}'),
  }
  const sortValuesOf = (cursors: ReturnType<typeof createCursorResolver>, names: (RecordName | undefined)[]) => {
    const lookup = cursors.find('org_a', names)
    const documents = lookup.documents(generation)
    return {
      asked: documents.map(({ id }) => id),
      sortValues: lookup.sortValues(
        sliceMultiGet(multiGetAnswer(documents, stored), documents as DocumentName[]),
        generation,
      ),
    }
  }

  test('is that of the first version in a list, and that of the named version in the feed of changes', () => {
    const rep = { kind: 'reps', id: 'rep_1' } as const
    const { sortValues } = sortValuesOf(createCursorResolver('p'), [
      rep,
      { ...rep, ordinal: 1 },
      { ...rep, ordinal: 2 },
      { ...rep, ordinal: 3 },
    ])
    expect(sortValues).toEqual([3, 3, 8, undefined])
  })

  test('is looked up once; a missing record is looked up again', () => {
    const cursors = createCursorResolver('p')
    const names = [{ kind: 'payouts', id: 'payout_1' }, undefined, { kind: 'payouts', id: 'payout_9' }] as const
    expect(sortValuesOf(cursors, [...names])).toEqual({
      asked: ['org_a:payout_1', 'org_a:payout_9'],
      sortValues: [5, undefined, undefined],
    })
    expect(sortValuesOf(cursors, [...names])).toEqual({
      asked: ['org_a:payout_9'],
      sortValues: [5, undefined, undefined],
    })
  })
})
