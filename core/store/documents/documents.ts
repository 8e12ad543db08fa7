/**
 * Reads the documents that decisions need, and writes the decided ones.
 * In, to write: the documents of a batch, which `pack` turns into the bytes of bulk requests. Out: nothing, once
 * Elasticsearch has each of them at its version or a later one.
 * Promises: the offset is the external version, so that a repeated or late write changes nothing. Each item of a
 * response is checked by index and id. If a whole request fails for now, all its documents are sent again. If one item
 * fails for now, only its document is sent again. The number of retries has no limit. `keepTrying` is not used here.
 * Can go wrong: a document is refused for good; an index is gone; the same version has other content; a later version
 * lacks our change; an ingest pipeline of others changed or dropped a document. All of them stop.
 */
import { isDeepStrictEqual } from 'node:util'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import type { ParkedDocument } from '../../../schemas/stored/documents.ts'
import type { Address, GenerationLayout, IndexKind } from '../../../schemas/stored/layout.ts'
import {
  type AnyDocument,
  type AnyNewDocument,
  type DecidedDocument,
  type DocumentKey,
  draftOf,
  type ReadDocuments,
} from '../../ledger/index.ts'
import { StopError, Unanswered } from '../../runtime/index.ts'
import type { BulkItem } from '../elasticsearch/answers.ts'
import { ELASTICSEARCH_OVERLOADED, errorType, isTransient, type Send } from '../elasticsearch/client.ts'
import { assertNoPipeline, assertPipelineExists, WITHOUT_PIPELINES } from '../elasticsearch/pipelines.ts'
import type { GetDocuments } from '../elasticsearch/primary-reads.ts'
import { BULK_BYTES, BULK_BYTES_MIN, BULK_DOCUMENTS, MGET_IDS } from '../limits.ts'

/** A document ready to send: its two lines are the bytes of `all` between `from` and `to`. */
export type PackedDocument = {
  readonly address: Address
  readonly version: number
  readonly all: Buffer
  readonly from: number
  readonly to: number
}

/** A document that each write with the same version or a higher one replaces. */
type Replaceable = Pick<PackedDocument, 'address' | 'version'> & { readonly document: object }

const textOfReplaceable = ({ address, version, document }: Replaceable) => {
  const action = actionOf(address, `"version":${version},"version_type":"external_gte"`)
  const line = `${JSON.stringify(document)}\n`
  return { address, version, action, line, lineBytes: Buffer.byteLength(line) }
}

/** Names and ids have no character that JSON escapes. */
const actionOf = ({ _index, _id, routing }: Address, versioned: string): string => {
  const routed = routing === undefined ? '' : `"routing":"${routing}",`
  return `{"index":{"_index":"${_index}","_id":"${_id}",${routed}${versioned}}}\n`
}

/**
 * Packs documents into one buffer outside of the heap. Strings would be copied twice more before they are sent, and by
 * the garbage collector while they wait.
 * @param first is written with the documents, in the first request
 */
export const pack = (
  documents: readonly DecidedDocument[],
  { addressOf, storedWith }: Pick<GenerationLayout, 'addressOf' | 'storedWith'>,
  first?: Replaceable,
): PackedDocument[] => {
  const versioned = documents.map(({ kind, id, version, line: own }) => {
    const address = addressOf(kind, id)
    const action = actionOf(address, `"version":${version},"version_type":"external"`)
    const fields = storedWith(kind)
    const line = fields === '' ? own : `{${fields}${own.slice(1)}`
    return { address, version, action, line, lineBytes: Buffer.byteLength(line) }
  })
  const texts = first && versioned.length > 0 ? [textOfReplaceable(first), ...versioned] : versioned
  // Names are ASCII.
  const all = Buffer.allocUnsafe(texts.reduce((sum, { action, lineBytes }) => sum + action.length + lineBytes, 0))
  let at = 0
  return texts.map(({ address, version, action, line, lineBytes }) => {
    const from = at
    at += all.write(action, at, 'latin1')
    at += all.write(line, at, lineBytes === line.length ? 'latin1' : 'utf8')
    // Bytes that are not overwritten would send whatever this memory held before.
    if (at - from !== action.length + lineBytes) throw new Error('a document has another length than was counted')
    return { address, version, all, from, to: at }
  })
}

