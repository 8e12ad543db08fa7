/** Reads everything back over HTTP, with the published keys, and compares it with what was published. */

import { type Client, RefusedError } from '../../client/src/index.ts'
import type { ApiRecord, Expected } from '../data/expected.ts'
import type { DemoOrganization } from '../data/organization.ts'
import type { Random } from '../data/random.ts'
import { type AnswerDifference, compareLists, compareRecord, compareValues, lists } from './compare.ts'
import { inParallel } from './in-parallel.ts'

export type Case = { readonly organization: DemoOrganization; readonly expected: Expected }
type VerifySteps = {
  readonly clientFor: (key: string) => Client
  /** Called with the number of records read. */
  readonly onRead: (count: number) => void
  readonly random: Random
}

/** Statements read of each organization. Superseded payouts are all read. */
const STATEMENTS_READ = 200
const AT_ONCE = 8

/** Records that are read if none is missing. */
export const recordsToRead = (cases: readonly Case[]): number =>
  cases.reduce(
    (total, { expected }) =>
      total +
      lists.reduce((sum, list) => sum + expected[list].length, 0) +
      expected.superseded.length +
      Math.min(STATEMENTS_READ, expected.statements.size),
    0,
  )

/** Reads every case and returns all differences. */
export const verifyAnswers = async (cases: readonly Case[], steps: VerifySteps): Promise<AnswerDifference[]> => {
  const differences: AnswerDifference[] = []
  for (const [index, each] of cases.entries()) {
    const client = steps.clientFor(each.organization.keys.reading.text)
    differences.push(...(await verifyLists(each, client, steps)))
    differences.push(...(await verifySingles(each, client, steps)))
    const other = cases[(index + 1) % cases.length]
    if (other && other !== each) differences.push(...(await verifyApart(each, other, client)))
    differences.push(...(await verifyKeys(each, steps)))
  }
  return differences
}

const verifyLists = async ({ organization, expected }: Case, client: Client, { onRead }: VerifySteps) => {
  const readAll = async (list: AsyncIterable<ApiRecord>): Promise<ApiRecord[]> => {
    const records: ApiRecord[] = []
    for await (const record of list) {
      records.push(record)
      onRead(1)
    }
    return records
  }
  const got = {
    reps: await readAll(client.reps()),
    periods: await readAll(client.periods()),
    payouts: await readAll(client.payouts()),
    payroll_files: await readAll(client.payrollRecords()),
  }
  return compareLists(organization.name, expected, got)
}

/** Reads what lists do not show: superseded payouts and calculation traces. */
const verifySingles = async (
  { organization, expected }: Case,
  client: Client,
  { onRead, random }: VerifySteps,
): Promise<AnswerDifference[]> => {
  const verifyOne = async (path: 'payouts' | 'statements', record: ApiRecord): Promise<AnswerDifference[]> => {
    const reading = path === 'payouts' ? client.payout(record.id) : client.statement(record.id)
    const got = await reading.catch(refusedOnly)
    if (!(got instanceof RefusedError)) onRead(1)
    return compareRecord(`${organization.name}, /${path}/{id}`, record, got instanceof RefusedError ? undefined : got)
  }
  const sample = takeSome([...expected.statements.values()], STATEMENTS_READ, random)
  const superseded = await inParallel(expected.superseded, AT_ONCE, record => verifyOne('payouts', record))
  const statements = await inParallel(sample, AT_ONCE, record => verifyOne('statements', record))
  return [...superseded, ...statements].flat()
}

/** A record of another organization must be unknown: by its id, and as a cursor. */
const verifyApart = async ({ organization }: Case, other: Case, client: Client): Promise<AnswerDifference[]> => {
  const id = other.expected.payouts[0]?.id ?? ''
  const what = `${organization.name} asks for ${other.organization.name}'s ${id}`
  const single = await answerTo(client.payout(id))
  const cursor = await answerTo(firstOf(client.payouts({ startingAfter: id })))
  return [
    ...compareValues(what, '404 not_found', single),
    ...compareValues(`${what} as a cursor`, '400 invalid_cursor', cursor),
  ]
}

/** Checks the refusals of keys that may not read. */
const verifyKeys = async ({ organization }: Case, { clientFor }: VerifySteps): Promise<AnswerDifference[]> => {
  const { revoked, forbidden } = organization.keys
  const [afterRevoked, afterForbidden] = [
    await answerTo(firstOf(clientFor(revoked.text).reps())),
    await answerTo(firstOf(clientFor(forbidden.text).reps())),
  ]
  return [
    ...compareValues(`${organization.name}, its revoked key`, '401 unauthorized', afterRevoked),
    ...compareValues(`${organization.name}, its key without permission`, '403 forbidden', afterForbidden),
  ]
}

const firstOf = async (list: AsyncIterable<unknown>): Promise<unknown> => {
  for await (const item of list) return item
  return undefined
}

/** Returns the status and the code of a refusal; `answered` if there is none. */
const answerTo = async (reading: Promise<unknown>): Promise<string> => {
  const answer = await reading.catch(refusedOnly)
  return answer instanceof RefusedError ? `${answer.status} ${answer.code}` : 'answered'
}

/** Returns a refusal, and throws any other error. */
const refusedOnly = (error: unknown): RefusedError => {
  if (error instanceof RefusedError) return error
  throw error
}

const takeSome = <Item>(items: readonly Item[], count: number, random: Random): Item[] => {
  const rest = [...items]
  return Array.from({ length: Math.min(count, items.length) }, () =>
    rest.splice(random.integer(0, rest.length - 1), 1),
  ).flat()
}
