/**
 * Clients that walk the lists all the time, over two API processes in turn. They use the API's own code for reads and
 * answers on the simulated Elasticsearch. Each page is compared with the model at the position of the page, and each
 * walk with the contract for walks. Not simulated: HTTP, the rate limit, and the time limit of a read.
 */

import { answerByIds, answerList, answerPayout, answerStatement } from '../../api/answer/answer-page.ts'
import { type ApiKeyCache, createApiKeyCache } from '../../core/reading/api-key-cache.ts'
import type { ReadCheckpoint } from '../../core/reading/checkpoint/read-checkpoint.ts'
import { KEY_CACHE_TIME } from '../../core/reading/limits.ts'
import type { ReadByIds } from '../../core/reading/pages/read-by-ids.ts'
import type { ReadList } from '../../core/reading/pages/read-list.ts'
import type { ReadRecords } from '../../core/reading/pages/read-record.ts'
import type { ReadTotals } from '../../core/reading/pages/read-totals.ts'
import { createReaders } from '../../core/reading/readers.ts'
import { Refusal } from '../../core/runtime/refusals.ts'
import type { ReadPosition } from '../../core/store/positions/position.ts'
import { uncounted } from '../../core/store/read/scope.ts'
import { API_KEYS_GENERATION, FIRST_GENERATION, listKinds } from '../../schemas/stored/documents.ts'
import type { Random } from '../support/random.ts'
import { scopeOf } from '../support/read-scope.ts'
import { totalsAt } from '../support/totals.ts'
import type { Clock } from './clock.ts'
import type { Coverage } from './coverage.ts'
import type { SimulatedElasticsearch } from './elasticsearch.ts'
import type { Faults } from './faults.ts'
import { API_KEYS, EVENTS, type Expectation, type History, type List, textOf, textOfItem } from './history.ts'
import { haveDeals, type Layouts } from './layouts.ts'
import { PREFIX, type Promises } from './promises.ts'
import { checkpointKey, checkpointTime, Proofs } from './proofs.ts'
import { type FeedReading, lookBack, readAfter } from './read-feed.ts'
import { createSearches, noIndexChecks } from './searches.ts'
import { answered, areAnyLost, DEAL, type Filter, filterOf, matchesFilter, repAndPeriodOf, type Walk } from './walk.ts'

type Api = {
  readonly readList: ReadList
  readonly readByIds: ReadByIds
  readonly read: ReadRecords
  readonly readTotals: ReadTotals
  readonly checkpoint: ReadCheckpoint
  readonly keys: ApiKeyCache
}

export type World = {
  readonly clock: Clock
  readonly engine: SimulatedElasticsearch
  readonly faults: Faults
  readonly random: Random
  readonly coverage: Coverage
  readonly history: History
  readonly promises: Promises
  readonly layouts: Layouts
  readonly fail: (reason: string) => void
}

const LIMITS = [1, 2, 3, 7, 50]
const signal = new AbortController().signal

export class Readers {
  readonly #world: World
  readonly #pause: number
  #apis: Api[]
  #isOpen = true
  /** All faults have ended. */
  #mustAnswer = false
  #turn = 0
  /** Ids that any list has returned. */
  readonly #listed = new Map<string, Set<string>>()
  /** Each position of the API keys, and when it was first seen. */
  readonly #keysReached: { readonly time: number; readonly position: number }[] = []
  readonly #proofs: Proofs

  /** @param pause average milliseconds between two requests of a walker */
  constructor(world: World, pause: number) {
    this.#world = world
    this.#pause = pause
    this.#apis = [this.#startApi(), this.#startApi()]
    const checkpoint = (org: string) => this.#ask(api => api.checkpoint(scopeOf(org), () => undefined))
    this.#proofs = new Proofs({ ...this.#feed(), checkpoint })
  }

