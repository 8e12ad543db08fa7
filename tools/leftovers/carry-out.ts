/**
 * Writes of documents in bulk, each until it is done. In: operations. Out: nothing, once each of them is done.
 * Promises: a request whose answer was lost can be sent again: an operation that meets a conflict is asked whether it
 * is done. An operation is done only if its item of the answer says so, by index and id.
 * Can go wrong: Elasticsearch does not answer, or refuses an operation, or an ingest pipeline of others ran: the
 *   command ends.
 */

import {
  assertNoPipeline,
  type BulkItem,
  errorType,
  type FoundDocument,
  getEach,
  getFromPrimaries,
  isTransient,
  WITHOUT_PIPELINES,
} from '../../core/store/index.ts'
import type { Address } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import { type RetryContext, withRetries } from '../documents/read-retries.ts'
import { CommandError } from '../failures.ts'
import { FORGET_WAIT_MS, READ_RETRY_MS } from '../limits.ts'

export type Operation = Address & {
  /** The line of the action, and that of the document. */
  readonly lines: readonly object[]
  /** Called with the document after a conflict. @returns whether the operation is done, or else is tried again */
  readonly onConflict?: (found: FoundDocument) => boolean
}

/** After a conflict, a deletion is done if the document is gone. @throws CommandError if it was written meanwhile */
export const doneIfMissing = (found: FoundDocument): boolean => {
  if (!found.found) return true
  throw new CommandError(CHANGED)
}

export const CHANGED = 'somebody writes documents meanwhile: stop all projectors, and run the same again'

const OTHER_ITEMS = 'Elasticsearch answers a bulk request with other items than were sent: run the same again'

type Steps = RetryContext & Pick<CommandContext, 'say'>
/** By the name of the action, as in the lines of an operation. */
type Items = { readonly items?: readonly (Readonly<Record<string, BulkItem['index']>> | null)[] }

export const carryOut = async (operations: readonly Operation[], steps: Steps): Promise<void> => {
  let waiting = operations
  for (let waited = 0; waiting.length > 0; waited += READ_RETRY_MS) {
    const now = waiting
    waiting = await tryAll(now, steps)
    if (waiting.length === 0) return
    if (waited >= FORGET_WAIT_MS) throw new CommandError(`${waiting[0]?._index} takes no writes: run the same again`)
    if (waited === 0)
      steps.say('waiting until Elasticsearch takes earlier versions: a minute, unless index.gc_deletes is set')
    await steps.sleep(READ_RETRY_MS)
  }
}

const cannotWrite = (index: string | undefined, status: number): CommandError =>
  new CommandError(`${index} cannot be written: Elasticsearch answers ${status}`)

/** Returns the operations to try again. */
const tryAll = async (operations: readonly Operation[], steps: Steps): Promise<Operation[]> => {
  const bulk = Buffer.from(operations.flatMap(({ lines }) => lines.map(line => `${JSON.stringify(line)}\n`)).join(''))
  const request = { method: 'POST', path: '/_bulk', query: WITHOUT_PIPELINES, bulk } as const
  const { status, body } = await withRetries(steps, () => steps.send<Items>(request))
  if (status === 413 && operations.length > 1) {
    const half = operations.length >> 1
    return [...(await tryAll(operations.slice(0, half), steps)), ...(await tryAll(operations.slice(half), steps))]
  }
  if (status !== 200) throw cannotWrite(operations[0]?._index, status)
  const { items } = body
  if (items?.length !== operations.length) throw new CommandError(OTHER_ITEMS)
  const again: Operation[] = []
  const conflicts: Operation[] = []
  for (const [at, operation] of operations.entries()) {
    const { _index, _id, lines, onConflict } = operation
    const [action = ''] = Object.keys(lines[0] ?? {})
    const item = items[at]?.[action]
    const got = item?.status
    if (item?._index !== _index || item._id !== _id || typeof got !== 'number') throw new CommandError(OTHER_ITEMS)
    assertNoPipeline(_index, item)
    const isGone = action === 'delete' && got === 404 && errorType(item) === undefined
    if (got === 200 || got === 201 || isGone) continue
    if (got === 409 && onConflict) conflicts.push(operation)
    else if (isTransient(got, item)) again.push(operation)
    else throw cannotWrite(_index, got)
  }
  const docs = conflicts.map(({ _index, _id, routing }) => ({ _index, _id, routing }))
  const found = await getEach(docs, part => withRetries(steps, () => getFromPrimaries(steps.send, part)))
  for (const [at, operation] of conflicts.entries()) {
    const document = found[at]
    if (document === undefined || !operation.onConflict?.(document)) again.push(operation)
  }
  return again
}
