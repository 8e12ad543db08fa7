/**
 * In: an organization. Out: its checkpoint: a signed note with the digest over all its changes, in the order of the
 *   feed, and its totals as of the last of them.
 * Promises: the digest covers every change up to the sequence that the note names, each once. The note covers every
 *   change before the position that it is answered with. Until a further change is published, the same bytes are
 *   answered for CHECKPOINT_AGE_MAX. An organization has one walk and one signature at a time, and all have few. A walk
 *   that ends early keeps what it has read: the next one continues there. Nothing is signed unless the generation has
 *   the recorded indices and shards after all was read: a shard that lost documents answers with fewer changes, and
 *   with totals of as many.
 * Can go wrong: the changes are not read in the time of the request → `unavailable`, and the next request reads on.
 *   The totals count other changes than the walk, or a shard is another one → `unavailable`. No key →
 *   `invalid_request`.
 *
 * Nothing is stored: a process reads all changes of an organization once, and afterwards only new ones. The digest of
 * no change is the hash of the form; that of a further change is SHA-256 over the digest before and the SHA-256 of its
 * text.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { CHECKPOINT_FORM, type CheckpointContent, digestedText, textOfCheckpoint } from '../../../schemas/checkpoint.ts'
import { addTo, differenceOf, type Sums, textOfSums } from '../../../schemas/money.ts'
import type { Totals } from '../../../schemas/resources.ts'
import { listKinds } from '../../../schemas/stored/documents.ts'
import { instantOf } from '../../../schemas/values.ts'
import {
  createSemaphore,
  createSemaphores,
  isTimeUp,
  lruOptions,
  Refusal,
  type Schedule,
  type SigningKey,
  signNote,
  unavailable,
  waitOrAbort,
  within,
} from '../../runtime/index.ts'
import {
  bodyOf,
  type Generation,
  type Hit,
  isVisible,
  numberOf,
  ORGANIZATIONS_REMEMBERED,
  type ReadPosition,
  type ReadScope,
  readingOfProcess,
} from '../../store/index.ts'
import {
  CHECKPOINT_AGE_MAX,
  CHECKPOINT_PAGE_BYTES,
  CHECKPOINT_PAGE_CHANGES,
  CHECKPOINT_WALKS,
  CHECKPOINT_WALKS_OF_ORGANIZATION,
} from '../limits.ts'
import { type Pace, usualPace } from '../pace.ts'
import type { HasChange } from '../pages/has-change.ts'
import { changeNameOf, type ReaderParts, readListStart } from '../pages/read-list.ts'
import { type RecordName, textOfName } from '../pages/read-parameters.ts'
import type { ReadTotals } from '../pages/read-totals.ts'

export type CheckpointRead = { readonly position: ReadPosition; readonly note: string }
/** @param onRead called with the bytes of each page of changes */
export type ReadCheckpoint = (scope: ReadScope, onRead: (bytes: number) => void) => Promise<CheckpointRead>

type Steps = {
  readonly key: SigningKey | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly later: Schedule
  /** Checks the indices and shards of a generation, from now on. @throws Refusal if one is another one than recorded */
  readonly checkNow: (generation: Generation) => Promise<void> | undefined
  readonly hasChange: HasChange
}

/** How far the changes of an organization were read. */
type Walked = {
  /** A digest is of one generation, and ends where a restored copy begins. */
  readonly of: string
  readonly sequence: number
  readonly digest: Buffer
  readonly last: { readonly name: RecordName; readonly seq: number } | undefined
}
/** `lastSeq`: the offset of the last change that it covers; -1 if there is none. */
type Signed = { readonly of: string; readonly note: string; readonly time: number; readonly lastSeq: number }

