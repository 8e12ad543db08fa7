/**
 * Finds personal texts: names and e-mail addresses of reps, labels of their payroll records, and parked records of both
 * topics that have any of them, or that nobody can read. In: a generation. Out: where each text is, and whether it is
 * sealed.
 */

import { toRawRecord } from '../../core/log/index.ts'
import { parseSealedText, SEAL_KEY_ID, SEALED_PREFIX } from '../../schemas/sealed/sealed-text.ts'
import { API_KEYS_GENERATION, apiKeysParkedIndexOf, type ParkedDocument } from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import { isId } from '../../schemas/values.ts'
import type { CommandContext } from '../context.ts'
import type { Document, Fields } from '../documents/as-of.ts'
import { scan } from '../documents/scan.ts'
import { findRemains } from '../generations/remains.ts'
import { sandboxesOf, sandboxLabel } from '../generations/sandboxes.ts'
import { type Concern, concernOf, type Subject } from './person-in-bytes.ts'

/** A text in a stored document, or all sealed texts of a parked record. */
export type FoundText = {
  readonly kind: 'reps' | 'payroll_files' | 'parked'
  /** The record; of a parked one topic:partition:offset. */
  readonly id: string
  /** The offset of its event. */
  readonly offset: number
  /** Undefined if the parked record does not name a rep and an organization. */
  readonly subject: Subject | undefined
  /** Whether it concerns the person that is searched for. */
  readonly concern: Concern
  /** The key ids of its sealed texts; empty if all are plain. */
  readonly keys: readonly string[]
  /** The sealed texts as they were published. */
  readonly sealed: readonly string[]
  /** Number of texts in the open; undefined for a parked record, where it is not known. */
  readonly plain: number | undefined
}

/** A generation or sandbox with its own indices. `label` is its name in arguments and output. */
export type SearchedGeneration = {
  readonly label: string
  readonly name: string
  readonly indices: readonly string[]
  readonly context: CommandContext
}

/** Lists all generations and sandboxes, whole or not. */
export const searchedGenerations = async (context: CommandContext): Promise<SearchedGeneration[]> => {
  const generations = async (of: CommandContext, labelOf: (name: string) => string) =>
    [...(await findRemains(of))].map(([name, { indices }]) => ({ label: labelOf(name), name, indices, context: of }))
  const keys = { label: API_KEYS_GENERATION, name: API_KEYS_GENERATION, context }
  const sandboxes = await sandboxesOf(context)
  return [
    { ...keys, indices: [apiKeysParkedIndexOf(context.prefix)] },
    ...(await generations(context, name => name)),
    ...(sandboxes ? await generations(sandboxes, sandboxLabel) : []),
  ]
}

/**
 * @param org only reps and payroll records of this organization; undefined for all. A parked record of the person may
 *   have the id of another organization, so all of them are searched
 * @param since only of events at and after this offset of their partition
 */
export async function* findTexts(
  { name, indices, context }: SearchedGeneration,
  org: string | undefined,
  subject: Subject | undefined,
  since = 0,
): AsyncGenerator<FoundText> {
  // A generation that is being made or dropped may have no document that says its layout: it is searched as in each.
  // An index of the other layout is not there, or has no document with the kind that is searched for.
  const layouts = [{}, { layout: 2 } as const].map(layout =>
    layoutOf(context.prefix, { generation: name, topic: '', ...layout }),
  )
  for await (const document of documents<RepFields>('reps', org)) yield* textsOfRep(document, subject)
  for await (const document of documents<PayrollFields>('payroll_files', org)) yield* textsOfPayroll(document, subject)
  for await (const document of documents<ParkedSource>('parked', undefined)) yield* textsOfParked(document, subject)

  async function* documents<Source extends Fields>(kind: FoundText['kind'], of: string | undefined) {
    const targets = new Map(layouts.map(layout => layout.searchOf([kind], of)).map(target => [target.index, target]))
    const offset = kind === 'parked' ? 'offset' : 'seq'
    const later = since > 0 ? [{ range: { [offset]: { gte: since } } }] : []
    for (const target of targets.values()) {
      // A generation that was never whole, or is being dropped, may lack an index. Of API keys only parked ones count.
      if (!indices.includes(target.index)) continue
      yield* scan<Source>({ ...target, filters: [...target.filters, ...later] }, context)
    }
  }
}

