/** Reads everything back over HTTP, with the published keys, and compares it with what was published. */

import type { ApiRecord, Expected } from '../data/expected.ts'
import type { DemoOrganization } from '../data/organization.ts'
import type { Random } from '../data/random.ts'
import { type AnswerDifference, compareLists, compareRecord, compareValues, lists } from './compare.ts'
import { type ApiReader, inParallel } from './read-api.ts'

export type Case = { readonly organization: DemoOrganization; readonly expected: Expected }
type VerifySteps = {
  readonly readerFor: (key: string) => ApiReader
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
    const reader = steps.readerFor(each.organization.keys.reading.text)
    differences.push(...(await verifyLists(each, reader, steps)))
    differences.push(...(await verifySingles(each, reader, steps)))
    const other = cases[(index + 1) % cases.length]
    if (other && other !== each) differences.push(...(await verifyApart(each, other, reader)))
    differences.push(...(await verifyKeys(each, steps)))
  }
  return differences
}

const verifyLists = async ({ organization, expected }: Case, { walk }: ApiReader, { onRead }: VerifySteps) => {
  const got = {
    reps: await walk('reps', onRead),
    periods: await walk('periods', onRead),
    payouts: await walk('payouts', onRead),
    payroll_files: await walk('payroll_files', onRead),
  }
  return compareLists(organization.name, expected, got)
}

/** Reads what lists do not show: superseded payouts and calculation traces. */
const verifySingles = async (
  { organization, expected }: Case,
  reader: ApiReader,
  { onRead, random }: VerifySteps,
): Promise<AnswerDifference[]> => {
  const verifyOne = async (path: string, record: ApiRecord): Promise<AnswerDifference[]> => {
    const { status, body } = await reader.get<ApiRecord>(`${path}/${record.id}`)
    if (status === 200) onRead(1)
    return compareRecord(`${organization.name}, ${path}/{id}`, record, status === 200 ? body.data : undefined)
  }
  const sample = takeSome([...expected.statements.values()], STATEMENTS_READ, random)
  const superseded = await inParallel(expected.superseded, AT_ONCE, record => verifyOne('/payouts', record))
  const statements = await inParallel(sample, AT_ONCE, record => verifyOne('/statements', record))
  return [...superseded, ...statements].flat()
}

/** A record of another organization must be unknown: by its id, and as a cursor. */
const verifyApart = async ({ organization }: Case, other: Case, reader: ApiReader): Promise<AnswerDifference[]> => {
  const id = other.expected.payouts[0]?.id
  const [single, cursor] = [await reader.get(`/payouts/${id}`), await reader.get(`/payouts?starting_after=${id}`)]
  const what = `${organization.name} asks for ${other.organization.name}'s ${id}`
  return [
    ...compareValues(what, '404 not_found', `${single.status} ${single.body.error?.code}`),
    ...compareValues(`${what} as a cursor`, '400 invalid_cursor', `${cursor.status} ${cursor.body.error?.code}`),
  ]
}

/** Checks the refusals of keys that may not read. */
const verifyKeys = async ({ organization }: Case, { readerFor }: VerifySteps): Promise<AnswerDifference[]> => {
  const answerTo = async (key: string): Promise<string> => {
    const { status, body } = await readerFor(key).get('/reps')
    return `${status} ${body.error?.code}`
  }
  const { revoked, forbidden } = organization.keys
  return [
    ...compareValues(`${organization.name}, its revoked key`, '401 unauthorized', await answerTo(revoked.text)),
    ...compareValues(
      `${organization.name}, its key without permission`,
      '403 forbidden',
      await answerTo(forbidden.text),
    ),
  ]
}

const takeSome = <Item>(items: readonly Item[], count: number, random: Random): Item[] => {
  const rest = [...items]
  return Array.from({ length: Math.min(count, items.length) }, () =>
    rest.splice(random.integer(0, rest.length - 1), 1),
  ).flat()
}
