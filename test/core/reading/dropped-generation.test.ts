/** Promises of core/store/positions/position.ts about a generation that was dropped. */
import { expect, test } from 'vitest'
import { Refusal } from '../../../core/runtime/refusals.ts'
import { scheduleTimer } from '../../../core/runtime/time-limits.ts'
import { createPositionReader } from '../../../core/store/positions/position.ts'
import { type DocumentName, numberOf } from '../../../core/store/read/slice-documents.ts'
import { generationText, liveText, multiGetAnswer, positionText, recordText } from '../../api/answers.ts'
import { addressIn } from '../../support/layout.ts'
import { scopeOf } from '../../support/read-scope.ts'

const payout = ({ name }: { readonly name: string }): DocumentName[] => [
  { ...addressIn(`p-${name}-payouts`, 'org_a:payout_1'), form: 'record' },
]

/** A process that has read g1 and was idle while g2 was made live and g1 was dropped. */
const idle = async () => {
  const dropped = new Set<string>()
  const documents: Record<string, string> = {
    live: liveText('g1'),
    'generation:g1': generationText('g1'),
    'position:g1:0': positionText(10, 1_000),
    'org_a:payout_1': recordText(3, {}),
  }
  const asked: string[][] = []
  const multiGet = async (names: readonly DocumentName[]) => {
    asked.push(names.map(({ _index, _id }) => `${_index}/${_id}`))
    return multiGetAnswer(names, documents, index => dropped.has(index))
  }
  const { readAt } = createPositionReader('p', multiGet, scheduleTimer)
  await readAt(scopeOf('org_a'), payout, 'at-position')
  documents.live = liveText('g2')
  documents['generation:g2'] = generationText('g2')
  documents['position:g2:0'] = positionText(12, 2_000)
  delete documents['generation:g1']
  delete documents['position:g1:0']
  dropped.add('p-g1-payouts')
  asked.length = 0
  return { documents, asked, dropped, readAt }
}

const reasonOf = async (act: Promise<unknown>): Promise<string | undefined> =>
  act.then(
    () => undefined,
    (error: unknown) => (error instanceof Refusal && error.code === 'unavailable' ? error.reason : String(error)),
  )

test.each(['at-position', 'may-be-older'] as const)(
  'an idle process reads a document (%s) from the live generation',
  async freshness => {
    const { readAt } = await idle()
    const { position, documents } = await readAt(scopeOf('org_a'), payout, freshness)
    expect(position).toMatchObject({ generation: { name: 'g2' }, publishedTo: 12 })
    expect(documents[0] && numberOf(documents[0], 'seq')).toBe(3)
  },
)

test('an idle process answers several first requests at once', async () => {
  const { readAt } = await idle()
  const reading = Array.from({ length: 5 }, () => readAt(scopeOf('org_a'), payout, 'at-position'))
  for (const { position } of await Promise.all(reading)) expect(position.generation.name).toBe('g2')
})

test('an idle process asks the dropped generation once', async () => {
  const { asked, readAt } = await idle()
  await readAt(scopeOf('org_a'), payout, 'may-be-older')
  await readAt(scopeOf('org_a'), payout, 'may-be-older')
  expect(asked.filter(names => names.some(name => name.includes('g1')))).toHaveLength(1)
})

test('a document is unavailable if its index is missing in the live generation', async () => {
  const { dropped, readAt } = await idle()
  dropped.add('p-g2-payouts')
  for (const freshness of ['at-position', 'may-be-older', 'at-position'] as const) {
    expect(await reasonOf(readAt(scopeOf('org_a'), payout, freshness))).toBe('elasticsearch_partial')
  }
})

test('a request is unavailable if the control index is missing', async () => {
  const { dropped, readAt } = await idle()
  dropped.add('p-control')
  expect(await reasonOf(readAt(scopeOf('org_a'), payout, 'at-position'))).toBe('elasticsearch_partial')
})
