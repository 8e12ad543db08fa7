/**
 * In: documents of an organization. Out: the same documents, with every sealed text opened. Also one letter for each
 *   sealed text. The letter changes when the key of the text is destroyed.
 * Promises: a document without sealed texts is neither parsed nor copied. A text whose key was destroyed is empty, and
 *   its record says `erased`. A text that does not open with its key is empty, and its record says `unreadable`: the
 *   other records stay readable. A sealed text never goes out. A request that has ended reads no further keys.
 * Can go wrong: a key is unknown, or the store of keys does not answer → `unavailable`.
 */

import { listTraits } from '../../../schemas/lists.ts'
import {
  isReserved,
  parseSealedText,
  type SealedLocation,
  sealedRecordOf,
} from '../../../schemas/sealed/sealed-text.ts'
import type { ListKind, PayrollBody, VersionDocument } from '../../../schemas/stored/documents.ts'
import { unavailable, waitOrAbort } from '../../runtime/index.ts'
import { bodyOf, type DocumentSlice, type Hit } from '../../store/index.ts'
import { type KeyTurn, type ReadSealKey, type SealKey, sealRefusals } from './key-store.ts'
import { type KeyReads, withKeyTurns } from './key-turns.ts'
import { openText } from './open-text.ts'

/** One letter for each sealed text, in order; undefined if there was none. Part of the entity tag. */
type SealState = string | undefined
export type OpenedRecord = { readonly slice: DocumentSlice; readonly state: SealState }
export type OpenedHits = { readonly hits: readonly Hit[]; readonly state: SealState }

export type OpenRecords = {
  readonly record: (org: string, kind: ListKind, slice: DocumentSlice, signal: AbortSignal) => Promise<OpenedRecord>
  readonly hits: (org: string, hits: readonly Hit[], signal: AbortSignal) => Promise<OpenedHits>
}

/** Creates the functions that open sealed texts. @param keyReads without them, an organization has no limit */
export const createOpenRecords = (readKey: ReadSealKey, keyReads?: KeyReads): OpenRecords => {
  const openDocument = async ({ kind, slice }: SealedDocument, org: string, turn?: KeyTurn) => {
    if (!hasSealedText(kind, slice)) return undefined
    const openField: OpenField = async (text, location) => {
      const sealed = parseSealedText(text)
      // A text of a version that this program does not know.
      if (sealed === undefined) return isReserved(text) ? { outcome: 'unreadable' } : { outcome: 'plain', text }
      return outcomeOf(await readKey(sealed.keyId, turn), key => openText(sealed, key, location))
    }
    return kind === 'reps' ? openRep(org, bodyOf(slice), openField) : openPayroll(org, bodyOf(slice), openField)
  }
  const openAll = (org: string, documents: readonly SealedDocument[], signal: AbortSignal) => {
    const open = (turn?: KeyTurn) =>
      waitOrAbort(Promise.all(documents.map(document => openDocument(document, org, turn))), signal)
    return keyReads ? withKeyTurns(keyReads, org, signal, open) : open()
  }

  return {
    record: async (org, kind, slice, signal) => {
      if (!hasSealedText(kind, slice)) return { slice, state: undefined }
      const [opened] = await openAll(org, [{ kind, slice }], signal)
      return opened ? { slice: withBody(slice, opened.body), state: opened.state } : { slice, state: undefined }
    },

    hits: async (org, hits, signal) => {
      if (!mayHaveSealedTexts(hits)) return { hits, state: undefined }
      const all = await openAll(
        org,
        hits.map(hit => ({ kind: hit.kind, slice: hit })),
        signal,
      )
      if (all.every(one => one === undefined)) return { hits, state: undefined }
      return {
        hits: hits.map((hit, index) => (all[index] ? hitWithBody(hit, all[index].body) : hit)),
        state: all.map(one => one?.state ?? '').join(),
      }
    },
  }
}

type SealedDocument = { readonly kind: ListKind; readonly slice: DocumentSlice }

/** A body with its texts opened, and the letter of each sealed text. */
type Opened = { readonly body: object; readonly state: string }

type Field = { readonly outcome: 'plain' | 'opened'; readonly text: string } | { readonly outcome: Lost }
type Lost = 'erased' | 'unreadable'
const letters = { plain: '', opened: 'o', erased: 'e', unreadable: 'u' } as const
type OpenField = (text: string, location: SealedLocation) => Promise<Field>

