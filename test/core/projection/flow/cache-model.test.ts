/** The cache beside a model that forgets nothing, over thousands of random batches, acknowledgements and reads. */
import { expect, test } from 'vitest'
import { Cache } from '../../../../core/ledger/decide/cache.ts'
import { type DecidedDocument, serialize } from '../../../../core/ledger/decide/project.ts'
import { CACHE_HEAD_BYTES_PER_PARTITION, CACHE_LINE_BYTES_PER_PARTITION } from '../../../../core/ledger/limits.ts'
import { type AnyNewDocument, type DocumentKey, documentChangeOf, refOf } from '../../../../core/ledger/rules/state.ts'
import { UNTIL_FOREVER } from '../../../../schemas/limits.ts'
import { createRandom, type Random } from '../../../support/random.ts'

const STEPS = 2_000
const PENDING_MOST = 4
/** The cache has room for about half of these ids. */
const IDS = 60

const headOf = (seq: number, random: Random): AnyNewDocument => {
  const length = Math.ceil(random.below(CACHE_HEAD_BYTES_PER_PARTITION / 150) / 20)
  return { org_id: 'org_1', body: { versions: Array.from({ length: length + 1 }, () => ({ seq, hash: 'x' })) } }
}
const chainOf = (seq: number, random: Random): AnyNewDocument => {
  const note = 'x'.repeat(random.below(CACHE_LINE_BYTES_PER_PARTITION / 20))
  const body = { payouts: [{ seq, id: 'payout_1' }], payroll: [], note }
  return { org_id: 'org_1', body } as AnyNewDocument
}
/** Every second payout is replaced by another one. */
const payoutOf = (seq: number, random: Random): AnyNewDocument => {
  const body = { versions: [{ seq }], note: 'x'.repeat(random.below(CACHE_LINE_BYTES_PER_PARTITION / 20)) }
  const superseded_by_id = random.below(2) === 0 ? null : 'payout_2'
  return { org_id: 'org_1', seq, at: 1.7e12, until_seq: UNTIL_FOREVER, superseded_by_id, body } as AnyNewDocument
}
const KINDS = { reps: headOf, chains: chainOf, payouts: payoutOf }
const kindOf = (random: Random) => (['reps', 'chains', 'payouts'] as const)[random.below(3)] ?? 'reps'
/** The step at which the document was decided. */
const seqOf = (draft: AnyNewDocument | null): number | undefined => {
  const { versions, payouts } = (draft?.body ?? {}) as { versions?: { seq: number }[]; payouts?: { seq: number }[] }
  return (versions ?? payouts)?.[0]?.seq
}
const changeAt = (seq: number, random: Random): DecidedDocument => {
  const kind = kindOf(random)
  return serialize(documentChangeOf(refOf(kind, `${random.below(IDS)}`), seq, KINDS[kind](seq, random)))
}

test.each([1, 2, 3])('returns the latest decision, and never lacks one that is pending (seed %i)', seed => {
  const random = createRandom(seed)
  const cache = new Cache({ fromFirstRecord: true })
  const latest = new Map<DocumentKey, AnyNewDocument>()
  const pending: { readonly drafts: Set<AnyNewDocument>; readonly acknowledged: () => void }[] = []
  let given = 0
  for (let seq = 0; seq < STEPS; seq++) {
    if (pending.length < PENDING_MOST && random.below(3) === 0) {
      const batch = Array.from({ length: 1 + random.below(8) }, () => changeAt(seq, random))
      // A batch has each document once.
      const documents = [...new Map(batch.map(document => [document.key, document])).values()]
      const drafts = new Set(documents.map(({ draft }) => draft))
      pending.push({ drafts, acknowledged: cache.addDecided(documents) })
      for (const { key, draft } of documents) latest.set(key, draft)
    } else if (random.below(2) === 0) {
      for (const { acknowledged } of pending.splice(random.below(pending.length), 1)) acknowledged()
    }
    const key: DocumentKey = `${kindOf(random)}/${random.below(IDS)}`
    const found = cache.get(key)
    if (found === undefined) {
      const stored = latest.get(key)
      // Elasticsearch has the latest decision only after its acknowledgement. An earlier write cannot replace it.
      expect(pending.some(({ drafts }) => stored && drafts.has(stored))).toBe(false)
      if (stored) cache.keep(key, stored)
    } else {
      expect(seqOf(found)).toBe(seqOf(latest.get(key) ?? null))
      given++
    }
  }
  expect(given).toBeGreaterThan(STEPS / 4)
  expect(given).toBeLessThan(STEPS)
})
