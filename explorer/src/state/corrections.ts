/**
 * The latest corrections: payouts that replaced another one, each with the amount before. They are looked for from the
 * last change backwards.
 */
import type { Change, Client, Payout } from '../../../client/src/index.ts'
import { latestChanges } from './latest-changes.ts'

type PayoutChange = Extract<Change, { readonly kind: 'payouts' }>

export type Correction = {
  /** The id of the payout and of the change. */
  readonly id: string
  readonly sequence: number
  readonly after: Payout
  /** The payout that it replaced. */
  readonly before: Payout
}

export type Corrections = {
  /** Newest first. */
  readonly found: readonly Correction[]
  /** Whether there are more changes than were looked at: then older corrections can be missing. */
  readonly isPartial: boolean
}

const CORRECTIONS_MAX = 5
/** Changes that are read at first, which are often enough, then at once: ten times. And in all. */
const FIRST_PAGE = 50
const PAGE = 195
export const CHANGES_LOOKED_AT = 2_000

/**
 * @returns a function that reads the corrections, the first time all of them, later only those among `latest` that are
 * newer
 */
export const createCorrections = (): ((client: Client, latest: readonly Change[]) => Promise<Corrections>) => {
  let known: Corrections | undefined
  return async (client, latest) => {
    known ??= await search(client)
    const { found, isPartial } = known
    const newest = found[0]?.sequence ?? 0
    const fresh = replacing(latest).filter(({ sequence }) => sequence > newest)
    const all = [...(await withBefore(client, fresh.slice(0, CORRECTIONS_MAX))), ...found]
    known = { found: all.slice(0, CORRECTIONS_MAX), isPartial: isPartial && all.length < CORRECTIONS_MAX }
    return known
  }
}

/** The corrections among changes, in their order. */
export const correctionsAmong = (client: Client, changes: readonly Change[]): Promise<Correction[]> =>
  withBefore(client, replacing(changes))

const replacing = (changes: readonly Change[]): PayoutChange[] =>
  changes.flatMap(change => (change.kind === 'payouts' && change.supersedes_id !== null ? [change] : []))

const withBefore = async (client: Client, corrected: readonly PayoutChange[]): Promise<Correction[]> => {
  const ids = corrected.flatMap(({ supersedes_id }) => supersedes_id ?? [])
  const replaced = ids.length === 0 ? [] : await Array.fromAsync(client.payouts({ ids }))
  const byId = new Map(replaced.map(payout => [payout.id, payout]))
  return corrected.flatMap(({ id, sequence, record: after }) => {
    const before = byId.get(after.supersedes_id ?? '')
    return before === undefined ? [] : [{ id, sequence, after, before }]
  })
}

const search = async (client: Client): Promise<Corrections> => {
  const found: PayoutChange[] = []
  let looked = 0
  for await (const { data, hasMore } of latestChanges(client, PAGE, FIRST_PAGE).pages()) {
    found.push(...replacing(data))
    looked += data.length
    const isEnough = found.length >= CORRECTIONS_MAX
    if (isEnough || !hasMore || looked >= CHANGES_LOOKED_AT) {
      const isPartial = !isEnough && hasMore
      return { found: await withBefore(client, found.slice(0, CORRECTIONS_MAX)), isPartial }
    }
  }
  return { found: [], isPartial: false }
}
