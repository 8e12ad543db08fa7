/**
 * The records of a close, read through the readers of the API as of one change, into files with a line for each. In: an
 * organization, a period, a moment. Out: files of NDJSON. Promises: nothing of another organization or period, and
 * nothing after that change, is in a file.
 */
import { join } from 'node:path'
import {
  changeNameOf,
  type ListParameters,
  momentOf,
  type Page,
  recordIdOf,
  sequenceIn,
  textOfChange,
  textOfListed,
} from '../../core/reading/index.ts'
import type { ListKind } from '../../schemas/stored/documents.ts'
import { linesOf, openLines } from '../export/lines.ts'
import type { ExportReaders } from '../export/readers.ts'
import { CommandError } from '../failures.ts'
import { EXPORT_PAGE } from '../limits.ts'

type Asked = {
  readonly org: string
  readonly period: string
  /** The id of the change. */
  readonly change: string
  readonly directory: string
  readonly signal: AbortSignal
}

/** Writes a file of lines. */
export const writeLines = async (
  directory: string,
  name: string,
  pages: AsyncIterable<readonly Buffer[]> | Iterable<readonly Buffer[]>,
): Promise<void> => {
  await using stack = new AsyncDisposableStack()
  const file = await openLines(join(directory, `${name}.ndjson`))
  stack.defer(file.close)
  for await (const texts of pages) await file.append(texts)
}

/** A line for each object. */
export const writeObjects = (directory: string, name: string, objects: readonly object[]): Promise<void> =>
  writeLines(directory, name, [objects.map(object => Buffer.from(JSON.stringify(object)))])

/** Yields the objects of a file. */
export async function* objectsIn<Item>(directory: string, name: string): AsyncGenerator<Item> {
  for await (const line of linesOf(join(directory, `${name}.ndjson`))) yield JSON.parse(line.toString())
}

/** Writes changes, payouts, statements, payroll records, the period, and the reps that they name. */
export const writeRecords = async (asked: Asked, readers: ExportReaders): Promise<void> => {
  const { org, period, change, directory, signal } = asked
  const asOf = momentOf(change)
  const reps = new Set<string>()
  async function* pagesOf(list: ListKind | 'changes', filter?: ListParameters['filter']): AsyncGenerator<Page> {
    let startingAfter: ListParameters['startingAfter']
    for (let more = true; more; ) {
      const page = await readers.readList(org, list, {
        limit: EXPORT_PAGE,
        startingAfter,
        asOf,
        ...(filter && { filter }),
      })
      signal.throwIfAborted()
      const last = page.hits.at(-1)
      if (last) startingAfter = list === 'changes' ? changeNameOf(last) : { kind: list, id: recordIdOf(last) }
      more = page.hasMore
      yield page
    }
  }
  async function* listed(kind: ListKind, filter?: ListParameters['filter'], isWanted = (_id: string) => true) {
    for await (const { hits } of pagesOf(kind, filter)) {
      yield hits.filter(hit => isWanted(recordIdOf(hit))).map(hit => textOfListed(kind, hit))
    }
  }
  async function* changes() {
    for await (const page of pagesOf('changes', { period_id: period })) {
      yield page.hits.map((hit, at) => textOfChange(hit, sequenceIn(page, at)))
    }
  }
  async function* statements() {
    let ids: string[] = []
    const read = (): Promise<Buffer[]> =>
      Promise.all(ids.map(async id => (await readers.readStatement(org, id, asOf)).text))
    for await (const { id } of objectsIn<{ id: string }>(directory, 'payouts')) {
      if (ids.push(id) < STATEMENTS_AT_ONCE) continue
      yield await read()
      ids = []
    }
    yield await read()
  }
  await writeLines(
    directory,
    'periods',
    listed('periods', undefined, id => id === period),
  )
  if ((await Array.fromAsync(objectsIn(directory, 'periods'))).length === 0) {
    throw new CommandError(`${org} has no period ${period} as of ${change}`)
  }
  await writeLines(directory, 'changes', changes())
  await writeLines(directory, 'payouts', listed('payouts', { period_id: period }))
  await writeLines(directory, 'statements', statements())
  await writeLines(directory, 'payroll_files', listed('payroll_files', { period_id: period }))
  type Changed = { readonly record: { readonly rep_id: string } }
  for await (const { record } of objectsIn<Changed>(directory, 'changes')) reps.add(record.rep_id)
  await writeLines(
    directory,
    'reps',
    listed('reps', undefined, id => reps.has(id)),
  )
}

const STATEMENTS_AT_ONCE = 8
