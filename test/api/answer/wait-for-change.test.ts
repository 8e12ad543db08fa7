/** The step that waits for a change, with a wait that the test ends. */
import { expect, test } from 'vitest'
import { waitForChange } from '../../../api/answer/wait-for-change.ts'
import type { ChangeWatch } from '../../../core/reading/watch-changes.ts'
import { Refusal } from '../../../core/runtime/refusals.ts'
import { answering } from '../../support/answering-request.ts'
import { generationOf } from '../../support/layout.ts'
import { scopeOf } from '../../support/read-scope.ts'

const generation = generationOf()
const position = { generation, publishedTo: 1, time: 0, takenBack: 0 }
const nothing = () => undefined

/** Runs a request whose wait ends like this, and returns whether the next step runs. */
const run = async (
  end: 'change' | 'first search' | 'time is up',
  recheckKey: () => Promise<void>,
): Promise<boolean> => {
  const wait: ChangeWatch['wait'] = async (_scope, _asked, _milliseconds, { onTurn, onWait }) => {
    onTurn()
    if (end === 'first search') return undefined
    onWait()
    return end === 'change' ? undefined : position
  }
  const { reservation } = answering()
  const memory = { open: () => ({ scope: scopeOf('org_a'), reservation }), close: nothing }
  const step = waitForChange('/changes', { wait } as ChangeWatch, memory, () => 0)
  const spent = { waited: 0, bytesRead: 0, held: undefined }
  const state = { spent, route: '/changes', query: 'wait=60', key: { org: 'org_a' }, renewTime: nothing, recheckKey }
  let isAnswered = false
  const ctx = { state, req: { socket: { setTimeout: nothing } }, res: { once: nothing } }
  await step(ctx as unknown as Parameters<typeof step>[0], async () => {
    isAnswered = true
  })
  return isAnswered
}

test.each(['change', 'first search', 'time is up'] as const)(
  'a key that was revoked while its request waited or queued gets no page, also no empty one: %s',
  async end => {
    expect(await run(end, async () => undefined)).toBe(true)
    const recheckKey = async () => Promise.reject(new Refusal('unauthorized'))
    await expect(run(end, recheckKey)).rejects.toMatchObject({ code: 'unauthorized' })
  },
)
