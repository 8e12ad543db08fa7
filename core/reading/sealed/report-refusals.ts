/**
 * Logs that records with sealed texts are refused, because the API cannot read their key.
 * Promises: each reason has a line at its first refusal, then at most one in SEAL_REPORT_INTERVAL. A refusal by Vault
 *   has the reason of Vault. No line names a key.
 */

import { type ReadSealKey, sealRefusals } from './key-store.ts'
import { SEAL_REPORT_INTERVAL } from './limits.ts'

type Say = (level: 'warn', message: string, details: { because: string; vault?: string }) => void

/**
 * Returns the same store, which logs each answer that refuses a record.
 * @param elapsed milliseconds of a monotonic clock
 */
export const reportRefusals = (read: ReadSealKey, say: Say, elapsed: () => number): ReadSealKey => {
  const reportedAt = new Map<string, number>()
  return async (id, turn) => {
    const found = await read(id, turn)
    if (found.state === 'here' || found.state === 'destroyed') return found
    const because = sealRefusals[found.state]
    const details = { because, ...('vault' in found && { vault: found.vault }) }
    const reason = Object.values(details).join()
    if (elapsed() - (reportedAt.get(reason) ?? Number.NEGATIVE_INFINITY) < SEAL_REPORT_INTERVAL) return found
    reportedAt.set(reason, elapsed())
    if (found.state === 'no_store') {
      say('warn', 'records with sealed texts are refused: SEAL_KEYS_DIR is not set', { because })
    } else say('warn', 'records with sealed texts are refused: a key cannot be read', details)
    return found
  }
}
