import { describe, expect, test } from 'vitest'
import { type FetchedPartition, markAborted } from '../../../projector/kafka/patch-aborted.ts'

type Kind = 'record' | 'control' | 'plain'

/** The offsets that are left out, if the producers wrote these messages from offset `from` on. */
const leftOut = (
  aborted: FetchedPartition['abortedTransactions'],
  written: readonly (readonly [producer: string, kind: Kind, key?: Buffer])[],
  from = 0,
): string[] => {
  const messages = written.map(([producerId, kind, key = Buffer.from('org_1')], at) => ({
    offset: String(from + at),
    key,
    isControlRecord: kind === 'control',
    batchContext: { producerId, inTransaction: kind !== 'plain', isControlBatch: kind === 'control' },
  }))
  const partition = { abortedTransactions: aborted, messages }
  markAborted(partition)
  expect(partition.abortedTransactions).toEqual([])
  return messages.filter(({ isControlRecord }) => isControlRecord).map(({ offset }) => offset)
}

describe('in fetched records', () => {
  test('without aborted transactions only control records are left out', () => {
    expect(
      leftOut(null, [
        ['1', 'record'],
        ['2', 'plain'],
        ['1', 'control'],
      ]),
    ).toEqual(['2'])
    expect(
      leftOut(
        [],
        [
          ['1', 'record'],
          ['1', 'control'],
        ],
      ),
    ).toEqual(['1'])
  })

  test('an aborted transaction is left out up to its end, and no other record', () => {
    const written = [
      ['1', 'plain'],
      ['1', 'record'],
      ['2', 'record'],
      ['1', 'record'],
      ['1', 'control'],
      ['1', 'record'],
    ] as const
    expect(leftOut([{ producerId: '1', firstOffset: '1' }], written)).toEqual(['1', '3', '4'])
  })

  test('overlapping transactions are kept apart, even if the later one is listed first', () => {
    const aborted = [
      { producerId: '2', firstOffset: '1' },
      { producerId: '1', firstOffset: '0' },
    ]
    const written = [
      ['1', 'record'],
      ['2', 'record'],
      ['1', 'record'],
      ['2', 'control'],
      ['2', 'record'],
      ['1', 'control'],
    ] as const
    expect(leftOut(aborted, written)).toEqual(['0', '1', '2', '3', '5'])
  })

  test('all transactions that begin at the same offset are left out', () => {
    const aborted = ['1', '2', '3'].map(producerId => ({ producerId, firstOffset: '0' }))
    expect(
      leftOut(
        aborted,
        [
          ['1', 'record'],
          ['2', 'record'],
          ['3', 'record'],
          ['4', 'record'],
        ],
        5,
      ),
    ).toEqual(['5', '6', '7'])
  })

  test('a record with the key of a control record ends no transaction', () => {
    const written = [
      ['1', 'record', Buffer.alloc(4)],
      ['1', 'record'],
      ['1', 'control'],
    ] as const
    expect(leftOut([{ producerId: '1', firstOffset: '0' }], written)).toEqual(['0', '1', '2'])
  })

  test('a committed second transaction of the same producer is kept', () => {
    const written = [
      ['1', 'record'],
      ['1', 'control'],
      ['1', 'record'],
      ['1', 'control'],
      ['1', 'record'],
    ] as const
    const aborted = [
      { producerId: '1', firstOffset: '0' },
      { producerId: '1', firstOffset: '4' },
    ]
    expect(leftOut(aborted, written)).toEqual(['0', '1', '3', '4'])
  })

  test('records of formats older than transactions are kept', () => {
    const messages = [{ offset: '0', key: null, isControlRecord: false }]
    markAborted({ abortedTransactions: [{ producerId: '1', firstOffset: '0' }], messages })
    expect(messages[0]?.isControlRecord).toBe(false)
  })
})
