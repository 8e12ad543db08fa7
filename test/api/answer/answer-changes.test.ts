/** The entity tags of pages of changes. */
import { expect, test } from 'vitest'
import { answerChanges } from '../../../api/answer/answer-changes.ts'
import type { Answering } from '../../../api/answer/answer-page.ts'
import type { Context } from '../../../api/http/request.ts'
import { usualPace } from '../../../core/reading/pace.ts'
import { sliceSearch } from '../../../core/store/read/slice-documents.ts'
import { answering } from '../../support/answering-request.ts'
import { generationOf } from '../../support/layout.ts'
import { recordText, searchAnswer } from '../answers.ts'

const position = { generation: generationOf(), publishedTo: 1_000, time: 0, takenBack: 0 }
const pace = usualPace(new AbortController().signal)

/** Answers a page with one version of a rep. */
const tagOf = async ({ at = 1_000, sequence = 7, ordinal = 2 } = {}): Promise<string | undefined> => {
  const text = recordText(10, { id: 'rep_1', name: 'A' }, { at, ordinal })
  const answer = searchAnswer('i', [{ id: 'org_a:rep_1:10', text, place: 10 }])
  const hits = sliceSearch(answer, [{ name: 'i', kind: 'reps' }], 'org_a')
  const headers: Record<string, string> = {}
  const ctx = { set: (name: string, value: string) => (headers[name] = value), get: () => '', state: answering() }
  const page = { position, hits, sequences: [sequence], hasMore: false }
  const after = { kind: 'reps', id: 'rep_2', ordinal: 1 } as const
  await answerChanges(ctx as unknown as Context<Answering>, page, after, pace)
  return headers.ETag
}

test('a page of changes has another entity tag at another time, with another number and of another version', async () => {
  const tags = await Promise.all([tagOf(), tagOf({ at: 2_000 }), tagOf({ sequence: 6 }), tagOf({ ordinal: 1 })])
  expect(new Set(tags).size).toBe(4)
  expect(await tagOf()).toBe(tags[0])
})