  /** Starts walkers. They run until `stop`. */
  start(walkers: number): void {
    for (let count = 0; count < walkers; count++) this.#keepDoing(() => this.#walk(this.#anyWalk()))
    this.#keepDoing(() => lookBack(this.#feed()))
    this.#keepDoing(() => readAfter(this.#feed()))
    this.#keepDoing(() => this.#readByIds())
    this.#keepDoing(() => this.#proofs.prove(this.#world.random.pick(this.#world.history.organizations)))
    this.#keepDoing(() => this.#addUp(this.#world.random.pick(this.#world.history.organizations)))
    this.#keepDoing(async () => {
      await this.#lookUpKey()
      await this.#sleep(this.#pause * 10)
    })
  }

  /** Walks every list of every organization, with a small limit and with a large one. */
  async walkAll(): Promise<void> {
    this.#mustAnswer = true
    for (const org of this.#world.history.organizations) {
      for (const list of listKinds) {
        const limit = this.#world.random.pick([2, 3, 7])
        await this.#walk({ org, list, limit, from: undefined })
        await this.#walk({ org, list, limit: 50, from: undefined })
      }
      await this.#addUp(org)
      await this.#proofs.prove(org)
    }
  }

  stop(): void {
    this.#isOpen = false
  }

  #startApi(): Api {
    const { clock, engine, faults } = this.#world
    const { search, multiGet } = createSearches(clock, engine, faults)
    const later = (milliseconds: number, run: () => void) => clock.after(milliseconds, run)
    const reads = uncounted({ search, multiGet })
    const parts = { prefix: PREFIX, reads, indexChecks: noIndexChecks, ...clock.clocks, later, checkpointKey }
    const { readers } = createReaders({ ...parts, checkpointNow: () => checkpointTime(clock) })
    const keys = createApiKeyCache(PREFIX, multiGet, clock.now, clock.now)
    const { list: readList, byIds: readByIds, records: read, totals: readTotals, checkpoint } = readers
    return { readList, readByIds, read, readTotals, checkpoint, keys }
  }

  #keepDoing(once: () => Promise<void>): void {
    const { clock, random, fail } = this.#world
    const again = (): void => {
      if (!this.#isOpen) return
      clock.after(random.next() * this.#pauseNow(), () => {
        once()
          .then(again)
          .catch(error => fail(`a reader failed: ${error instanceof Error ? error.stack : String(error)}`))
      })
    }
    again()
  }

  /** Reads more often just after a position has moved: more can go wrong then. */
  #pauseNow(): number {
    const { clock, promises } = this.#world
    return clock.elapsed - promises.movedAt < 300 ? this.#pause / 3 : this.#pause * 8
  }

  /** Returns the next API process, and sometimes restarts it first. */
  #api(): Api {
    const { random, coverage } = this.#world
    const place = this.#turn++ % this.#apis.length
    if (random.chance(0.001)) {
      coverage.count('API processes started again')
      this.#apis = this.#apis.with(place, this.#startApi())
    }
    const api = this.#apis[place]
    if (api === undefined) throw new Error('there is no API process')
    return api
  }

  #sleep(milliseconds: number): Promise<void> {
    return new Promise(resolve => void this.#world.clock.after(milliseconds, resolve))
  }

  /** Retries while the answer is `unavailable`. Returns undefined after `stop` or too many tries; fails at the end. */
  async #ask<Result>(request: (api: Api) => Promise<Result>): Promise<Result | Refusal | undefined> {
    for (let [tries, late] = [0, 0]; tries < 200; tries++) {
      try {
        return await request(this.#api())
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        if (error.code !== 'unavailable') return error
        this.#world.coverage.count('reads answered unavailable')
        if (!this.#isOpen && !this.#mustAnswer) return undefined
        if (this.#mustAnswer && late++ === 50) this.#fail(`the API is unavailable after all faults: ${error.reason}`)
        await this.#sleep(200 + this.#pause)
      }
    }
    return undefined
  }

  #anyWalk(): Walk {
    const { random, history, coverage } = this.#world
    const org = random.pick(history.organizations)
    const list = random.pick([...listKinds, 'payouts', 'payouts'] as const)
    const paid = [...(this.#listed.get(`${org} payouts`) ?? [])]
    if (paid.length > 0 && random.chance(0.1)) {
      coverage.count('walks as of a moment')
      const id = random.pick(paid)
      const moment = { id, position: (history.placeOf(org, id) ?? 0) + 1 }
      return { org, list, limit: random.pick(LIMITS), from: undefined, moment }
    }
    const known = [...(this.#listed.get(`${org} ${list}`) ?? [])]
    const filter = this.#anyFilter(org, list)
    const from = known.length > 0 && random.chance(0.25) ? random.pick(known) : undefined
    if (from !== undefined) {
      coverage.count('walks from an old cursor')
      const current = history.at(org, this.#positionOf(org)).lists[list]
      if (!current.some(({ id }) => id === from)) coverage.count('walks from a replaced record')
    }
    return { org, list, limit: random.pick(LIMITS), from, filter }
  }

  /** Sometimes the rep, the period or a deal of a record of the list. */
  #anyFilter(org: string, list: List): Filter {
    const { random, history, coverage } = this.#world
    if (list !== 'payouts' && list !== 'payroll_files') return {}
    const items = history.at(org, this.#positionOf(org)).lists[list]
    if (items.length === 0 || !random.chance(0.3)) return {}
    const filter = filterOf(random.pick(items), random, haveDeals(this.#world.layouts))
    coverage.count(filter.deal_id === undefined ? 'walks with a filter' : 'walks with a deal')
    return filter
  }

  #feed(): FeedReading {
    const read: FeedReading['read'] = (...of) => this.#ask(({ readList }) => readList(...of))
    return { ...this.#world, read, positionOf: org => this.#positionOf(org) }
  }

  #positionOf(org: string): number {
    const { promises, history } = this.#world
    return promises.published(promises.live()?.generation ?? FIRST_GENERATION, history.partitionOf(org))?.position ?? 0
  }

  async #walk(walk: Walk): Promise<void> {
    const { random, coverage, history } = this.#world
    const { org, list, limit, from, moment, filter = {} } = walk
    const filtered = Object.values(filter)
      .map(id => ` of ${id}`)
      .join('')
    const what = `${list}${filtered} of ${org} at limit ${limit}${moment ? ` as of ${moment.id}` : ''}`
    const asOf = moment && ({ kind: 'change', name: { kind: 'payouts', id: moment.id } } as const)
    const walked: Expectation[] = []
    let cursor = from
    let first: number | undefined
    let last = 0
    for (;;) {
      const least = this.#positionOf(org)
      const startingAfter = cursor === undefined ? undefined : { kind: list, id: cursor }
      const parameters = { list, limit, startingAfter, asOf, filter }
      const page = await this.#ask(({ readList }) => readList(scopeOf(org), parameters))
      if (page === undefined) return
      if (page instanceof Refusal) return this.#fail(`${what}: cursor ${cursor} is refused with ${page.code}`)
      const { publishedTo } = page.position
      if (moment && publishedTo !== moment.position)
        return this.#fail(`${what}: read at ${publishedTo}, not at its moment`)
      if (!moment && publishedTo < Math.max(least, last))
        return this.#fail(`${what}: the position went back to ${publishedTo}`)
      const { data, has_more, next_cursor } = answered(ctx => answerList(ctx, list, page, startingAfter))
      coverage.count('pages')
      first ??= publishedTo
      last = publishedTo

      const place = cursor === undefined ? -1 : (history.placeOf(org, cursor) ?? -1)
      const behind = history
        .at(org, publishedTo)
        .lists[list].filter(item => item.place > place && matchesFilter(item, filter))
      const wanted = behind.slice(0, limit)
      if (data.length !== wanted.length || !data.every((item, at) => textOfItem(item) === wanted[at]?.text)) {
        return this.#fail(`${what}: the page at ${publishedTo} after ${cursor} differs from the model`)
      }
      if (has_more !== behind.length > limit) return this.#fail(`${what}: has_more is ${has_more}`)
      if (next_cursor !== (wanted.at(-1)?.id ?? cursor ?? '')) return this.#fail(`${what}: next_cursor ${next_cursor}`)
      if (!moment) this.#checkTime(org, page.position)
      coverage.count('pages compared with the model')
      walked.push(...wanted)
      this.#remember(org, list, wanted)
      if (list === 'payouts' && wanted.length > 0 && random.chance(0.3))
        await this.#readAgain(org, random.pick(wanted).id)
      if (!has_more) break
      cursor = next_cursor
      await this.#sleep(random.next() * this.#pause)
    }
    this.#checkWalk(walk, walked, first, last, what)
  }

  /** Checks a whole walk: promise 3 of the contract. */
  #checkWalk(
    { org, list, from, filter = {} }: Walk,
    walked: readonly Expectation[],
    first: number,
    last: number,
    what: string,
  ): void {
    const { coverage, history } = this.#world
    coverage.count('walks')
    const ids = new Set(walked.map(({ id }) => id))
    if (ids.size < walked.length) this.#fail(`${what}: a walk returned an id twice`)
    if (walked.some(({ place }, at) => at > 0 && place <= (walked[at - 1]?.place ?? -1))) {
      this.#fail(`${what}: a walk did not move forward`)
    }
    const start = from === undefined ? -1 : (history.placeOf(org, from) ?? -1)
    const before = history.at(org, first).lists[list].filter(item => item.place > start && matchesFilter(item, filter))
    const atEnd = history.at(org, last).lists[list]
    const after = new Map(atEnd.map(({ id, text }) => [id, text]))
    if (before.some(({ id, text }) => after.get(id) !== text)) coverage.count('walks during which the list changed')
    if (before.some(({ id }) => after.has(id) && !ids.has(id))) this.#fail(`${what}: a walk skipped a record`)
    if (list !== 'payouts') return
    if (areAnyLost(before, walked, atEnd, filter))
      this.#fail(`${what}: a walk returned neither a replaced payout nor its replacement`)
  }

  #remember(org: string, list: List, items: readonly Expectation[]): void {
    const key = `${org} ${list}`
    const listed = this.#listed.get(key) ?? new Set()
    for (const { id } of items) listed.add(id)
    this.#listed.set(key, listed)
  }

  /** An answer must include everything published up to its time. */
  #checkTime(org: string, { publishedTo, time }: ReadPosition): void {
    const { promises, history } = this.#world
    const end = promises.endAt(EVENTS, history.partitionOf(org), time)
    if (publishedTo < end) this.#fail(`an answer at ${publishedTo} has a time that includes offsets below ${end}`)
  }

  /** A listed payout and its replacement must be readable by id: promise 6 of the contract. */
  async #readAgain(org: string, id: string): Promise<void> {
    const { coverage, history } = this.#world
    const found = await this.#ask(({ read }) => read.record(scopeOf(org), 'payouts', { id, asOf: undefined }))
    if (found === undefined) return
    if (found instanceof Refusal) return this.#fail(`${id} was listed, but a read by id is refused with ${found.code}`)
    coverage.count('reads by id')
    const { data } = answered<{ data: Record<string, unknown> }>(ctx => answerPayout(ctx, found))
    const { publishedTo } = found.position
    if (textOfItem(data) !== history.at(org, publishedTo).payouts.get(id)?.text) {
      return this.#fail(`${id} read at ${publishedTo} differs from the model`)
    }
    const statement = await this.#ask(({ read }) => read.statement(scopeOf(org), { id, asOf: undefined }))
    if (statement === undefined) return
    if (statement instanceof Refusal) return this.#fail(`the statement of ${id} is refused with ${statement.code}`)
    const shown = answered<{ data: unknown }>(ctx => answerStatement(ctx, statement)).data
    if (textOfItem(shown) !== history.at(org, statement.position.publishedTo).statements.get(id)) {
      return this.#fail(`the statement of ${id} at ${statement.position.publishedTo} differs from the model`)
    }
    if (data.superseded_by_id !== null) await this.#readAgain(org, String(data.superseded_by_id))
  }

  /** Some records by their ids must be those of the model at the position of the answer, in the order asked. */
  async #readByIds(): Promise<void> {
    const { random, history, coverage } = this.#world
    const [org, kind] = [random.pick(history.organizations), random.pick(listKinds)]
    const known = history.organizations.flatMap(one => [...(this.#listed.get(`${one} ${kind}`) ?? [])])
    if (known.length === 0) return
    const ids = [...new Set(Array.from({ length: 1 + random.below(5) }, () => random.pick(known)))]
    const page = await this.#ask(({ readByIds }) => readByIds(scopeOf(org), { kind, ids, asOf: undefined }))
    if (page === undefined) return
    if (page instanceof Refusal) return this.#fail(`${kind} of ${org} by ids are refused with ${page.code}`)
    const { data } = answered(ctx => answerByIds(ctx, kind, page))
    coverage.count('records by ids compared with the model')
    const wanted = history.byIds(org, page.position.publishedTo, kind, ids)
    if (textOf(data.map(textOfItem)) !== textOf(wanted)) this.#fail(`${kind} of ${org} by ids differ from the model`)
  }

  /** Totals, now or as of a payout, of all, one rep or a deal, must be the sums of the lists at that position. */
  async #addUp(org: string): Promise<void> {
    const { random, history, coverage } = this.#world
    const paid = [...(this.#listed.get(`${org} payouts`) ?? [])]
    const id = paid.length > 0 && random.chance(0.5) ? random.pick(paid) : undefined
    const asOf = id === undefined ? undefined : ({ kind: 'change', name: { kind: 'payouts', id } } as const)
    const current = history.at(org, this.#positionOf(org)).lists.payouts
    const rep = current.length > 0 && random.chance(0.3) ? repAndPeriodOf(random.pick(current)).rep_id : undefined
    const deal = haveDeals(this.#world.layouts) && random.chance(0.3) ? DEAL : undefined
    const found = await this.#ask(({ readTotals }) => readTotals(scopeOf(org), { asOf, rep, deal }))
    if (found === undefined) return
    const what = `totals of ${rep ?? 'all reps'} of ${deal ?? 'all deals'} of ${org}${id ? ` as of ${id}` : ''}`
    if (found instanceof Refusal) return this.#fail(`${what} are refused with ${found.code}`)
    const { position, totals } = found
    if (totals.last_sequence !== history.eventsOf(org, position.publishedTo).length)
      return this.#fail(`${what} at ${position.publishedTo} have the last sequence ${totals.last_sequence}`)
    coverage.count(`totals${deal ? ' of a deal' : rep ? ' of one rep' : ''} compared with the model`)
    const wanted = totalsAt(history.recordsAt(org, position.publishedTo), rep, deal)
    const got = deal === undefined ? totals.totals : totals.line_totals
    if (textOf(got) !== textOf(wanted))
      return this.#fail(`${what} at ${position.publishedTo} differ from the model: ${textOf(got)}`)
  }

  /** A key must be accepted soon after its creation is published, and refused soon after its revocation is. */
  async #lookUpKey(): Promise<void> {
    const { clock, random, history, promises, coverage } = this.#world
    const position = promises.published(API_KEYS_GENERATION, 0)?.position ?? 0
    if (this.#keysReached.at(-1)?.position !== position) this.#keysReached.push({ time: clock.now(), position })
    const believed = this.#keysReached.findLast(({ time }) => time < clock.now() - KEY_CACHE_TIME)?.position ?? 0
    const secrets = [...history.keys.values()]
    if (secrets.length === 0) return
    const { text, org, id, created, revoked } = random.pick(secrets)
    const found = await this.#ask(({ keys }) => keys.lookup(text, signal))
    if (found === undefined || found instanceof Refusal) return
    coverage.count('keys looked up')
    if (found === 'unknown') {
      // A revocation may take effect before the position has reached it.
      const isRevoked = revoked < promises.endAt(API_KEYS, 0, Number.POSITIVE_INFINITY)
      if (created < believed && !isRevoked) this.#fail(`the key ${id} of ${org} is valid, but is unknown`)
    } else if (found.org !== org || found.id !== id || revoked < believed) {
      this.#fail(`the key ${id} of ${org} is revoked, but is accepted`)
    }
  }

  #fail(reason: string): void {
    this.#world.fail(reason)
  }
}
