/** A batch that cannot be read, and why. The reason is stored: it depends on the bytes of the batch alone. */
import type { UnreadableReason } from '../../ledger/index.ts'

export class Undecodable extends Error {
  override name = 'Undecodable'
  readonly reason: UnreadableReason
  constructor(reason: UnreadableReason) {
    super(reason)
    this.reason = reason
  }
}