/** Opens the text if its key is here. @throws Refusal `unavailable` if it is not known whether the key exists */
const outcomeOf = (found: SealKey, open: (key: Buffer) => string | undefined): Field => {
  switch (found.state) {
    case 'here': {
      const text = open(found.key)
      return text === undefined ? { outcome: 'unreadable' } : { outcome: 'opened', text }
    }
    case 'destroyed':
      return { outcome: 'erased' }
    default:
      throw unavailable(sealRefusals[found.state])
  }
}

type RepBody = Extract<VersionDocument['body'], { email: unknown }>

const openRep = async (org: string, body: Partial<RepBody>, open: OpenField): Promise<Opened | undefined> => {
  const { id: record, name, email = null } = body
  if (record === undefined || name === undefined) throw unavailable('elasticsearch_malformed_record')
  const [openedName, openedEmail] = await Promise.all([
    open(name, { org, record, field: 'name' }),
    email === null ? undefined : open(email, { org, record, field: 'email' }),
  ])
  const fields = openedEmail ? [openedName, openedEmail] : [openedName]
  return openedWith(fields, {
    ...body,
    name: textOf(openedName) ?? '',
    ...(openedEmail && { email: textOf(openedEmail) ?? null }),
    ...lossFlags(fields),
  })
}

const openPayroll = async (org: string, body: Partial<PayrollBody>, open: OpenField): Promise<Opened | undefined> => {
  const { id, reverses_id = null, destination } = body
  if (id === undefined || destination === undefined) throw unavailable('elasticsearch_malformed_record')
  const record = sealedRecordOf({ id, reverses_id })
  const label = await open(destination.label, { org, record, field: 'destination.label' })
  const opened = { ...destination, label: textOf(label) ?? '', ...lossFlags([label]) }
  return openedWith([label], { ...body, destination: opened })
}

const openedWith = (fields: readonly Field[], body: object): Opened | undefined => {
  const state = fields.map(({ outcome }) => letters[outcome]).join('')
  return state === '' ? undefined : { body, state }
}

const textOf = (field: Field): string | undefined => ('text' in field ? field.text : undefined)

const lossFlags = (fields: readonly Field[]) => ({
  ...(fields.some(({ outcome }) => outcome === 'erased') && { erased: true }),
  ...(fields.some(({ outcome }) => outcome === 'unreadable') && { unreadable: true }),
})

/** How the text of a sealed field begins in JSON. A text with this inside has a backslash before the quote. */
const SEALED_START = Buffer.from('"sealed:v')
const RANGE_MAX = 1024 * 1024

/** Searches the bytes of a page at once: nearly all pages have no sealed text. */
const mayHaveSealedTexts = (hits: readonly Hit[]): boolean => {
  const [first, last] = [hits[0], hits.at(-1)]
  if (first === undefined || last === undefined || hits.every(({ kind }) => !listTraits[kind].isPersonal)) return false
  const isOneRange = first.bytes === last.bytes && last.bodyEnd - first.bodyStart <= RANGE_MAX
  return !isOneRange || first.bytes.subarray(first.bodyStart, last.bodyEnd).includes(SEALED_START)
}

const hasSealedText = (kind: ListKind, { bytes, bodyStart, bodyEnd }: DocumentSlice): boolean =>
  listTraits[kind].isPersonal && bytes.subarray(bodyStart, bodyEnd).includes(SEALED_START)

/** Returns a document with the same header and another body, in bytes of its own. */
const withBody = (
  { bytes, start, headerEnd }: DocumentSlice,
  body: object,
  before: Buffer = Buffer.alloc(0),
): DocumentSlice => {
  const header = bytes.subarray(start, headerEnd)
  const json = Buffer.from(JSON.stringify(body))
  const bodyStart = before.length + header.length
  const bodyEnd = bodyStart + json.length
  return {
    bytes: Buffer.concat([before, header, json, END]),
    start: before.length,
    headerEnd: bodyStart,
    bodyStart,
    bodyEnd,
    end: bodyEnd + 1,
  }
}
const END = Buffer.from('}')

/** The id of a hit stands before its document. */
const hitWithBody = ({ kind, sortValue, idStart, ...slice }: Hit, body: object): Hit => {
  const id = slice.bytes.subarray(idStart, slice.bytes.indexOf('"', idStart) + 1)
  return { ...withBody(slice, body, id), kind, sortValue, idStart: 0 }
}
