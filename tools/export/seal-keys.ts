/**
 * In: where the seal keys are. Out: a store of keys for each reading of an export, which reads a key many times; the
 *   names of the receipts of erasures.
 * Promises: each reason to refuse a record is said, at most once in 10 s. No message names a key.
 */
import { readdir } from 'node:fs/promises'
import {
  holdKeys,
  type KeySources,
  noSealKeys,
  type ReadSealKey,
  readFrom,
  receiptFileOf,
  reportRefusals,
} from '../../core/reading/index.ts'
import type { Schedule } from '../../core/runtime/index.ts'

type Steps = {
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
  readonly later: Schedule
  readonly say: (message: string) => void
}

/**
 * Returns a function that begins a reading: it holds no key that a reading before it has read.
 * @param sources undefined without SEAL_KEYS_DIR
 */
export const openSealKeys = (sources: KeySources | undefined, { elapsed, later, say }: Steps): (() => ReadSealKey) => {
  if (sources === undefined) return () => noSealKeys
  const sayWhy = (_level: 'warn', message: string, details: object) =>
    say(`${message} (${Object.values(details).join(', ')})`)
  return () => reportRefusals(holdKeys(readFrom(sources), elapsed, later), sayWhy, elapsed)
}

/** Returns the names of the receipts of all erasures; none without SEAL_KEYS_DIR. */
export const receiptsIn = async (sources: KeySources | undefined): Promise<readonly string[]> => {
  if (sources === undefined) return []
  return (await readdir(sources.directory)).filter(name => name.endsWith(receiptFileOf(''))).sort()
}