export type WriteSteps = {
  /** Tries once. @throws Unanswered if a retry may succeed */
  readonly request: Send
  readonly getDocuments: GetDocuments
  /** Waits before a retry, of which the first is 0. @throws when it is aborted */
  readonly pause: (attempt: number) => Promise<void>
  readonly count: (outcome: 'written' | 'stale' | 'retried', items: number) => void
  /** Called with the reason why documents are refused for now, and with undefined when all are written. */
  readonly onRefused: (reason: string | undefined) => void
}

export const write = async (documents: readonly PackedDocument[], steps: WriteSteps): Promise<void> => {
  for (const part of split(documents, BULK_BYTES)) await writeAll(part, steps)
}

const sourceOf = ({ all, from, to }: PackedDocument): Comparable =>
  JSON.parse(all.toString('utf8', all.indexOf('\n', from) + 1, to))

/** The bulk lines of all writes. Usually they are contiguous, and nothing is copied. */
const linesOf = (writes: readonly PackedDocument[]): Buffer => {
  const [first, last] = [writes[0], writes.at(-1)]
  const inOneGo = writes.every(({ from }, at) => at === 0 || from === writes[at - 1]?.to)
  if (first && last && inOneGo) return first.all.subarray(first.from, last.to)
  return Buffer.concat(writes.map(({ all, from, to }) => all.subarray(from, to)))
}

function* split(writes: readonly PackedDocument[], bytesMax: number): Generator<PackedDocument[]> {
  let part: PackedDocument[] = []
  let bytes = 0
  for (const item of writes) {
    if (part.length > 0 && (bytes + item.to - item.from > bytesMax || part.length === BULK_DOCUMENTS)) {
      yield part
      part = []
      bytes = 0
    }
    part.push(item)
    bytes += item.to - item.from
  }
  if (part.length > 0) yield part
}

const writeAll = async (writes: readonly PackedDocument[], steps: WriteSteps): Promise<void> => {
  let waiting = writes
  let bytesMax = BULK_BYTES
  for (let failures = 0; waiting.length > 0; ) {
    const [part = []] = split(waiting, bytesMax)
    const { again, isTooMuch, failure } = await tryToWrite(part, steps)
    waiting = [...again, ...waiting.slice(part.length)]
    if (again.length === 0) {
      failures = 0
      continue
    }
    // A server often closes the connection before the refusal of a too large request is read. And where memory is
    // short, it refuses a large request again and again, or the items of a shard, and takes less. Send less next time.
    if (isTooMuch) bytesMax = Math.max(BULK_BYTES_MIN, bytesMax / 2)
    steps.count('retried', again.length)
    if (failure) steps.onRefused(failure.message)
    await steps.pause(failures++)
  }
  steps.onRefused(undefined)
}

/** Returns the documents to send again. `failure` is set if a request failed: then these are all documents. */
const tryToWrite = async (
  writes: readonly PackedDocument[],
  steps: WriteSteps,
): Promise<Tried & { readonly failure?: Unanswered }> => {
  try {
    return await writeOnce(writes, steps)
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error
    return { again: writes, isTooMuch: error.status === 0 || error.status === ELASTICSEARCH_OVERLOADED, failure: error }
  }
}

/** `again`: the documents to send again. `isTooMuch`: fewer bytes at a time may succeed. */
type Tried = { readonly again: readonly PackedDocument[]; readonly isTooMuch: boolean }

const ITEM_FIELDS = ['_id', '_index', 'status', 'error.type', 'error.reason', 'result', 'executed_pipelines']
  .map(field => `items.*.${field}`)
  .join()

