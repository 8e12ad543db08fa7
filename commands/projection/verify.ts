/**
 * Whether two generations say the same, as of the positions that both have reached: every document of every organization, with nothing
 * of what came later. Reads, and changes nothing but the note that they were found equal.
 */
import { createHash } from 'node:crypto'
import type { Elasticsearch } from '../../projector/elasticsearch.ts'
import { changeGenerations } from '../../projector/generations.ts'
import { indexOf, type Kind, kinds } from '../../schemas/documents.ts'
import { addTo, type Sums, textOfSums } from '../../schemas/money.ts'
import { partitionOf } from '../../schemas/partition.ts'
import type { CommandContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { DIFFERENCES_SHOWN } from '../limits.ts'
import { asOf, type Document } from './as-of.ts'
import { assertOfOneSource, identityOf, positionsOf } from './generations.ts'
import { scan } from './scan.ts'

export type VerifyOptions = { readonly a: string; readonly b: string; readonly json: boolean }

export const verify = async ({ a, b, json }: VerifyOptions, context: CommandContext): Promise<ExitCode> => {
  if (a === b) throw new CommandError('a generation is always equal to itself: name two')
  const [ours, theirs] = [await identityOf(a, context), await identityOf(b, context)]
  assertOfOneSource(ours, theirs)
  const [reachedByA, reachedByB] = [await positionsOf(ours, context), await positionsOf(theirs, context)]
  const positions = reachedByA.map(({ position }, partition) =>
    Math.min(position, reachedByB[partition]?.position ?? 0),
  )
  const records = positions.reduce((sum, position) => sum + position, 0)
  context.say(`comparing ${a} and ${b} as of ${records} records`)
  const [left, right] = [await summarize(a, positions, context), await summarize(b, positions, context)]

  const organizations = [...new Set([...left.keys(), ...right.keys()])].sort()
  const differing = organizations.filter(org => left.get(org)?.digest !== right.get(org)?.digest)
  if (json) {
    const of = (org: string) => ({ [a]: left.get(org) ?? null, [b]: right.get(org) ?? null })
    for (const organization of organizations) {
      context.out(
        `${JSON.stringify({ organization, equal: !differing.includes(organization), ...of(organization) })}\n`,
      )
    }
  } else for (const org of organizations) context.out(`${lineOf(org, left.get(org), right.get(org))}\n`)

  if (differing.length > 0) {
    let yetToShow = DIFFERENCES_SHOWN
    for (const org of differing) {
      if (yetToShow === 0) break
      for (const difference of (await differencesOf(org, a, b, positions, context)).slice(0, yetToShow)) {
        yetToShow--
        context.out(json ? `${JSON.stringify(difference)}\n` : `${inWords(difference, a, b)}\n`)
      }
    }
    context.say(`${differing.length} of ${organizations.length} organizations differ`)
    return exitCodes.failed
  }
  await changeGenerations({ request: context.send, prefix: context.prefix }, now => ({
    ...now,
    verified: { ...now.verified, [b]: a },
  }))
  context.say(`equal: ${organizations.length} organizations, as of ${records} records`)
  return exitCodes.done
}

export type Summary = {
  readonly counts: Partial<Record<Kind, number>>
  /** By currency, as decimal strings: what is owed now, and what has left. */
  readonly owed: Record<string, string>
  readonly left: Record<string, string>
  /** Of every document; equal for equal documents, in whatever order they were read. */
  readonly digest: string
}

const nothingYet = () => ({
  counts: {} as Partial<Record<Kind, number>>,
  owed: new Map() as Sums,
  left: new Map() as Sums,
  digest: 0n,
})

const summarize = async (
  generation: string,
  positions: readonly number[],
  { send, prefix }: CommandContext,
): Promise<Map<string, Summary>> => {
  const found = new Map<string, ReturnType<typeof nothingYet>>()
  for (const kind of kinds) {
    for await (const { org, document } of documentsOf(generation, kind, undefined, positions, send, prefix)) {
      const summary = found.get(org) ?? nothingYet()
      found.set(org, summary)
      summary.counts[kind] = (summary.counts[kind] ?? 0) + 1
      summary.digest = (summary.digest + hashOf(kind, document)) % 2n ** 256n
      const { body, superseded_by_id } = document.source as { body?: Money; superseded_by_id?: string | null }
      if (kind === 'payouts' && superseded_by_id === null)
        addTo(summary.owed, body?.currency ?? '', body?.net_amount ?? '0')
      if (kind === 'payroll_files') addTo(summary.left, body?.currency ?? '', body?.amount ?? '0')
    }
  }
  return new Map(
    [...found].map(([org, { counts, owed, left, digest }]) => [
      org,
      { counts, owed: textOfSums(owed), left: textOfSums(left), digest: digest.toString(16).padStart(64, '0') },
    ]),
  )
}

type Money = { readonly currency?: string; readonly net_amount?: string; readonly amount?: string }
const hashOf = (kind: Kind, { id, source }: Document): bigint =>
  BigInt(
    `0x${createHash('sha256')
      .update(`${kind}\n${id}\n${JSON.stringify(source)}`)
      .digest('hex')}`,
  )

/** The documents of a kind as of these positions, of one organization or of all. */
export async function* documentsOf(
  generation: string,
  kind: Kind,
  org: string | undefined,
  positions: readonly number[],
  send: Elasticsearch['send'],
  prefix: string,
): AsyncGenerator<{ readonly org: string; readonly document: Document }> {
  for await (const document of scan(indexOf(prefix, generation, kind), org, send)) {
    const owner = String(document.source.org_id ?? '')
    const partition = kind === 'parked' ? Number(document.source.partition) : partitionOf(owner, positions.length)
    const then = asOf(kind, document, positions[partition] ?? 0)
    if (then !== undefined) yield { org: owner, document: then }
  }
}

type Difference = {
  readonly organization: string
  readonly kind: Kind
  readonly id: string
  /** Where in the document; empty for one that only one of them has. */
  readonly field: string
  readonly a: unknown
  readonly b: unknown
}

/** The first that differ, by kind and id, each with the first field that does. */
const differencesOf = async (
  organization: string,
  a: string,
  b: string,
  positions: readonly number[],
  { send, prefix }: CommandContext,
): Promise<Difference[]> => {
  const differences: Difference[] = []
  for (const kind of kinds) {
    const read = async (generation: string): Promise<Map<string, Document['source']>> => {
      const all = new Map<string, Document['source']>()
      const documents = documentsOf(generation, kind, organization, positions, send, prefix)
      for await (const { document } of documents) all.set(document.id, document.source)
      return all
    }
    const [left, right] = [await read(a), await read(b)]
    for (const id of [...new Set([...left.keys(), ...right.keys()])].sort()) {
      const found = firstDifference(left.get(id), right.get(id), '')
      if (found) differences.push({ organization, kind, id, ...found })
      if (differences.length === DIFFERENCES_SHOWN) return differences
    }
  }
  return differences
}

/** The first field in which two documents differ, and what stands there; nothing where they are equal. */
export const firstDifference = (
  a: unknown,
  b: unknown,
  field: string,
): Pick<Difference, 'field' | 'a' | 'b'> | undefined => {
  if (isObject(a) && isObject(b)) {
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const inside = firstDifference(own(a, name), own(b, name), field === '' ? name : `${field}.${name}`)
      if (inside) return inside
    }
    return undefined
  }
  return a === b ? undefined : { field, a, b }
}

