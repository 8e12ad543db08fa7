/** The manifest of a close, and the rows of its files that only a close has. */
import type { DescribedFile, FileDescription } from '../export/manifest.ts'
import type { RecordPosition } from '../parked/find.ts'
import type { ControlTotals } from './close-controls.ts'

/** A parked record. It has no content: only its position and its code. */
export type ParkedRow = {
  readonly position: string
  readonly published_at: string
  readonly code: string
  readonly type: string | null
  readonly event_id: string | null
}
/** A key that could read, without its secret and its hash. */
export type KeyRow = {
  readonly id: string
  readonly name: string | null
  readonly permissions: string
  readonly expires_at: string | null
  readonly allowed_networks: string | null
  readonly revoked: boolean
}

export type CloseManifest = {
  readonly format: 'commission-close-1'
  readonly organization: string
  readonly period: string
  /** The last change in it, and when it was published. */
  readonly as_of: string
  readonly published_at: string
  /** Just after that change. */
  readonly position: { readonly topic: string; readonly partition: number; readonly offset: number }
  readonly rules_version: number
  readonly key_rules_version: number
  /** The keys are those of the events before this offset. */
  readonly keys_position: { readonly topic: string; readonly offset: number }
  /**
   * Parked records are those before these offsets. A partition that is not here has none, the own one those before the
   * change.
   */
  readonly parked_positions: readonly RecordPosition[]
  readonly control_totals: readonly ControlTotals[]
  readonly files: Readonly<Record<string, FileDescription>>
  /** Tables that were made from the files, and the page. */
  readonly tables: Readonly<Record<string, DescribedFile>>
  /** SHA-256 over a line `name sha256` for each file, in order. */
  readonly digest: string
}
export type CloseHead = Omit<CloseManifest, 'files' | 'tables' | 'digest'>