/** Sends the documents in one request, or in two if it is too large. */
const writeOnce = async (writes: readonly PackedDocument[], steps: WriteSteps): Promise<Tried> => {
  const { status, body } = await steps.request({
    method: 'POST',
    path: '/_bulk',
    query: { filter_path: ITEM_FIELDS, ...WITHOUT_PIPELINES },
    bulk: linesOf(writes),
  })
  if (status === 413 && writes.length > 1) {
    const half = writes.length >> 1
    const [first, second] = [await writeOnce(writes.slice(0, half), steps), await writeOnce(writes.slice(half), steps)]
    return { again: [...first.again, ...second.again], isTooMuch: first.isTooMuch || second.isTooMuch }
  }
  if (status !== 200)
    throw new StopError('write_refused', `a bulk request is answered ${status}`, { documents: writes.length })

  const outcomes = itemOutcomes(writes, body, steps)
  const of = (outcome: Outcome): PackedDocument[] => writes.filter((_, index) => outcomes[index] === outcome)
  const conflicts = of('conflict')
  steps.count('written', of('written').length)
  const notStored = await findNotStored(conflicts, steps)
  steps.count('stale', conflicts.length - notStored.length)
  if (notStored.length > 0) steps.onRefused('Elasticsearch refuses documents for now: 409, but it has no newer version')
  const tooMuch = of('too much')
  return { again: [...tooMuch, ...of('retry'), ...notStored], isTooMuch: tooMuch.length > 0 }
}

/** Older versions stored a parked record without the raw names of its headers. Such a document counts as the same. */
const isSameDocument = (stored: unknown, ours: Comparable): boolean =>
  isDeepStrictEqual(stored, ours) || isDeepStrictEqual(stored, withoutRawNames(ours))

const withoutRawNames = (document: Comparable): object => {
  const { body: whole } = document
  if (!Array.isArray(whole?.headers)) return document
  const body = { ...whole, headers: whole.headers.map(([name, value]) => [name, value]) }
  return { ...document, body_bytes: Buffer.byteLength(JSON.stringify(body)), body }
}

/** A document of any kind. Only a parked one has headers. */
type Comparable = { readonly body?: Partial<ParkedDocument['body']> }

/**
 * `conflict`: answered 409. Elasticsearch has this version or a later one, which `findNotStored` checks. `too much`:
 * its shard refuses for lack of memory or of room in a queue.
 */
type Outcome = 'written' | 'conflict' | 'retry' | 'too much'

/** Returns the outcome of each document. @throws StopError if the response is not about exactly these, in order */
const itemOutcomes = (
  writes: readonly PackedDocument[],
  body: unknown,
  { onRefused }: Pick<WriteSteps, 'onRefused'>,
): Outcome[] => {
  const items = typeof body === 'object' && body !== null && 'items' in body ? body.items : undefined
  if (!Array.isArray(items) || items.length !== writes.length) {
    throw new StopError('write_refused', 'the answer to a bulk request has another number of items', {
      sent: writes.length,
    })
  }
  return writes.map(({ address: { _index: index, _id: id } }, at) => {
    const item: BulkItem['index'] = items[at]?.index
    const { _index, _id, status } = item ?? {}
    if (_index !== index || _id !== id || typeof status !== 'number') {
      throw new StopError('write_refused', 'an item of a bulk answer is not the document that was sent', { index })
    }
    assertNoPipeline(index, item)
    if (status === 200 || status === 201) return 'written'
    if (status === 409) return 'conflict'
    const type = errorType(item)
    if (isTransient(status, item)) {
      onRefused(`Elasticsearch refuses documents for now: ${status}, ${type ?? 'no type'}, index ${index}`)
      return status === ELASTICSEARCH_OVERLOADED ? 'too much' : 'retry'
    }
    if (status === 404) throw new StopError('index_missing', `${index}, while writing`)
    assertPipelineExists(index, item)
    throw new StopError('write_refused', `status ${status}, ${type ?? 'no type'}`, { index })
  })
}

