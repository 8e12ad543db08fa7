/**
 * Sandboxes: generations that analysts replay into. Their index prefix and control index are separate, so that
 * credentials can be limited to them.
 */

export const sandboxPrefixOf = (prefix: string): string => `${prefix}-sandbox`

/** The options of a sandbox. A command that continues one must have the same options. */
export type SandboxBody = {
  /** The only organization in it; null for all. */
  org: string | null
  /** The end as requested: next offsets by partition, or an instant; null for all records. */
  until: { offsets: [partition: number, offset: number][] } | { time: string } | null
  /** The first offset that is not included, by partition. */
  bounds: number[]
  /** The module that replaces rules: its name, and the hash of its text and of the files that it names. */
  rules: { name: string; sha256: string } | null
}

/** In the control index of sandboxes: the highest number in a name that a replay chose. No such name is used again. */
export const SANDBOX_NAMES_ID = 'sandbox-names'
export type SandboxNamesDocument = { kind: 'sandbox-names'; body: { highest: number } }
