/** Compares the bytes and the entity tags of every kind of answer with the digest of their form. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { answerChanges, answerHistory, answerTotals } from '../../api/answer/answer-changes.ts'
import type { Answering } from '../../api/answer/answer-page.ts'
import {
  ANSWER_FORM,
  answerByIds,
  answerList,
  answerPayout,
  answerRecord,
  answerStatement,
} from '../../api/answer/answer-page.ts'
import type { Context } from '../../api/http/request.ts'
import { usualPace } from '../../core/reading/pace.ts'
import { type Hit, sliceSearch } from '../../core/store/read/slice-documents.ts'
import { type ListKind, listKinds } from '../../schemas/stored/documents.ts'
import { recordText, searchAnswer } from '../api/answers.ts'
import { answering } from '../support/answering-request.ts'
import { payoutBodies } from '../support/bodies.ts'
import { generationOf } from '../support/layout.ts'

/** SHA-256 of all answers, by version of their form. Never change a line that was released. */
const FORMS: Readonly<Record<number, string>> = {
  1: '3670f4a5aae51936380980c4c0cb26989efbc6e75405e73bfe2cd258f1c7abaf',
  2: 'a1f0828a13c9a81538d99b84c1b939bf6ffa48a9761817dcc94969337a50f446',
  3: '665e9b2449d630a2417b54ddf11e62bcb5cb61e706819ba8a0c18dedabbc2b56',
  4: 'e0098f97d690f52942977b21bc0ffe78a4e341f487c74e34f21ac32bd58f40f2',
  5: '4b48ade8805750ec811e5aee0cd01ea78a236181b36871219ad546471d3fa2fe',
}

const position = {
  generation: generationOf(),
  publishedTo: 1_000,
  time: 1_000,
  takenBack: 0,
}
const pace = usualPace(new AbortController().signal)

const fields = { at: 1_000, until_seq: 20, superseded_by_id: 'payout_2', reverses_id: null, ordinal: 1 }
const hit = (kind: ListKind | 'statements', id: string, body: object | string, place: number): Hit => {
  const text = recordText(place, body, { ...fields, until_seq: id === 'payout_2' ? 5_000 : 20 })
  const [found] = sliceSearch(
    searchAnswer(`p-g1-${kind}`, [{ id: `org_a:${id}`, text, place }]),
    [{ name: `p-g1-${kind}`, kind: kind === 'statements' ? 'payouts' : kind }],
    'org_a',
  )
  if (!found) throw new Error('no hit')
  return found
}
const lines = [
  { id: 'line_1', amount: '10.00', description: 'é' },
  { id: 'line_2', amount: '-1', description: '' },
]
const steps = [{ name: 'base', output_amount: '9.00' }]
const first = payoutBodies({ id: 'payout_1', amount: '10.00', lines: lines.slice(0, 1), trace: steps })
const second = payoutBodies({ id: 'payout_2', amount: '9.00', lines, supersedes: 'payout_1' })
/** Returns new hits for each answer, because an answer reuses the bytes of its hits. */
const payouts = () => [hit('payouts', 'payout_1', first.body, 10), hit('payouts', 'payout_2', second.body, 20)]
const others = {
  reps: () => hit('reps', 'rep_1', { id: 'rep_1', name: 'A' }, 1),
  periods: () => hit('periods', 'period_1', { id: 'period_1', name: 'B' }, 2),
  payroll_files: () => hit('payroll_files', 'payroll_1', { id: 'payroll_1', amount: '1' }, 30),
}

const answered = async (answer: (ctx: Context<Answering>) => void | Promise<void>): Promise<string> => {
  const headers: Record<string, string> = {}
  const ctx = {
    set: (name: string, value: string) => (headers[name] = value),
    get: () => '',
    state: answering(),
    body: '',
  }
  await answer(ctx as unknown as Context<Answering>)
  return `${headers.ETag} ${ctx.body}`
}

test('the bytes and entity tags of answers change only together with ANSWER_FORM', async () => {
  const [one, two] = payouts()
  if (!one || !two) throw new Error('no payouts')
  const row = {
    period_id: 'period_1',
    currency: 'EUR',
    owed_amount: '9',
    owed_count: 1,
    paid_amount: '0',
    paid_count: 0,
    open_amount: '9',
  }
  const read = {
    position,
    totals: { last_change_id: 'payout_2', last_sequence: 5, totals: [row, row] },
    last: undefined,
  }
  const answers = await Promise.all([
    ...listKinds.map(kind =>
      answered(ctx =>
        answerList(
          ctx,
          kind,
          { position, hits: kind === 'payouts' ? payouts().slice(1) : [others[kind]()], hasMore: true },
          undefined,
        ),
      ),
    ),
    answered(ctx =>
      answerList(ctx, 'payouts', { position, hits: [], hasMore: false }, { kind: 'payouts', id: 'payout_9' }),
    ),
    answered(ctx => answerByIds(ctx, 'payouts', { position, hits: payouts(), hasMore: true, left: ['payout_3'] })),
    answered(ctx => answerByIds(ctx, 'reps', { position, hits: [others.reps()], hasMore: false, left: [] })),
    ...(['reps', 'periods', 'payroll_files'] as const).map(kind =>
      answered(ctx => answerRecord(ctx, kind, { position, slice: others[kind]() })),
    ),
    answered(ctx => answerPayout(ctx, { position, slice: one })),
    answered(ctx =>
      answerStatement(ctx, { position, slice: two, trace: hit('statements', 'payout_2', second.statement, 20) }),
    ),
    answered(ctx =>
      answerStatement(ctx, {
        position,
        slice: payouts()[0] as Hit,
        trace: hit('statements', 'payout_1', first.statement, 10),
      }),
    ),
    answered(ctx =>
      answerChanges(
        ctx,
        {
          position,
          hits: [others.reps(), others.periods(), ...payouts(), others.payroll_files()],
          sequences: [1, 2, 3, 4, 5],
          hasMore: true,
        },
        undefined,
        pace,
      ),
    ),
    answered(ctx =>
      answerHistory(ctx, { position, hits: payouts(), hasMore: false, before: undefined }, undefined, pace),
    ),
    answered(ctx => answerTotals(ctx, read, pace)),
  ])
  for (const answer of answers) expect(answer).toMatch(/^"[A-Za-z0-9_-]{27}" \{"data":/)
  expect(new Set(answers.map(answer => answer.slice(0, 29))).size).toBe(answers.length)
  const digest = createHash('sha256').update(answers.join('\n')).digest('hex')
  const told =
    'Did you change the bytes on purpose? Raise ANSWER_FORM in api/answer/answer-page.ts, and add its digest here.'
  expect(digest, told).toBe(FORMS[ANSWER_FORM])
})
