/**
 * An API process that is idle while its generation is replaced and dropped. Then it gets several requests at once, and
 * must answer each with the content of the model. Not simulated: how `drop` waits until nobody writes any more.
 */

import { answerList, answerPayout, answerStatement } from '../../api/answer/answer-page.ts'
import { createReaders } from '../../core/reading/readers.ts'
import { changeGenerations } from '../../core/store/generations/generations.ts'
import { uncounted } from '../../core/store/read/scope.ts'
import { controlIndexOf, generationId, indexOf, kinds, positionId, timesId } from '../../schemas/stored/documents.ts'
import { scopeOf } from '../support/read-scope.ts'
import { textOf, textOfItem } from './history.ts'
import type { Operator } from './operator.ts'
import { PREFIX } from './promises.ts'
import type { World } from './readers.ts'
import { createSearches, noIndexChecks } from './searches.ts'
import { answered } from './walk.ts'

/** Milliseconds after which no projector keeps a generation up that was removed from the live document. */
const STOP = 20_000
const LIMIT = 50

/** Returns what an idle process answered wrongly after another generation was made live and its own was dropped. */
export const readAfterDrop = async (world: World, operator: Operator): Promise<string | undefined> => {
  const { clock, engine, promises, coverage } = world
  const read = createIdleProcess(world)
  const before = promises.live()?.generation ?? ''
  await read()
  // The operator may refuse a swap, with a reason.
  if (!(await operator.swapNow()) || promises.live()?.generation === before) return undefined
  await operator.change(steps => changeGenerations(steps, now => without(before, now)))
  await new Promise<void>(resolve => void clock.after(STOP, resolve))
  for (const kind of kinds) engine.indices.delete(indexOf(PREFIX, before, kind))
  const control = engine.indices.get(controlIndexOf(PREFIX))
  for (const id of [...(control?.documents.keys() ?? [])]) if (isOf(before, id)) control?.delete({ _id: id })
  coverage.count('generations dropped beside an idle API process')
  return read()
}

const without = <Now extends { readonly active: readonly string[] }>(generation: string, now: Now) => ({
  ...now,
  active: now.active.filter(name => name !== generation),
  previous: null,
})

const isOf = (generation: string, id: string): boolean =>
  id === generationId(generation) || id === timesId(generation) || id.startsWith(positionId(generation, 0).slice(0, -1))

/** Returns a function that sends one request of each kind for each organization, and returns what was wrong. */
const createIdleProcess = ({ clock, engine, faults, history }: World) => {
  const { search, multiGet } = createSearches(clock, engine, faults)
  const later = (milliseconds: number, run: () => void) => clock.after(milliseconds, run)
  const { readers } = createReaders({
    prefix: PREFIX,
    reads: uncounted({ search, multiGet }),
    indexChecks: noIndexChecks,
    ...clock.clocks,
    later,
  })

  const readsOf = (org: string): Promise<string | undefined>[] => {
    const { payouts, statements, lists } = history.at(org, Number.MAX_SAFE_INTEGER)
    const [id] = payouts.keys()
    const expectText = (what: string, got: unknown, wanted: string | undefined): string | undefined =>
      textOfItem(got) === wanted ? undefined : `${what} of ${org} differs from the model`
    const list = readers.list(scopeOf(org), {
      list: 'payouts',
      limit: LIMIT,
      startingAfter: undefined,
      asOf: undefined,
    })
    const ofList = list.then(page => {
      const { data } = answered<{ data: unknown[] }>(ctx => answerList(ctx, 'payouts', page, undefined))
      const wanted = lists.payouts.slice(0, LIMIT).map(({ text }) => text)
      return textOf(data.map(textOfItem)) === textOf(wanted) ? undefined : `the list of ${org} differs from the model`
    })
    if (id === undefined) return [ofList]
    const asked = { id, asOf: undefined }
    const record = readers.records.record(scopeOf(org), 'payouts', asked)
    const statement = readers.records.statement(scopeOf(org), asked)
    return [
      record.then(found => {
        const { data } = answered<{ data: unknown }>(ctx => answerPayout(ctx, found))
        return expectText(id, data, payouts.get(id)?.text)
      }),
      statement.then(found => {
        const { data } = answered<{ data: unknown }>(ctx => answerStatement(ctx, found))
        return expectText(`the statement of ${id}`, data, statements.get(id))
      }),
      ofList,
    ]
  }
  return async (): Promise<string | undefined> => {
    const reads = history.organizations.flatMap(readsOf)
    const results = await Promise.allSettled(reads)
    return results
      .map(result =>
        result.status === 'fulfilled' ? result.value : `an idle process: ${String(result.reason.reason)}`,
      )
      .find(wrong => wrong !== undefined)
  }
}
