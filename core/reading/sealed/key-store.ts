/** The store of seal keys: one interface for all stores (a directory, Vault, or another service). */
import type { Release } from '../../runtime/index.ts'

/**
 * The answer to one key id. `destroyed` needs a proof: the receipt of the erasure. A key that is merely missing is
 * `unknown`, because a lost directory must not look like a forgotten person.
 */
export type SealKey =
  | { readonly state: 'here'; readonly key: Buffer }
  | { readonly state: 'destroyed' }
  | { readonly state: 'unknown' | 'no_store' }
  /** `vault` is the reason of a refusal by Vault, for the log. It names no key. */
  | { readonly state: 'malformed' | 'unavailable'; readonly vault?: string }

/** Why a record is refused, by the answer about its key. */
export const sealRefusals = {
  unknown: 'seal_key_unknown',
  malformed: 'seal_key_malformed',
  unavailable: 'seal_keys_unavailable',
  no_store: 'seal_keys_not_set',
} as const satisfies Record<Exclude<SealKey['state'], 'here' | 'destroyed'>, string>

/** Waits until one more key may be read. Returns a function that ends the turn. @throws Refusal if there is no turn */
export type KeyTurn = () => Promise<Release>

/** Returns the key of an id. A store that holds keys waits for the turn first. Rejects only if the turn does. */
export type ReadSealKey = (id: string, turn?: KeyTurn) => Promise<SealKey>

/** The store of a process without keys. */
export const noSealKeys: ReadSealKey = async () => ({ state: 'no_store' })