/** Creates the reader of checkpoints. It remembers how far it has read, and the last note of each organization. */
export const createReadCheckpoint = (
  parts: ReaderParts,
  totals: ReadTotals,
  { key, now, later, checkNow, hasChange }: Steps,
): ReadCheckpoint => {
  const walked = new LRUCache<string, Walked>(lruOptions(ORGANIZATIONS_REMEMBERED))
  const signed = new LRUCache<string, Signed>(lruOptions(ORGANIZATIONS_REMEMBERED))
  const walks = within(
    createSemaphore(CHECKPOINT_WALKS, later),
    createSemaphores(CHECKPOINT_WALKS_OF_ORGANIZATION, later),
  )

  const present = async (scope: ReadScope, position: ReadPosition): Promise<string | undefined> => {
    const known = signed.get(scope.org)
    // That of another generation can differ from what is served now.
    if (known?.of !== idOf(position)) return undefined
    const age = now() - known.time
    // A clock that was set back makes no note older than it is.
    const isYoung = age >= 0 && age < CHECKPOINT_AGE_MAX
    return isYoung && !(await hasChange(scope, position, known.lastSeq)) ? known.note : undefined
  }

  /** Reads the changes after the last one that was read, up to the position. */
  const walk = async (scope: ReadScope, position: ReadPosition, onRead: (bytes: number) => void): Promise<Walked> => {
    const { org, signal } = scope
    const of = idOf(position)
    const known = walked.get(org)
    let at: Walked = known?.of === of ? known : { of, sequence: 0, digest: FIRST, last: undefined }
    if (at.last && !isVisible(at.last.seq, position)) throw unavailable('position_went_back')
    const where = position.generation.layout.searchOf(listKinds, org)
    const asked = { list: 'changes', where, limit: CHECKPOINT_PAGE_CHANGES, bytesMax: CHECKPOINT_PAGE_BYTES } as const
    // The bytes of a page count for the process: those of all pages would not fit in the memory of one request.
    const reading = { ...readingOfProcess(signal), org }
    const pace = usualPace(signal)
    for (let pages = 0; ; pages++) {
      const page = parts.readPage(reading, { ...asked, position, after: at.last?.seq ?? -1 })
      const { hits, hasMore } = await page.catch((error: unknown) => {
        throw pages > 0 && isTimeUp(signal) ? unavailable('checkpoint_reads_on') : error
      })
      onRead(hits.reduce((bytes, { bodyStart, bodyEnd }) => bytes + bodyEnd - bodyStart, 0))
      at = await continueDigest(at, hits, pace)
      walked.set(org, at)
      if (!hasMore) return at
    }
  }

  const sign = async (scope: ReadScope, at: Walked, generation: Generation, by: SigningKey): Promise<string> => {
    const asOf = at.last && ({ kind: 'change', name: at.last.name } as const)
    const read = await totals(scope, { asOf }, () => undefined)
    const checked = checkNow(generation)
    if (checked !== undefined) await waitOrAbort(checked, scope.signal)
    // Another generation can have other amounts after as many changes. An adoption records other shards, which that
    // check then accepts, after it has taken times back.
    const since = await parts.readAt(scope, () => [], 'at-position')
    if ([read, since].some(({ position }) => idOf(position) !== at.of)) throw unavailable('live_generation_changes')
    const { last_change_id, last_sequence, totals: sums } = read.totals
    const change = at.last ? textOfName(at.last.name) : null
    if (last_sequence !== at.sequence || last_change_id !== change) {
      // Both are counted in different ways, so a difference is no change of the organization, unless it had none. An
      // old copy may have answered a page: the next request reads all again.
      walked.delete(scope.org)
      throw unavailable(at.last ? 'elasticsearch_malformed_search' : 'checkpoint_reads_on')
    }
    const time = now()
    const checkpoint: CheckpointContent = {
      organization: scope.org,
      rules: generation.rules,
      sequence: at.sequence,
      change,
      digest: at.digest.toString('hex'),
      totals: controlTotalsOf(sums),
      time: new Date(time).toISOString(),
    }
    const note = signNote(Buffer.from(textOfCheckpoint(checkpoint)), by).toString('utf8')
    signed.set(scope.org, { of: at.of, note, time, lastSeq: at.last?.seq ?? -1 })
    return note
  }

  return async (scope, onRead) => {
    if (key === undefined) throw notSigned()
    const { current, position } = await readListStart(parts, scope, { startingAfter: undefined, asOf: undefined })
    const read = async (note: string): Promise<CheckpointRead> => {
      const time = await parts.projectionTime(scope, current, 'unknown')
      return { position: { ...position, time }, note }
    }
    const known = await present(scope, position)
    if (known !== undefined) return read(known)
    const release = await walks.acquire(scope.org, scope.signal)
    if (!release) throw unavailable('checkpoints')
    try {
      // Another request may have signed meanwhile.
      const since = await present(scope, position)
      if (since !== undefined) return await read(since)
      const at = await walk(scope, position, onRead)
      return await read(await sign(scope, at, position.generation, key))
    } finally {
      release()
    }
  }
}

/** Identifies what is read: a generation, until a restored copy of it begins. */
const idOf = ({ generation, takenBack }: ReadPosition): string => `${generation.id}:${takenBack}`

const sha256 = (...parts: readonly (string | Buffer)[]): Buffer => {
  const bytes = parts.map(part => (typeof part === 'string' ? Buffer.from(part) : part))
  return hash('sha256', Buffer.concat(bytes), 'buffer')
}
/** Before the first change. */
const FIRST = sha256(`${CHECKPOINT_FORM}\n`)

const continueDigest = async (before: Walked, hits: readonly Hit[], pace: Pace): Promise<Walked> => {
  let { sequence, digest, last } = before
  for (const hit of hits) {
    sequence++
    const name = changeNameOf(hit)
    const published_at = instantOf(numberOf(hit, 'at'))
    const change = {
      id: textOfName(name),
      kind: name.kind,
      sequence,
      published_at,
      record: bodyOf<Record<string, unknown>>(hit),
    }
    digest = sha256(digest, sha256(textOrRefuse(change)))
    last = { name, seq: hit.sortValue }
    if (pace.countWork(1, hit.bodyEnd - hit.bodyStart)) await pace.rest()
  }
  return { of: before.of, sequence, digest, last }
}

const textOrRefuse = (change: Parameters<typeof digestedText>[0]): string => {
  try {
    return digestedText(change)
  } catch {
    throw unavailable('elasticsearch_malformed_record')
  }
}

/** Adds up the rows of all periods, by currency. */
const controlTotalsOf = (rows: Totals['totals']): CheckpointContent['totals'] => {
  const owed: Sums = new Map()
  const paid: Sums = new Map()
  for (const { currency, owed_amount, paid_amount } of rows) {
    addTo(owed, currency, owed_amount)
    addTo(paid, currency, paid_amount)
  }
  const paidOf = textOfSums(paid)
  return Object.entries(textOfSums(owed)).map(([currency, amount]) => {
    const left = paidOf[currency] ?? '0'
    return { currency, owed: amount, paid: left, open: differenceOf(left, amount) }
  })
}

const notSigned = (): Refusal =>
  new Refusal('invalid_request', {
    message: 'This service signs no checkpoints: its operator has not set `API_CHECKPOINT_KEY_FILE`.',
  })