/** `seq` is absent in a head. */
type RepFields = { org_id: string; seq?: number; body: { id: string; name: string; email: string | null } }
type PayrollFields = {
  org_id: string
  seq: number
  rep_id: string
  body: { id: string; destination: { label: string } }
}
type ParkedSource = Pick<ParkedDocument, 'org_id' | 'offset' | 'at' | 'body'>

const textsOfRep = (
  { source: { org_id: org, seq, body } }: Document<RepFields>,
  searched: Subject | undefined,
): FoundText[] => {
  // A head has no texts.
  if (seq === undefined) return []
  const texts = [body.name, ...(body.email === null ? [] : [body.email])]
  const subject = { org, rep: body.id }
  const concern = isSame(subject, searched)
  return [{ kind: 'reps', id: body.id, offset: seq, subject, concern, ...sortTexts(texts) }]
}

const textsOfPayroll = (
  { source: { org_id: org, seq, rep_id: rep, body } }: Document<PayrollFields>,
  searched: Subject | undefined,
): FoundText[] => {
  const texts = sortTexts([body.destination.label])
  const subject = { org, rep }
  return [{ kind: 'payroll_files', id: body.id, offset: seq, subject, concern: isSame(subject, searched), ...texts }]
}

const isSame = ({ org, rep }: Subject, searched: Subject | undefined): Concern =>
  searched?.org === org && searched.rep === rep ? 'named' : 'other'

const sortTexts = (texts: readonly string[]): Pick<FoundText, 'keys' | 'sealed' | 'plain'> => {
  const parsed = texts.map(text => ({ text, keyId: parseSealedText(text)?.keyId }))
  const keys = parsed.flatMap(({ keyId }) => keyId ?? [])
  return {
    keys: [...new Set(keys)],
    sealed: parsed.flatMap(({ text, keyId }) => (keyId === undefined ? [] : [text])),
    plain: parsed.filter(({ text, keyId }) => keyId === undefined && text !== '').length,
  }
}

const sealedTexts = new RegExp(`${SEALED_PREFIX}(${SEAL_KEY_ID}):[0-9A-Za-z_-]+`, 'g')

/** A parked record may be broken in any way: its texts are searched for in its bytes. */
const textsOfParked = (
  { id, source: { org_id, offset, at, body } }: Document<ParkedSource>,
  searched: Subject | undefined,
): FoundText[] => {
  const value = Buffer.from(body.value ?? '', 'base64').toString('utf8')
  const found = [...value.matchAll(sealedTexts)]
  const rep = repIn(value)
  const org = org_id ?? orgIn(value)
  const isOfOther = org_id !== undefined && org_id !== searched?.org
  // A record that is too large to be kept has neither key nor value here.
  const unkept: Concern = isOfOther ? 'other' : 'unread'
  const named = searched === undefined ? 'other' : concernOf(toRawRecord({ body, offset, at }), searched)
  const concern = body.left_out && searched ? unkept : named
  if (found.length === 0 && rep === undefined && concern === 'other') return []
  return [
    {
      kind: 'parked',
      id,
      offset,
      subject: rep === undefined || org === undefined ? undefined : { org, rep },
      concern,
      keys: [...new Set(found.map(([, keyId = '']) => keyId))],
      sealed: found.map(([text]) => text),
      plain: undefined,
    },
  ]
}

/** The first id of a rep in the bytes: a rep's own, or the rep of a payroll record or payout. */
const repIn = (value: string): string | undefined =>
  idIn(value, /"(?:rep_id|id)"\s*:\s*"(rep_[0-9A-Za-z]{1,64})"/, 'rep')
const orgIn = (value: string): string | undefined => idIn(value, /"org_id"\s*:\s*"(org_[0-9A-Za-z]{1,64})"/, 'org')

const idIn = (value: string, pattern: RegExp, prefix: 'rep' | 'org'): string | undefined => {
  const id = pattern.exec(value)?.[1]
  return isId(prefix, id) ? id : undefined
}
