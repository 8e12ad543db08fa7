import { describe, expect, test } from 'vitest'
import { type FetchedPartition, markAborted } from '../../../projector/kafka/patch-aborted.ts'

type Kind = 'record' | 'control' | 'plain'

/** What each producer wrote, in the order of offsets from `from` on; then which offsets are left out. */
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

describe('of what is fetched', () => {
  test('nothing is left out where nothing was aborted, but control records', () => {
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

  test('transactions that overlap are told apart, though the one that began later is listed first', () => {
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

  test('several transactions that begin at once are all taken up', () => {
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

  test('a record with a key like that of a control record ends no transaction', () => {
    const written = [
      ['1', 'record', Buffer.alloc(4)],
      ['1', 'record'],
      ['1', 'control'],
    ] as const
    expect(leftOut([{ producerId: '1', firstOffset: '0' }], written)).toEqual(['0', '1', '2'])
  })

  test('a second transaction of the same producer that was committed is kept', () => {
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

  test('records of the formats before transactions are kept', () => {
    const messages = [{ offset: '0', key: null, isControlRecord: false }]
    markAborted({ abortedTransactions: [{ producerId: '1', firstOffset: '0' }], messages })
    expect(messages[0]?.isControlRecord).toBe(false)
  })
})
