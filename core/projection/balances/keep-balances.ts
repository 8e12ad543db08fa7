/**
 * Makes the balances of a stream, behind its flow. In: the organizations that got changes, and the published positions.
 * Out: stored balances, so that totals read no history.
 * Promises: the flow never waits for a balance. Nothing is made while a partition is far behind its end. A balance is
 *   stored only if two computations agree. The pause between them is longer than a removed node answers from its old
 *   copies (docs/decisions/0094). The position is read from its primary each time, so that a projector that stood still
 *   counts nothing of a log that was set back meanwhile. It is stored only if its generation has the recorded shards
 *   after it was counted: two counts of a shard that lost documents agree.
 * Can go wrong: Elasticsearch does not answer (tried again later). The stream ends before it makes a balance
 *   searchable, if another content of it is stored (`content_differs`, as for each other document: nobody knows which
 *   one is right; a refresh for another balance can make it searchable later), or if an ingest pipeline of others
 *   changed or dropped one (`index_unsuitable`). No other failure ends it.
 */
import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import { partitionOf } from '../../../schemas/partition.ts'
import {
  type BalanceDocument,
  isListKind,
  listKinds,
  orgIn,
  type PositionDocument,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { type Address, controlAddress } from '../../../schemas/stored/layout.ts'
import type { DecidedDocument } from '../../ledger/index.ts'
import type { GenerationBody } from '../../log/index.ts'
import { lruOptions, nameOf, type RetryOptions, StopError, Unanswered } from '../../runtime/index.ts'
import {
  assertNoPipeline,
  type Coverage,
  getEach,
  getFromPrimaries,
  isServed,
  type TermsAnswer,
  WITHOUT_PIPELINES,
} from '../../store/index.ts'
import { BALANCE_ORGANIZATIONS, BALANCES_AT_ONCE, BALANCES_LAG_MAX, BALANCES_SWEPT } from '../limits.ts'
import { type BalanceSteps, type DueBalance, nextBalances, search } from './next-balances.ts'

type Progress = { readonly readTo: number; readonly publishedTo: number; readonly end: number }

type KeepSteps = Omit<BalanceSteps, 'signal'> & {
  readonly identity: Pick<GenerationBody, 'generation' | 'partitions'>
  readonly prefix: string
  /** Milliseconds between two looks, and between the two computations of a balance. */
  readonly interval: number
  /** The partitions that this process projects. */
  readonly flows: () => readonly (readonly [partition: number, { readonly progress: Progress }])[]
  readonly sleep: RetryOptions['sleep']
  readonly count: (written: number) => void
  readonly warn: (details: Readonly<Record<string, string | number>>, message: string) => void
  /** @throws StopError if an index or a shard of the generation is another one than recorded */
  readonly assertSame: (signal: AbortSignal) => Promise<unknown>
  /** Ends the stream. */
  readonly fail: (error: unknown) => void
}

export class BalanceKeeper {
  readonly #steps: KeepSteps & { readonly signal: AbortSignal }
  readonly #stopping = new AbortController()
  /** Changes since an organization was looked at last. If one is forgotten, its next balance comes later. */
  readonly #changes = new LRUCache<string, number>(lruOptions(BALANCE_ORGANIZATIONS))
  /** The organizations that may have a balance due, each with the offset of the last counted change. */
  readonly #due = new Map<string, number>()
  #owned: ReadonlySet<number> = new Set()
  #trouble: string | undefined
  readonly #running: Promise<void>

  constructor(steps: KeepSteps) {
    this.#steps = { ...steps, signal: this.#stopping.signal }
    this.#running = this.#run()
  }

  /** Counts the changes among decided documents. They may be published much later. */
  countChanges(documents: readonly Pick<DecidedDocument, 'kind' | 'id' | 'version' | 'draft'>[]): void {
    for (const { kind, id, version, draft } of documents) {
      // A new record: neither a replaced payout nor a list of versions.
      if (!isListKind(kind) || !('seq' in draft) || draft.seq !== version) continue
      const org = orgIn(id)
      const changes = (this.#changes.get(org) ?? 0) + 1
      if (changes < this.#steps.changes) this.#changes.set(org, changes)
      else {
        this.#changes.delete(org)
        this.#due.set(org, version)
      }
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        await this.#steps.sleep(this.#steps.interval, signal)
        await this.#sweepNew()
        await this.#makeDue()
        this.#trouble = undefined
      } catch (error) {
        // The next round would make the stored balance searchable.
        if (error instanceof StopError && endsStream.has(error.code)) return this.#steps.fail(error)
        if (!signal.aborted) this.#onTrouble(error)
      }
    }
  }

  /** Named once until a round succeeds. */
  #onTrouble(error: unknown): void {
    const reason = error instanceof StopError ? error.code : nameOf(error)
    if (reason !== this.#trouble) {
      const { generation } = this.#steps.identity
      this.#steps.warn(
        { generation, reason },
        'balances of totals cannot be made now: totals are counted from earlier ones',
      )
    }
    this.#trouble = reason
  }

  /** Looks at the largest organizations when this process has got partitions: a balance may be due since before. */
  async #sweepNew(): Promise<void> {
    const { layout, changes, flows } = this.#steps
    const owned = new Set(flows().map(([partition]) => partition))
    if (!owned.isSubsetOf(this.#owned)) {
      const where = layout.searchOf(listKinds, undefined)
      const query = { bool: { filter: [{ range: { seq: { gte: 0 } } }] } }
      const terms = { field: 'org_id', size: BALANCES_SWEPT, min_doc_count: changes }
      const body = { size: 0, query, aggs: { all: { terms } } }
      const { aggregations } = await search<TermsAnswer<'all', string>>(where, body, this.#steps)
      for (const { key } of aggregations.all.buckets) this.#due.set(key, this.#due.get(key) ?? 0)
    }
    this.#owned = owned
  }

  async #makeDue(): Promise<void> {
    const found = new Map<string, DueBalance[]>()
    let room = BALANCES_AT_ONCE
    for (const [org, counted] of this.#due) {
      if (room === 0) break
      const { position, balances } = (await this.#next(org, room)) ?? {}
      if (balances === undefined || position === undefined) continue
      // The counted changes may not be published yet: then it is looked at again.
      if (balances.length === 0 && position > counted) this.#due.delete(org)
      else if (balances.length === 0) continue
      else found.set(org, balances)
      room -= balances.length
    }
    if (found.size === 0) return
    await this.#steps.sleep(this.#steps.interval, this.#steps.signal)
    const agreed: DueBalance[] = []
    for (const [org, balances] of found) {
      const again = await this.#next(org, balances.length)
      if (isDeepStrictEqual(again?.balances, balances)) agreed.push(...balances)
    }
    if (agreed.length === 0) return
    await this.#steps.assertSame(this.#steps.signal)
    await this.#store(agreed)
  }

  /** Returns undefined if the partition of the organization is not ours, is far behind, or must not be read now. */
  async #next(
    org: string,
    most: number,
  ): Promise<{ readonly position: number; readonly balances: DueBalance[] } | undefined> {
    const { identity, prefix, flows, send, signal } = this.#steps
    const partition = partitionOf(org, identity.partitions)
    const progress = flows().find(([one]) => one === partition)?.[1].progress
    if (progress === undefined) {
      this.#due.delete(org)
      return undefined
    }
    // The end is read now and then only.
    const end = Math.max(progress.end, progress.readTo)
    if (end - progress.publishedTo > BALANCES_LAG_MAX) return undefined
    const address = controlAddress(prefix, positionId(identity.generation, partition))
    const [stored] = await getFromPrimaries<PositionDocument>(send, [address], signal)
    if (!stored?.found) return undefined
    const published = stored._source.body
    if (!isServed(published)) return undefined
    const position = Math.min(published.position, progress.publishedTo)
    return { position, balances: await nextBalances(org, position, most, this.#steps) }
  }

  async #store(balances: readonly DueBalance[]): Promise<void> {
    const { layout, send, signal, count } = this.#steps
    const writes = balances.map(balance => ({ balance, address: layout.addressOf('balances', balance.id) }))
    const lines = writes.map(({ balance, address: { _index, _id } }) => {
      const action = { index: { _index, _id, version: balance.seq, version_type: 'external' } }
      return `${JSON.stringify(action)}\n${JSON.stringify(documentOf(balance))}\n`
    })
    // Before the write can replace another content: the next process must find it, too.
    const addresses = writes.map(({ address }) => address)
    const before = await getEach(addresses, part => getFromPrimaries(send, part, signal))
    for (const [at, { balance, address }] of writes.entries()) {
      const one = before[at]
      if (one?.found && !isDeepStrictEqual(one._source, documentOf(balance))) throw differs(address, balance)
    }
    const bulk = Buffer.from(lines.join(''))
    const { status, body } = await send<BulkAnswer>(
      { method: 'POST', path: '/_bulk', query: WITHOUT_PIPELINES, bulk },
      signal,
    )
    let written = 0
    for (const [at, { balance, address }] of writes.entries()) {
      const item = status === 200 ? body.items?.[at]?.index : undefined
      assertNoPipeline(address._index, item)
      if (item?.status === 201) written++
      // Another content was written meanwhile: at an earlier offset, or at this one.
      else if (item?.status === 200 || (item?.status === 409 && !(await this.#isStored(balance))))
        throw differs(address, balance)
      else if (item?.status !== 409) throw new Unanswered('elasticsearch', item?.status ?? status)
    }
    count(written)
    const path = `/${layout.indexOf('balances')}/_refresh`
    const refreshed = await send<Coverage | undefined>({ method: 'POST', path }, signal)
    const { total, successful } = refreshed.body?._shards ?? {}
    if (refreshed.status !== 200 || successful !== total) throw new Unanswered('elasticsearch', refreshed.status)
  }

  /** After a conflict: another owner, or an attempt before, has stored the same. */
  async #isStored(balance: DueBalance): Promise<boolean> {
    const { layout, send, signal } = this.#steps
    const [stored] = await getFromPrimaries(send, [layout.addressOf('balances', balance.id)], signal)
    // Deleted a moment ago: Elasticsearch still knows a later version.
    if (!stored?.found) throw new Unanswered('elasticsearch', 409)
    return isDeepStrictEqual(stored._source, documentOf(balance))
  }
}

const endsStream: ReadonlySet<string> = new Set(['content_differs', 'index_unsuitable'])

const differs = ({ _index: index }: Address, { seq: version }: DueBalance): StopError =>
  new StopError('content_differs', 'a balance of totals', { index, version })

const documentOf = ({ org_id, seq, sequence, body }: DueBalance): BalanceDocument => ({
  org_id,
  seq,
  sequence,
  body_bytes: Buffer.byteLength(JSON.stringify(body)),
  body,
})

type BulkAnswer = { readonly items?: readonly { readonly index?: Item }[] }
type Item = { readonly status?: number; readonly result?: unknown; readonly executed_pipelines?: unknown }
