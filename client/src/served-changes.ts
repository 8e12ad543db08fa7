/**
 * The changes that a copy was served, for a digest over all of them. In: the changes, in order. Out: the digest after
 * any of them. Promises: the part of a record that the copy holds is computed from this record, whatever was served;
 * of a record that the copy no longer holds, the SHA-256 is kept.
 */
// In Web Crypto each digest is a promise.
import { sha256 } from '@noble/hashes/sha2'
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils'
import { DIGEST_FORM } from './checkpoint.ts'
import type { Change } from './client.ts'

/** A copy differs from the API. The message names the period, the currency and the field of the first difference. */
export class CopyDiffersError extends Error {
  override name = 'CopyDiffersError'
}

/**
 * For each change, by its sequence: its id and `published_at`, with a space between, if the copy holds its record; else
 * the SHA-256 of its text. Values of JSON.
 */
export type ServedChange = string
type Fields = Readonly<Record<string, unknown>>
type Kind = Change['kind']
/** Returns a record that the copy holds. */
type Held = (kind: Kind, id: string) => object | undefined

export class ServedChanges {
  readonly #changes: ServedChange[]
  readonly #held: Held
  /** The index of the change of each record that the copy holds. */
  readonly #indexOf = new Map<string, number>()

  constructor(held: Held, changes: readonly ServedChange[] = []) {
    this.#held = held
    this.#changes = [...changes]
    for (const [index, served] of this.#changes.entries()) {
      if (!isDigest(served)) this.#indexOf.set(nameIn(served).recordId, index)
    }
  }

  get count(): number {
    return this.#changes.length
  }

  /** How many of them have a record that the copy should hold. */
  get heldCount(): number {
    return this.#indexOf.size
  }

  list(): readonly ServedChange[] {
    return [...this.#changes]
  }

  /** Call it before the copy applies the change. @throws Error unless it is the next one */
  add(change: Change): void {
    requireNext(change, this.#changes.length)
    const replaced = replacedBy(change)
    const index = this.#indexOf.get(replaced)
    if (index !== undefined) {
      this.#changes[index] = bytesToHex(this.#hashOf(index))
      this.#indexOf.delete(replaced)
    }
    this.#indexOf.set(change.record.id, this.#changes.length)
    this.#changes.push(nameOf(change))
  }

  /**
   * Returns the digests after these sequences. `rest` is awaited now and then, so that other work can run: what the
   * copy applies meanwhile changes no digest.
   * @throws CopyDiffersError if the copy has no record that it should hold
   */
  async digests(sequences: readonly number[], rest: () => Promise<void>): Promise<string[]> {
    const wanted = new Map<number, string>()
    let digest = sha256(utf8ToBytes(`${DIGEST_FORM}\n`))
    const last = Math.max(...sequences)
    for (let sequence = 0; ; sequence++) {
      if (sequences.includes(sequence)) wanted.set(sequence, bytesToHex(digest))
      if (sequence === last) break
      digest = sha256(concatBytes(digest, this.#hashOf(sequence)))
      if (sequence % 1_000 === 999) await rest()
    }
    return sequences.map(sequence => wanted.get(sequence) ?? '')
  }

  #hashOf(index: number): Uint8Array {
    const served = this.#changes[index] ?? ''
    if (isDigest(served)) return hexToBytes(served)
    const { kind, id, recordId, published_at } = nameIn(served)
    const record = this.#held(kind, recordId)
    if (record === undefined) throw new CopyDiffersError(`the copy has no ${recordId}, which change ${id} has made`)
    return hashOfChange({ kind, id, sequence: index + 1, published_at, record })
  }
}

/**
 * Reads changes from the first one up to `last`. Keeps none of their records: a copy holds those that are current.
 * @throws Error if one is left out
 * @returns undefined if `last` is not among them
 */
export const readServed = async (changes: AsyncIterable<Change>, last: string): Promise<ServedChange[] | undefined> => {
  const served: ServedChange[] = []
  /** Of each current record, the index of its change and the digest that stays if it is replaced. */
  const current = new Map<string, { readonly index: number; readonly digest: string }>()
  for await (const change of changes) {
    requireNext(change, served.length)
    const replaced = replacedBy(change)
    const before = current.get(replaced)
    if (before !== undefined) {
      served[before.index] = before.digest
      current.delete(replaced)
    }
    current.set(change.record.id, { index: served.length, digest: bytesToHex(hashOfChange(change)) })
    served.push(nameOf(change))
    if (change.id === last) return served
  }
  return undefined
}

/** @throws Error unless the change is the next one: one is missing, or other rules have numbered the changes anew */
export const requireNext = ({ sequence }: Change, count: number): void => {
  if (sequence !== count + 1) {
    throw new Error(`expected the change with sequence ${count + 1}, got ${sequence}: read the copy anew`)
  }
}

/** Returns the id of the record whose former state the change replaces; empty for a first payout. */
const replacedBy = ({ kind, supersedes_id, record }: Change): string =>
  kind === 'payouts' ? (supersedes_id ?? '') : record.id

const nameOf = ({ id, published_at }: Change): ServedChange => `${id} ${published_at}`

const isDigest = (served: ServedChange): boolean => /^[0-9a-f]{64}$/.test(served)

const kinds: Readonly<Record<string, Kind>> = {
  rep: 'reps',
  period: 'periods',
  payout: 'payouts',
  payroll: 'payroll_files',
}
const nameIn = (served: ServedChange) => {
  const [id = '', published_at = ''] = served.split(' ')
  const kind = kinds[id.slice(0, id.indexOf('_'))]
  if (kind === undefined) throw new Error('the stored copy has another form')
  return { kind, id, recordId: id.split('.')[0] ?? '', published_at }
}

/** The fields of each kind, in order, as docs/evidence.md of the service lists them: no text about a person. */
const fieldsOf: Readonly<Record<Kind, readonly string[]>> = {
  reps: ['id', 'status', 'started_on', 'departed_on'],
  periods: ['id', 'kind', 'timezone', 'starts_at', 'ends_at'],
  payouts: [
    'id',
    'rep_id',
    'period_id',
    'net_amount',
    'earned_amount',
    'currency',
    'supersedes_id',
    'calculated_at',
    'recorded_at',
  ],
  payroll_files: [
    'id',
    'rep_id',
    'period_id',
    'payout_id',
    'reverses_id',
    'amount',
    'currency',
    'destination.type',
    'recorded_at',
  ],
}
const lineFields = ['id', 'category', 'amount', 'deal_id']

type Served = Pick<Change, 'kind' | 'id' | 'sequence' | 'published_at'> & { readonly record: object }

/** Returns the SHA-256 of the text of a change: a list in JSON, without spaces. */
export const hashOfChange = ({ kind, id, sequence, published_at, record }: Served): Uint8Array => {
  const values: unknown[] = [kind, id, sequence, published_at, ...fieldsOf[kind].map(field => valueAt(record, field))]
  if (kind === 'payouts') {
    const lines = valueAt(record, 'line_items')
    values.push(Array.isArray(lines) ? lines.map(line => lineFields.map(field => valueAt(line, field))) : null)
  }
  return sha256(utf8ToBytes(JSON.stringify(values)))
}

const valueAt = (record: object, path: string): unknown => {
  const fields = record as Fields
  if (path !== 'destination.type') return fields[path] ?? null
  return (fields.destination as Fields | undefined)?.type ?? null
}