/** Names are publishers' words, too: what every object has besides is none of theirs. */
const own = (of: Record<string, unknown>, name: string): unknown => (Object.hasOwn(of, name) ? of[name] : undefined)

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const inWords = ({ kind, id, field, a, b }: Difference, nameA: string, nameB: string): string => {
  if (a === undefined && field === '') return `${kind} ${id}: only in ${nameB}`
  if (b === undefined && field === '') return `${kind} ${id}: only in ${nameA}`
  return `${kind} ${id}: ${field} is ${JSON.stringify(a)} in ${nameA}, ${JSON.stringify(b)} in ${nameB}`
}

const NOTHING: Summary = { counts: {}, owed: {}, left: {}, digest: '' }

const lineOf = (org: string, a: Summary | undefined, b: Summary | undefined): string => {
  const { counts, owed, left } = a ?? b ?? NOTHING
  const sums = (of: Record<string, string>): string =>
    Object.entries(of)
      .map(([currency, sum]) => `${sum} ${currency}`)
      .join(', ') || 'nothing'
  const count = Object.entries(counts)
    .map(([kind, number]) => `${number} ${kind}`)
    .join(', ')
  const verdict = a?.digest === b?.digest ? 'equal' : 'DIFFERENT'
  return `${org === '' ? '(no organization)' : org}: ${verdict}; ${count}; owed ${sums(owed)}; left ${sums(left)}`
}
