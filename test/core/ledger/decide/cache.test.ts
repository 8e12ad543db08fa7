import { describe, expect, test } from 'vitest'
import { Cache } from '../../../../core/ledger/decide/cache.ts'
import { type DecidedDocument, serialize } from '../../../../core/ledger/decide/project.ts'
import { JsonText, withLists } from '../../../../core/ledger/event/json-text.ts'
import { CACHE_HEAD_BYTES_PER_PARTITION, CACHE_LINE_BYTES_PER_PARTITION } from '../../../../core/ledger/limits.ts'
import { type AnyNewDocument, documentChangeOf, refOf } from '../../../../core/ledger/rules/state.ts'
import { UNTIL_FOREVER } from '../../../../schemas/limits.ts'

const head = (seq: number, length = 1): AnyNewDocument => ({
  org_id: 'org_1',
  body: { versions: Array.from({ length }, () => ({ seq, hash: 'x' })) },
})
const change = (id: string, version: number, draft = head(version)): DecidedDocument =>
  serialize(documentChangeOf(refOf('reps', id), version, draft))

describe('the cache', () => {
  test('returns the latest decision, acknowledged or not', () => {
    const cache = new Cache({ fromFirstRecord: false })
    const [first, second] = [change('a', 1), change('a', 2)]
    const batches = [[first], [second]]
    const pending = batches.map(batch => cache.addDecided(batch))
    expect(cache.get('reps/a')).toBe(second.draft)
    for (const acknowledged of pending.toReversed()) acknowledged()
    expect(cache.get('reps/a')).toBe(second.draft)
  })

  test('knows which documents do not exist if everything stored was decided here', () => {
    const [all, some] = [new Cache({ fromFirstRecord: true }), new Cache({ fromFirstRecord: false })]
    for (const cache of [all, some]) cache.addDecided([change('a', 1)])
    expect(all.get('reps/a')).toEqual(head(1))
    expect(all.get('reps/b')).toBeNull()
    expect(some.get('reps/b')).toBeUndefined()
  })

  /** Reads more than the cache can keep, one document at a time. */
  const readMuch = (cache: Cache): void => {
    const half = CACHE_HEAD_BYTES_PER_PARTITION / 2 / (150 * 1_000)
    for (let at = 0; at < 3 * half; at++) cache.keep(`reps/x${at}`, head(at, 1_000))
  }

  test('keeps less if more partitions share the memory', () => {
    const shares = [1, 0.1].map(share => {
      const cache = new Cache({ fromFirstRecord: false, share })
      const count = (CACHE_HEAD_BYTES_PER_PARTITION * 0.4) / (150 * 1_000)
      for (let at = 0; at < count; at++) cache.keep(`reps/x${at}`, head(at, 1_000))
      return [cache.get('reps/x0'), cache.get(`reps/x${Math.ceil(count) - 1}`)].map(found => found !== undefined)
    })
    expect(shares).toEqual([
      [true, true],
      [false, true],
    ])
  })

  test('applies an acknowledgement only to its own batch, and only once', () => {
    const cache = new Cache({ fromFirstRecord: false })
    const [first, second] = [change('a', 1), change('a', 2)]
    const acknowledged = cache.addDecided([first])
    cache.addDecided([second])
    for (let times = 0; times < 2; times++) acknowledged()
    readMuch(cache)
    expect(cache.get('reps/a')).toBe(second.draft)
  })

  test('keeps the latest decision while an earlier one is pending', () => {
    const cache = new Cache({ fromFirstRecord: false })
    const [first, second] = [[change('a', 1)], [change('a', 2)]]
    const [firstAcknowledged, secondAcknowledged] = [cache.addDecided(first), cache.addDecided(second)]
    secondAcknowledged()
    readMuch(cache)
    expect(cache.get('reps/a')).toBe(second[0]?.draft)
    firstAcknowledged()
    readMuch(cache)
    expect(cache.get('reps/a')).toBeUndefined()
  })

  test('prefers its own decision to a document that was read', () => {
    const cache = new Cache({ fromFirstRecord: false })
    const decided = change('a', 2)
    const acknowledged = cache.addDecided([decided])
    cache.keep('reps/a', head(1))
    expect(cache.get('reps/a')).toBe(decided.draft)
    acknowledged()
    cache.keep('reps/a', head(1))
    expect(cache.get('reps/a')).toBe(decided.draft)
  })

  test('never drops a pending document, however many there are', () => {
    const cache = new Cache({ fromFirstRecord: false })
    const many = Array.from({ length: 1_000 }, (_, at) => change(`${at}`, at, head(at, 1_000)))
    cache.addDecided(many)
    readMuch(cache)
    for (const { id, draft } of many) expect(cache.get(`reps/${id}`)).toBe(draft)
  })

  test('is bounded in acknowledged documents, and drops the oldest first', () => {
    const many = Array.from({ length: 400 }, (_, at) => change(`${at}`, at, head(at, 1_000)))
    const filled = (): Cache => {
      const cache = new Cache({ fromFirstRecord: false })
      for (const one of many) cache.addDecided([one])()
      return cache
    }
    // Each document is looked up in a new cache: a lookup keeps a document longer.
    const kept = many.filter(({ key }) => filled().get(key) !== undefined)
    expect(kept.length * 1_000 * 150).toBeLessThanOrEqual(CACHE_HEAD_BYTES_PER_PARTITION)
    expect(kept.length * 1_000 * 150).toBeGreaterThan(CACHE_HEAD_BYTES_PER_PARTITION / 2)
    expect(kept).toEqual(many.slice(-kept.length))
  })

  test('drops documents that were pending, after they are acknowledged and as many others came', () => {
    const cache = new Cache({ fromFirstRecord: false })
    const many = Array.from({ length: 1_000 }, (_, at) => change(`${at}`, at, head(at, 1_000)))
    cache.addDecided(many)()
    readMuch(cache)
    expect(many.filter(({ key }) => cache.get(key) !== undefined)).toEqual([])
  })

  test('is bounded as soon as pending documents are acknowledged, even if nothing else comes', () => {
    const many = Array.from({ length: 200 }, (_, at) => change(`${at}`, at, head(at, 1_000)))
    const acknowledged = (): Cache => {
      const cache = new Cache({ fromFirstRecord: false })
      cache.addDecided(many)()
      return cache
    }
    const kept = many.filter(({ key }) => acknowledged().get(key) !== undefined)
    expect(kept.length * 1_000 * 150).toBeLessThanOrEqual(CACHE_HEAD_BYTES_PER_PARTITION)
  })

  test('keeps a document that is looked up again and again', () => {
    const cache = new Cache({ fromFirstRecord: false })
    const asked = change('asked', 0)
    cache.addDecided([asked])()
    for (let at = 0; at < 1_000; at++) {
      cache.keep(`reps/x${at}`, head(at, 1_000))
      expect(cache.get('reps/asked')).toBe(asked.draft)
    }
  })

  test('forgets an entry that has become too large: an older state of it would be wrong', () => {
    const cache = new Cache({ fromFirstRecord: false })
    const small = [change('a', 1)]
    const large = [change('a', 2, head(2, CACHE_HEAD_BYTES_PER_PARTITION / 150))]
    for (const batch of [small, large]) {
      const acknowledged = cache.addDecided(batch)
      expect(cache.get('reps/a')).toBe(batch[0]?.draft)
      acknowledged()
    }
    expect(cache.get('reps/a')).toBeUndefined()
  })

  test('does not keep documents that no rule reads', () => {
    const cache = new Cache({ fromFirstRecord: false })
    cache.addDecided([
      { ...change('a', 1), kind: 'statements' },
      { ...change('b', 1), kind: 'parked' },
    ])
    expect([cache.get('statements/a'), cache.get('parked/b')]).toEqual([undefined, undefined])
  })

  test('keeps reps and periods while payouts come and go', () => {
    const cache = new Cache({ fromFirstRecord: false })
    cache.addDecided([change('a', 1)])()
    const long = {
      org_id: 'org_1',
      body: { payouts: [], payroll: [], note: 'x'.repeat(CACHE_LINE_BYTES_PER_PARTITION / 4) },
    }
    for (let at = 0; at < 10; at++)
      cache.addDecided([serialize(documentChangeOf(refOf('chains', `${at}`), at, long))])()
    expect([cache.get('chains/0'), cache.get('reps/a')]).toEqual([undefined, head(1)])
  })

  const payoutDraft = (superseded_by_id: string | null): AnyNewDocument =>
    ({ org_id: 'org_1', seq: 1, at: 1.7e12, until_seq: UNTIL_FOREVER, superseded_by_id, body: {} }) as AnyNewDocument
  const payoutChange = (id: string, replacedBy: string | null): DecidedDocument =>
    serialize(documentChangeOf(refOf('payouts', id), 1, payoutDraft(replacedBy)))

  test('drops a replaced payout when it is acknowledged, not before', () => {
    const cache = new Cache({ fromFirstRecord: true })
    const acknowledged = cache.addDecided([payoutChange('a', 'b'), payoutChange('b', null)])
    expect(cache.get('payouts/a')).toEqual(payoutDraft('b'))
    acknowledged()
    expect([cache.get('payouts/a'), cache.get('payouts/b')]).toEqual([undefined, payoutDraft(null)])
  })

  test('keeps a payout that was decided again, until this decision is acknowledged', () => {
    const cache = new Cache({ fromFirstRecord: true })
    const [first, second] = ['b', 'c'].map(replacedBy => cache.addDecided([payoutChange('a', replacedBy)]))
    first?.()
    expect(cache.get('payouts/a')).toEqual(payoutDraft('c'))
    second?.()
    expect(cache.get('payouts/a')).toBeUndefined()
  })

  test('keeps current payouts beside any number of replaced ones', () => {
    const cache = new Cache({ fromFirstRecord: true })
    const current = Array.from({ length: 1_000 }, (_, at) => `current_${at}`)
    for (const id of current) cache.addDecided([payoutChange(id, null)])()
    for (let at = 0; at < 100_000; at++) cache.addDecided([payoutChange(`${at}`, 'other')])()
    expect(current.filter(id => cache.get(`payouts/${id}`) === undefined)).toEqual([])
  })

  test('payouts and their chains have one bound together', () => {
    const note = 'x'.repeat(CACHE_LINE_BYTES_PER_PARTITION / 20)
    const drafts = {
      payouts: { ...payoutDraft(null), body: { note } },
      chains: { org_id: 'org_1', body: { payouts: [], payroll: [], note } },
    }
    const cache = new Cache({ fromFirstRecord: false })
    const pairs = Array.from({ length: 15 }, (_, at) => `${at}`)
    for (const id of pairs) {
      const changes = (['payouts', 'chains'] as const).map(kind =>
        documentChangeOf(refOf(kind, id), 1, drafts[kind] as AnyNewDocument),
      )
      cache.addDecided(changes.map(serialize))()
    }
    const kept = pairs.flatMap(id => [cache.get(`payouts/${id}`), cache.get(`chains/${id}`)]).filter(Boolean)
    expect(kept.length * note.length).toBeLessThanOrEqual(CACHE_LINE_BYTES_PER_PARTITION)
    expect(kept.length * note.length).toBeGreaterThan(CACHE_LINE_BYTES_PER_PARTITION / 4)
  })

  test('returns payouts and chains as they were decided, and counts their length', () => {
    const cache = new Cache({ fromFirstRecord: false })
    const body = withLists({ id: 'payout_1', note: 'Ä"' }, { line_items: new JsonText('[{"amount":"1.50"}]') })
    const payout = { org_id: 'org_1', seq: 1, at: 1.7e12, until_seq: UNTIL_FOREVER, superseded_by_id: null, body }
    const chain = { org_id: 'org_1', body: { payouts: [{ seq: 1, id: 'payout_1' }], payroll: [] } }
    const changes = [
      documentChangeOf(refOf('payouts', 'a'), 1, payout as unknown as AnyNewDocument),
      documentChangeOf(refOf('chains', 'a'), 1, chain),
    ]
    cache.addDecided(changes.map(serialize))()
    expect(cache.get('payouts/a')).toEqual({ ...payout, body: JSON.parse(body.text) })
    expect(cache.get('chains/a')).toEqual(chain)

    const long = { ...chain, body: { ...chain.body, note: 'x'.repeat(CACHE_LINE_BYTES_PER_PARTITION / 4) } }
    for (const id of ['b', 'c', 'd', 'e', 'f'])
      cache.addDecided([serialize(documentChangeOf(refOf('chains', id), 2, long))])()
    expect(['a', 'b', 'e', 'f'].map(id => cache.get(`chains/${id}`) !== undefined)).toEqual([false, false, true, true])
  })
})