/**
 * Checks documents that Elasticsearch refused with 409. Returns those to send again: Elasticsearch has none of them, or
 * an earlier version. A later version needs nothing. @throws StopError if the same version has other content, or a
 * later one lacks our change: somebody else wrote the document. An update without a change raises its version, too.
 */
const findNotStored = async (writes: readonly PackedDocument[], steps: WriteSteps): Promise<PackedDocument[]> => {
  const again: PackedDocument[] = []
  for (let from = 0; from < writes.length; ) {
    const part = writes.slice(from, from + MGET_IDS)
    const found = await steps.getDocuments(part.map(({ address }) => address))
    for (const [at, stored] of found.entries()) {
      const item = part[at]
      if (item === undefined) continue
      if (!stored.found || stored._version < item.version) again.push(item)
      else if (stored._version === item.version && !isSameDocument(stored._source, sourceOf(item))) {
        throw new StopError('content_differs', 'same version, other content', {
          index: item.address._index,
          version: item.version,
        })
      } else if (stored._version > item.version && lastOffsetIn(stored._source) < item.version) {
        throw new StopError('content_differs', 'a later version that no projector wrote, without our change', {
          index: item.address._index,
          version: item.version,
        })
      }
    }
    from += found.length
  }
  return again
}

type Item = { readonly seq: number }
/** The fields that have offsets, of all kinds. */
type Offsets = {
  readonly seq?: number
  readonly until_seq?: number
  readonly offset?: number
  readonly body?: {
    readonly versions?: readonly Item[]
    readonly payouts?: readonly Item[]
    readonly payroll?: readonly Item[]
    readonly created_seq?: number
    readonly revoked_seq?: number | null
  } | null
  readonly revoked?: boolean
}

/**
 * Returns up to which offset a stored document of any kind has the effects of events. Its version is this offset,
 * unless somebody else wrote it. Returns infinity if the document does not tell: a revoked API key, the
 * document of the last written record, or a form that this version does not know.
 */
export const lastOffsetIn = (stored: unknown): number => {
  if (typeof stored !== 'object' || stored === null) return Number.POSITIVE_INFINITY
  const { seq, until_seq = UNTIL_FOREVER, offset, revoked, body }: Offsets = stored
  if (offset !== undefined) return offset
  if (seq !== undefined) return until_seq === UNTIL_FOREVER ? seq : until_seq
  // Only its head says at which offset it was revoked.
  if (revoked === true) return Number.POSITIVE_INFINITY
  const { versions, payouts, payroll, created_seq, revoked_seq } = body ?? {}
  if (created_seq !== undefined) return revoked_seq ?? created_seq
  const last = [versions, payouts, payroll].flatMap(items => items?.at(-1)?.seq ?? [])
  return last.length > 0 ? Math.max(...last) : Number.POSITIVE_INFINITY
}

/** Reads documents as drafts. The projector gives `getFromPrimaries`, because decisions rest on them. */
export const readDocuments =
  (getDocuments: GetDocuments, { addressOf }: Pick<GenerationLayout, 'addressOf'>): ReadDocuments =>
  async keys => {
    const found = await getDocuments<AnyDocument>(keys.map(key => addressOf(kindOf(key), idOf(key))))
    const drafts = new Map<DocumentKey, AnyNewDocument | null>()
    for (const [index, key] of keys.slice(0, found.length).entries()) {
      const document = found[index]
      drafts.set(key, document?.found ? draftOf(document._source) : null)
    }
    return drafts
  }

const kindOf = (key: DocumentKey): IndexKind => key.slice(0, key.indexOf('/')) as IndexKind
const idOf = (key: DocumentKey): string => key.slice(key.indexOf('/') + 1)
