import { describe, expect, test } from 'vitest'
import { JsonText, withLists } from '../../../projector/event/raw-json.ts'
import { Cache } from '../../../projector/flow/cache.ts'
import { load, type PendingEvent, type ReadDocuments } from '../../../projector/flow/load.ts'
import { type Rendered, render } from '../../../projector/flow/serialize.ts'
import { CACHE_BYTES_PER_PARTITION, CACHE_HEAD_BYTES_PER_PARTITION, MGET_IDS } from '../../../projector/limits.ts'
import {
  type AnyNewDocument,
  type DocumentKey,
  documentChangeOf,
  refOf,
  State,
} from '../../../projector/rules/state.ts'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import { Documents, tell } from '../given.ts'
import { assess, type Event, eventRecord } from '../records.ts'
import { payment, payout, period, rep, voided } from '../story.ts'

const head = (seq: number, length = 1): AnyNewDocument => ({
  org_id: 'org_1',
  body: { versions: Array.from({ length }, () => ({ seq, hash: 'x' })) },
})
const change = (id: string, version: number, draft = head(version)): Rendered =>
  render(documentChangeOf(refOf('reps', id), version, draft))

describe('the cache', () => {
  test('returns the latest decision, acknowledged or not', () => {
    const cache = new Cache(false)
    const [first, second] = [change('a', 1), change('a', 2)]
    const batches = [[first], [second]]
    const pending = batches.map(batch => cache.addDecided(batch))
    expect(cache.get('reps/a')).toBe(second.draft)
    for (const acknowledged of pending.toReversed()) acknowledged()
    expect(cache.get('reps/a')).toBe(second.draft)
  })

  test('knows which documents do not exist if everything stored was decided here', () => {
    const [all, some] = [new Cache(true), new Cache(false)]
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

  test('applies an acknowledgement only to its own batch, and only once', () => {
    const cache = new Cache(false)
    const [first, second] = [change('a', 1), change('a', 2)]
    const acknowledged = cache.addDecided([first])
    cache.addDecided([second])
    for (let times = 0; times < 2; times++) acknowledged()
    readMuch(cache)
    expect(cache.get('reps/a')).toBe(second.draft)
  })

  test('keeps the latest decision while an earlier one is pending', () => {
    const cache = new Cache(false)
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
    const cache = new Cache(false)
    const decided = change('a', 2)
    const acknowledged = cache.addDecided([decided])
    cache.keep('reps/a', head(1))
    expect(cache.get('reps/a')).toBe(decided.draft)
    acknowledged()
    cache.keep('reps/a', head(1))
    expect(cache.get('reps/a')).toBe(decided.draft)
  })

  test('never drops a pending document, however many there are', () => {
    const cache = new Cache(false)
    const many = Array.from({ length: 1_000 }, (_, at) => change(`${at}`, at, head(at, 1_000)))
    cache.addDecided(many)
    readMuch(cache)
    for (const { id, draft } of many) expect(cache.get(`reps/${id}`)).toBe(draft)
  })

  test('is bounded in acknowledged documents, and drops the oldest first', () => {
    const many = Array.from({ length: 400 }, (_, at) => change(`${at}`, at, head(at, 1_000)))
    const filled = (): Cache => {
      const cache = new Cache(false)
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
    const cache = new Cache(false)
    const many = Array.from({ length: 1_000 }, (_, at) => change(`${at}`, at, head(at, 1_000)))
    cache.addDecided(many)()
    readMuch(cache)
    expect(many.filter(({ key }) => cache.get(key) !== undefined)).toEqual([])
  })

  test('is bounded as soon as pending documents are acknowledged, even if nothing else comes', () => {
    const many = Array.from({ length: 200 }, (_, at) => change(`${at}`, at, head(at, 1_000)))
    const acknowledged = (): Cache => {
      const cache = new Cache(false)
      cache.addDecided(many)()
      return cache
    }
    const kept = many.filter(({ key }) => acknowledged().get(key) !== undefined)
    expect(kept.length * 1_000 * 150).toBeLessThanOrEqual(CACHE_HEAD_BYTES_PER_PARTITION)
  })

  test('keeps a document that is looked up again and again', () => {
    const cache = new Cache(false)
    const asked = change('asked', 0)
    cache.addDecided([asked])()
    for (let at = 0; at < 1_000; at++) {
      cache.keep(`reps/x${at}`, head(at, 1_000))
      expect(cache.get('reps/asked')).toBe(asked.draft)
    }
  })

  test('forgets an entry that has become too large: an older state of it would be wrong', () => {
    const cache = new Cache(false)
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
    const cache = new Cache(false)
    cache.addDecided([
      { ...change('a', 1), kind: 'statements' },
      { ...change('b', 1), kind: 'parked' },
    ])
    expect([cache.get('statements/a'), cache.get('parked/b')]).toEqual([undefined, undefined])
  })

  test('keeps reps and periods while payouts come and go', () => {
    const cache = new Cache(false)
    cache.addDecided([change('a', 1)])()
    const long = {
      org_id: 'org_1',
      body: { payouts: [], payroll: [], note: 'x'.repeat(CACHE_BYTES_PER_PARTITION / 4) },
    }
    for (let at = 0; at < 10; at++) cache.addDecided([render(documentChangeOf(refOf('chains', `${at}`), at, long))])()
    expect([cache.get('chains/0'), cache.get('reps/a')]).toEqual([undefined, head(1)])
  })

  test('returns payouts and chains as they were decided, and counts their length', () => {
    const cache = new Cache(false)
    const body = withLists({ id: 'payout_1', note: 'Ä"' }, { line_items: new JsonText('[{"amount":"1.50"}]') })
    const payout = { org_id: 'org_1', seq: 1, at: 1.7e12, until_seq: UNTIL_FOREVER, superseded_by_id: null, body }
    const chain = { org_id: 'org_1', body: { payouts: [{ seq: 1, id: 'payout_1' }], payroll: [] } }
    const changes = [
      documentChangeOf(refOf('payouts', 'a'), 1, payout as unknown as AnyNewDocument),
      documentChangeOf(refOf('chains', 'a'), 1, chain),
    ]
    cache.addDecided(changes.map(render))()
    expect(cache.get('payouts/a')).toEqual({ ...payout, body: JSON.parse(body.text) })
    expect(cache.get('chains/a')).toEqual(chain)

    const long = { ...chain, body: { ...chain.body, note: 'x'.repeat(CACHE_BYTES_PER_PARTITION / 4) } }
    for (const id of ['b', 'c', 'd', 'e', 'f'])
      cache.addDecided([render(documentChangeOf(refOf('chains', id), 2, long))])()
    expect(['a', 'b', 'e', 'f'].map(id => cache.get(`chains/${id}`) !== undefined)).toEqual([false, false, true, true])
  })
})

describe('loading', () => {
  const placed = (events: readonly Event[], from = 100): PendingEvent[] =>
    events.flatMap((event, at) => {
      const { record, verdict, reads, rules } = assess(eventRecord(event, from + at), {
        stream: 'events',
        partition: 0,
        partitions: 1,
      })
      return rules === undefined ? [] : [{ event: verdict, reads, rules, seq: record.offset, at: 0 }]
    })
  const reading = (documents: Documents) => {
    const asked: DocumentKey[][] = []
    const read: ReadDocuments = keys => {
      asked.push([...keys].sort())
      return documents.read(keys)
    }
    return { asked, read }
  }

  test('reads everything that a batch may need, each document once, in at most two rounds', async () => {
    const documents = await tell(
      [rep(), 'applied'],
      [period(), 'applied'],
      [payout('payout_1'), 'applied'],
      [payment('payroll_1'), 'applied'],
    )
    const { asked, read } = reading(documents)
    const events = [
      rep({ name: 'Ada' }),
      payout('payout_2', 'payout_1'),
      payout('payout_3', 'payout_2'),
      voided('payroll_2', 'payroll_1'),
    ]
    await load(placed(events), new Cache(false), read)
    expect(asked).toEqual([
      [
        'chains/org_1:rep_1:period_1',
        'payouts/org_1:payout_1',
        'payouts/org_1:payout_2',
        'payouts/org_1:payout_3',
        'payroll_files/org_1:payroll_1',
        'payroll_files/org_1:payroll_2',
        'periods/org_1:period_1',
        'reps/org_1:rep_1',
      ],
      ['reps/org_1:rep_1:0'],
    ])
  })

  test('reads at most MGET_IDS keys per request', async () => {
    const sizes: number[] = []
    const read: ReadDocuments = async keys => {
      sizes.push(keys.length)
      return new Map(keys.map(key => [key, null]))
    }
    const events = Array.from({ length: MGET_IDS + 1 }, (_, at) => rep({ id: `rep_${at}` }))
    expect((await load(placed(events), new Cache(false), read)).events).toBe(events.length)
    expect(sizes).toEqual([MGET_IDS, 1])
  })

  test('keeps the first events that one response covers, at least one, and leaves the others for later', async () => {
    const asked: number[] = []
    const read: ReadDocuments = async keys => {
      asked.push(keys.length)
      return new Map(keys.slice(0, 3).map(key => [key, null]))
    }
    const events = placed([rep({ id: 'rep_1' }), rep({ id: 'rep_2' }), payout('payout_1'), rep({ id: 'rep_3' })])
    // The response holds one of the four documents of the payout.
    const { state, events: complete } = await load(events, new Cache(false), read)
    expect(complete).toBe(2)
    expect(state.head(refOf('reps', 'org_1:rep_2'))).toBeNull()
    // Alone, the payout takes two responses: no event is decided with only a part of its documents.
    expect((await load(events.slice(2, 3), new Cache(false), read)).events).toBe(1)
    expect(asked).toEqual([6, 4, 1])
  })

  test('the second round of keys can be too large as well', async () => {
    const documents = await tell([rep({ id: 'rep_1' }), 'applied'], [rep({ id: 'rep_2' }), 'applied'])
    const read: ReadDocuments = async keys => {
      const found = await documents.read(keys)
      return keys[0]?.split(':').length === 3 ? new Map([...found].slice(0, 1)) : found
    }
    const events = placed([rep({ id: 'rep_1', name: 'Ada' }), rep({ id: 'rep_2', name: 'Bo' })])
    expect((await load(events, new Cache(false), read)).events).toBe(1)
  })

  test('does not read a found document again; a missing one is read again', async () => {
    const documents = await tell([rep(), 'applied'], [period(), 'applied'])
    const cache = new Cache(false)
    const { asked, read } = reading(documents)
    await load(placed([payout('payout_1')]), cache, read)
    await load(placed([payout('payout_1')]), cache, read)
    expect(asked[1]).toEqual(['chains/org_1:rep_1:period_1', 'payouts/org_1:payout_1'])
  })

  test('reads nothing if the cache has everything, or if there is no event', async () => {
    const cache = new Cache(false)
    const pending = ['reps/org_1:rep_1', 'reps/org_1:rep_1:0'] as const
    const body = { versions: [{ seq: 0, hash: 'x' }] }
    cache.addDecided(
      pending.map(key => render(documentChangeOf(refOf('reps', key.slice(5)), 0, { org_id: 'org_1', body }))),
    )
    const { asked, read } = reading(new Documents())
    await load(placed([rep()]), cache, read)
    await load([], cache, read)
    expect(asked).toEqual([])
  })
})

test('a rule that uses a document that was not loaded is a defect, not a missing document', () => {
  const state = new State()
  const payout = refOf('payouts', 'org_1:payout_1')
  expect(() => state.payout(payout)).toThrow('not loaded')
  state.set(payout.key, null)
  expect(state.payout(payout)).toBeNull()
})
