/**
 * An API process and its clients, all the time of a run. Each answer must be what the log of the publishers had at the
 * position of the answer: a document, a list, a total, a key. It may refuse while it cannot know.
 */

import { answerList } from '../../../api/answer/answer-page.ts'
import { createApiKeyCache } from '../../../core/reading/api-key-cache.ts'
import { createIndexChecks, keysChecked } from '../../../core/reading/check-indices.ts'
import { createReaders } from '../../../core/reading/readers.ts'
import { Refusal, unavailable } from '../../../core/runtime/refusals.ts'
import { uncounted } from '../../../core/store/read/scope.ts'
import { listKinds } from '../../../schemas/stored/documents.ts'
import type { View } from '../../support/model.ts'
import { createRandom } from '../../support/random.ts'
import { scopeOf } from '../../support/read-scope.ts'
import { totalsOf } from '../../support/totals.ts'
import { textOf } from '../history.ts'
import { PREFIX } from '../promises.ts'
import { createSearches } from '../searches.ts'
import { answered } from '../walk.ts'
import { digestOf, keyTextOf, type Organizations, STRANGE_PAYOUT } from './publishers.ts'
import type { World } from './world.ts'

const PAUSE = 150
const signal = new AbortController().signal

export class Readers {
  readonly #world: World
  readonly #organizations: Organizations
  readonly #api
  readonly #random
  #isOpen = true
  /** Everything is as if nothing had happened: the last log counts alone. */
  isRestored = false
  /** Of the last answers of each kind, whether they were refused, and why. */
  readonly refused = new Map<string, string>()
  answers = 0

  constructor(world: World, organizations: Organizations, seed: number) {
    this.#world = world
    this.#organizations = organizations
    this.#random = createRandom(seed ^ 0x9747b28c)
    const { clock, engine, faults } = world
    const { search, multiGet } = createSearches(clock, engine, faults)
    const later = (milliseconds: number, run: () => void) => clock.after(milliseconds, run)
    const elapsed = () => clock.elapsed
    const indexIds = async (names: readonly string[]) => {
      const indices = names.flatMap(name => engine.indices.get(name) ?? [])
      return new Map(indices.map(({ name, uuid }) => [name, uuid]))
    }
    const indexChecks = createIndexChecks(PREFIX, multiGet, indexIds, elapsed, later)
    const reads = uncounted({ search, multiGet })
    const { readers, positions } = createReaders({ prefix: PREFIX, reads, indexChecks, ...clock.clocks, later })
    const keys = keysChecked(createApiKeyCache(PREFIX, multiGet, elapsed, clock.now), indexChecks.check)
    this.#api = { readers, positions, keys }
    this.#keepAsking()
  }

  stop(): void {
    this.#isOpen = false
  }

  /** Asks everything once. Returns why something was refused. */
  async askAll(): Promise<string | undefined> {
    this.refused.clear()
    for (const ask of this.#questions()) await ask()
    return [...this.refused].map(([what, why]) => `${what}: ${why}`)[0]
  }

  #keepAsking(): void {
    if (!this.#isOpen) return
    this.#world.clock.after(this.#random.next() * 2 * PAUSE, () => {
      this.#random
        .pick(this.#questions())()
        .catch((error: unknown) => this.#fail(`a read failed: ${error instanceof Error ? error.stack : 'defect'}`))
        .finally(() => this.#keepAsking())
    })
  }

  #questions(): (() => Promise<void>)[] {
    return [
      () => this.#askReady(),
      ...this.#organizations.all.flatMap(org => [
        ...listKinds.map(kind => () => this.#askList(org, kind)),
        () => this.#askTotals(org),
        () => this.#askTotals(org),
        () => this.#askStrange(org),
        ...(['used', 'revoked', 'stolen'] as const).map(which => () => this.#askKey(org, which)),
      ]),
    ]
  }

  async #askList(org: string, kind: (typeof listKinds)[number]): Promise<void> {
    const asked = { list: kind, limit: 50, startingAfter: undefined, asOf: undefined }
    const page = await this.#ask(`${kind} of ${org}`, () => this.#api.readers.list(scopeOf(org), asked))
    if (page === undefined) return
    const { data } = answered(ctx => answerList(ctx, kind, page, undefined))
    this.#check(`${kind} of ${org}`, org, page.position.publishedTo, data, view => view[kind])
  }

  async #askTotals(org: string): Promise<void> {
    const found = await this.#ask(`totals of ${org}`, () => this.#api.readers.totals(scopeOf(org), { asOf: undefined }))
    if (found === undefined) return
    const { position, totals } = found
    this.#check(`totals of ${org}`, org, position.publishedTo, totals.totals, view =>
      totalsOf(view.payouts, view.payroll_files),
    )
  }

  /** The payout of the stranger is in no log of the organization. */
  async #askStrange(org: string): Promise<void> {
    const asked = { id: STRANGE_PAYOUT, asOf: undefined }
    const found = await this.#ask(`${STRANGE_PAYOUT} of ${org}`, () =>
      this.#api.readers.records.record(scopeOf(org), 'payouts', asked),
    )
    if (found !== undefined) this.#fail(`${STRANGE_PAYOUT} of ${org} was shown`)
  }

  async #askKey(org: string, which: 'used' | 'revoked' | 'stolen'): Promise<void> {
    const text = keyTextOf(org, which)
    const found = await this.#ask(`a key of ${org}`, () => this.#api.keys.lookup(text, signal))
    if (found === undefined) return
    const states = this.#world.logs.map(log => log.key(digestOf(text)))
    // Before its event is read, a key is unknown, and a revoked one opens. In the end neither is true any more.
    const opens = found !== 'unknown'
    if (opens && states.every(state => state === 'unknown')) this.#fail(`a stranger's key of ${org} opens`)
    if (this.isRestored && opens !== (states.at(-1) === 'valid')) {
      this.#fail(`a ${states.at(-1)} key of ${org} ${opens ? 'opens' : 'is refused'}`)
    }
    this.answers++
  }

  async #askReady(): Promise<void> {
    await this.#ask('readiness', async () => {
      const { partitions } = await this.#api.positions.readServedPositions(signal)
      if (partitions.length === 0 || partitions.includes(undefined)) throw unavailable('no_position')
      await this.#api.keys.checkServed(signal)
    })
  }

  async #ask<Result>(what: string, ask: () => Promise<Result>): Promise<Result | undefined> {
    try {
      const result = await ask()
      this.refused.delete(what)
      return result
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.code !== 'not_found') this.refused.set(what, error.reason ?? error.code)
      return undefined
    }
  }

  #check(what: string, org: string, position: number, got: unknown, of: (view: View) => unknown): void {
    this.answers++
    const text = textOf(got)
    const wanted = this.#world.logs.map(log => textOf(of(log.view(org, position))))
    if (wanted.includes(text)) return
    this.#fail(
      `${what} at ${position}: got ${short(text)}, the log of the publishers has ${short(wanted.at(-1) ?? '')}`,
    )
  }

  #fail(reason: string): void {
    this.#world.fail(`a reader: ${reason}`)
  }
}

const short = (text: string): string => (text.length > 400 ? `${text.slice(0, 400)}…` : text)
