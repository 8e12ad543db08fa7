/**
 * The checkpoint of an organization now, from an API that has signed nothing yet. The digest of changes, as
 * docs/evidence.md describes it: independent of the code of the product.
 */
import { createHash } from 'node:crypto'
import { createSigningKey } from '../../core/runtime/index.ts'
import { recorded, serveApi } from './api.ts'
import type { Scope } from './scope.ts'

/**
 * Returns the signed lines without their time.
 * @param key of the organization
 * @param url of Elasticsearch; by default that of the test run
 */
export const checkpointNow = async (scope: Scope, prefix: string, key: string, url?: string): Promise<string[]> => {
  const checkpointKey = createSigningKey('api.example.com/checkpoints')
  const { ask } = await serveApi(scope, prefix, { checkpointKey, ...(url !== undefined && { url }) })
  let answer = await ask('/checkpoint', key)
  for (let again = 0; answer.status === 503 && again < 20; again++) answer = await ask('/checkpoint', key)
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  const [text = ''] = String(recorded(answer).note).split('\n\n')
  return text.split('\n').filter(line => !line.startsWith('time '))
}

type Fields = Record<string, unknown>
const sha256 = (...parts: (Buffer | string)[]): Buffer =>
  parts.reduce((sum, part) => sum.update(part), createHash('sha256')).digest()

/** A change as `/changes` answers it. */
export type AnsweredChange = Fields
/** Returns the digest before the first change, and after each of them. */
export const digestsOf = (changes: readonly AnsweredChange[]): string[] => {
  let digest = sha256('commission checkpoint 1\n')
  return [digest, ...changes.map(change => (digest = sha256(digest, sha256(textOfChange(change)))))].map(bytes =>
    bytes.toString('hex'),
  )
}

const textOfChange = ({ kind, id, sequence, published_at, record }: AnsweredChange): string => {
  const of = record as Fields & { destination: Fields; line_items: Fields[] }
  const pay = [of.id, of.rep_id, of.period_id]
  const fields: Record<string, () => unknown[]> = {
    reps: () => [of.id, of.status, of.started_on, of.departed_on],
    periods: () => [of.id, of.kind, of.timezone, of.starts_at, of.ends_at],
    payouts: () => [
      ...[...pay, of.net_amount, of.earned_amount, of.currency, of.supersedes_id, of.calculated_at, of.recorded_at],
      of.line_items.map(line => [line.id, line.category, line.amount, line.deal_id]),
    ],
    payroll_files: () => [
      ...[...pay, of.payout_id, of.reverses_id, of.amount, of.currency],
      ...[of.destination.type, of.recorded_at],
    ],
  }
  return JSON.stringify([kind, id, sequence, published_at, ...(fields[String(kind)]?.() ?? [])])
}
