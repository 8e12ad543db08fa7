/** Reads everything back over HTTP, with the keys that were published, and compares it with what was published. */

import type { ApiRecord, Expected } from '../data/expected.ts'
import type { Organization } from '../data/organization.ts'
import type { Random } from '../data/random.ts'
import { compareLists, compareRecord, type Difference, difference, lists } from './compare.ts'
import { type ApiReader, inParallel } from './read-api.ts'

export type Case = { readonly organization: Organization; readonly expected: Expected }
export type VerifySteps = {
  readonly readerFor: (key: string) => ApiReader
  /** Told of every record that was read. */
  readonly read: (count: number) => void
  readonly random: Random
}

/** Of every organization its statements are read, so many; and every superseded payout there is. */
const STATEMENTS_READ = 200
/** Single reads at once. */
const AT_ONCE = 8

/** How many records are read when nothing is missing. */
export const recordsToRead = (cases: readonly Case[]): number =>
  cases.reduce(
    (total, { expected }) =>
      total +
      lists.reduce((sum, list) => sum + expected[list].length, 0) +
      expected.superseded.length +
      Math.min(STATEMENTS_READ, expected.statements.size),
    0,
  )

export const verify = async (cases: readonly Case[], steps: VerifySteps): Promise<Difference[]> => {
  const differences: Difference[] = []
  for (const [index, each] of cases.entries()) {
    const reader = steps.readerFor(each.organization.keys.reading.text)
    differences.push(...(await verifyLists(each, reader, steps)))
    differences.push(...(await verifySingles(each, reader, steps)))
    const other = cases[(index + 1) % cases.length]
    if (other && other !== each) differences.push(...(await verifyApart(each, other, reader)))
    differences.push(...(await verifyKeys(each, steps)))
  }
  return differences
}

const verifyLists = async ({ organization, expected }: Case, { walk }: ApiReader, { read }: VerifySteps) => {
  const got = {
    reps: await walk('reps', read),
    periods: await walk('periods', read),
    payouts: await walk('payouts', read),
    payroll_files: await walk('payroll_files', read),
  }
  return compareLists(organization.name, expected, got)
}

/** What lists do not show: replaced payouts, and the trace of every step. */
const verifySingles = async (
  { organization, expected }: Case,
  reader: ApiReader,
  { read, random }: VerifySteps,
): Promise<Difference[]> => {
  const verifyOne = async (path: string, record: ApiRecord): Promise<Difference[]> => {
    const { status, body } = await reader.ask(`${path}/${record.id}`)
    if (status === 200) read(1)
    const got = status === 200 ? (body.data as ApiRecord) : undefined
    return compareRecord(`${organization.name}, ${path}/{id}`, record, got)
  }
  const sample = takeSome([...expected.statements.values()], STATEMENTS_READ, random)
  const superseded = await inParallel(expected.superseded, AT_ONCE, record => verifyOne('/payouts', record))
  const statements = await inParallel(sample, AT_ONCE, record => verifyOne('/statements', record))
  return [...superseded, ...statements].flat()
}

/** Another organization's record is not there: not by its id, and not as a place to go on from. */
const verifyApart = async ({ organization }: Case, other: Case, reader: ApiReader): Promise<Difference[]> => {
  const id = other.expected.payouts[0]?.id
  const [single, cursor] = [await reader.ask(`/payouts/${id}`), await reader.ask(`/payouts?starting_after=${id}`)]
  const what = `${organization.name} asks for ${other.organization.name}'s ${id}`
  return [
    ...difference(what, '404 not_found', `${single.status} ${single.body.error?.code}`),
    ...difference(`${what} as a cursor`, '400 invalid_cursor', `${cursor.status} ${cursor.body.error?.code}`),
  ]
}

/** What keys that may not read are answered. */
const verifyKeys = async ({ organization }: Case, { readerFor }: VerifySteps): Promise<Difference[]> => {
  const answerTo = async (key: string): Promise<string> => {
    const { status, body } = await readerFor(key).ask('/reps')
    return `${status} ${body.error?.code}`
  }
  const { revoked, forbidden } = organization.keys
  return [
    ...difference(`${organization.name}, its revoked key`, '401 unauthorized', await answerTo(revoked.text)),
    ...difference(`${organization.name}, its key without permission`, '403 forbidden', await answerTo(forbidden.text)),
  ]
}

const takeSome = <Item>(items: readonly Item[], count: number, random: Random): Item[] => {
  const rest = [...items]
  return Array.from({ length: Math.min(count, items.length) }, () =>
    rest.splice(random.integer(0, rest.length - 1), 1),
  ).flat()
}
