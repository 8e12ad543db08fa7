/**
 * Sandboxes: what analysts replay into. Each is a generation with a control index and a prefix apart, which credentials
 * can be limited to.
 */

export const sandboxPrefixOf = (prefix: string): string => `${prefix}-sandbox`

/** What a sandbox is made with: who goes on with one must want the same. */
export type SandboxBody = {
  /** The only organization in it; null where all are. */
  org: string | null
  /** As it was asked for: next offsets by partition, or an instant; null for all there was. */
  until: { offsets: [partition: number, offset: number][] } | { time: string } | null
  /** The first offset that is not in it any more, by partition. */
  bounds: number[]
  /** The module that replaced rules, by its name and the hash of its text. */
  rules: { name: string; sha256: string } | null
}
