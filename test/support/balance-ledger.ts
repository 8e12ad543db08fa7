/** Searchable records of one organization in memory, as a generation of layout 2 stores them, and a keeper on them. */
import { BalanceKeeper } from '../../core/projection/balances/keep-balances.ts'
import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import { type PositionDocument, versionId } from '../../schemas/stored/documents.ts'
import { type IndexKind, layoutOf } from '../../schemas/stored/layout.ts'
import { generationIndices } from '../../schemas/stored/mappings.ts'
import { type Asked, searchNow } from '../simulation/searches.ts'
import { Index } from '../simulation/stored.ts'
import { isRead, primariesAnswer, sending } from './answering.ts'

export const ORG = 'org_1'
const GENERATION = { generation: 'g1', topic: 't', layout: 2 } as const
const CHANGES = 3
export const layout = layoutOf('p', GENERATION)

type Answered = { readonly status: number; readonly body: object }

export class Ledger {
  readonly indices = new Map(
    Object.entries(generationIndices('p', GENERATION, { shards: 2 })).map(([name, definition]) => [
      name,
      new Index(name, definition),
    ]),
  )
  readonly told: string[] = []
  readonly failures: unknown[] = []
  written = 0
  /** The requests, by their last part. */
  readonly asked: string[] = []
  position: PositionDocument['body'] = { position: 0, last: null, at: 0, time: 0, serve_from: 0 }
  progress = { readTo: 0, publishedTo: 0, end: 0 }
  /** Called after balances were counted. */
  assertSame: () => Promise<unknown> = async () => undefined
  /** Called before each request; may answer it. */
  intercept: (path: string, query: object) => Answered | undefined = () => undefined
  #sleeping = Promise.withResolvers<void>()
  #rounds: (() => void)[] = []

  payout(seq: number, amount: string, more: object = {}): void {
    const fields = { until_seq: UNTIL_FOREVER, rep_id: 'rep_1', period_id: 'period_1', amount, currency: 'EUR' }
    this.#put('payouts', `${ORG}:payout_${seq}`, seq, { kind: 'payouts', seq, ...fields, ...more })
  }

  replace(seq: number, amount: string, by: number, more: object = {}): void {
    const fields = { until_seq: by, rep_id: 'rep_1', period_id: 'period_1', amount, currency: 'EUR' }
    this.#put('payouts', `${ORG}:payout_${seq}`, by, { kind: 'payouts', seq, ...fields, ...more })
  }

  payroll(seq: number, amount: string, more: object = {}): void {
    const fields = { rep_id: 'rep_1', period_id: 'period_1', amount, currency: 'EUR' }
    this.#put('payroll_files', `${ORG}:payroll_${seq}`, seq, { kind: 'payroll_files', seq, ...fields, ...more })
  }

  rep(seq: number): void {
    this.#put('reps', versionId(ORG, 'rep_1', seq), seq, {
      kind: 'reps',
      seq,
      first_seq: seq,
      ordinal: seq,
      until_seq: UNTIL_FOREVER,
    })
  }

  #put(kind: IndexKind, id: string, version: number, fields: object): void {
    const whole = { ...fields, org_id: ORG, at: version }
    const address = layout.addressOf(kind, id)
    this.indices.get(address._index)?.write(address, version, JSON.stringify(whole), whole)
    this.refresh()
  }

  refresh(): void {
    for (const index of this.indices.values()) for (let shard = 0; shard < index.shards; shard++) index.refresh(shard)
  }

  /** Everything before this offset is published. */
  publish(to: number): void {
    this.position = { ...this.position, position: to }
    this.progress = { readTo: to, publishedTo: to, end: to }
  }

  /** The stored balances, in order. */
  balances(): object[] {
    return [...(this.indices.get(layout.indexOf('balances'))?.documents.values() ?? [])]
      .toSorted((a, b) => a.version - b.version)
      .map(({ id, version, fields }) => ({ id, version, ...fields }))
  }

  keeper(): BalanceKeeper {
    return new BalanceKeeper({
      identity: { generation: 'g1', partitions: 1 },
      prefix: 'p',
      layout,
      changes: CHANGES,
      interval: 1_000,
      flows: () => [[0, { progress: this.progress }]],
      send: sending(async request => this.#answer(request)),
      sleep: (_, signal) => this.#sleep(signal),
      count: written => {
        this.written += written
      },
      warn: (_, message) => this.told.push(message),
      assertSame: () => this.assertSame(),
      fail: error => {
        this.failures.push(error)
        this.#sleeping.resolve()
      },
    })
  }

  /** Lets the keeper go on to its next pause, or to its end. */
  async pass(times = 1): Promise<void> {
    for (let time = 0; time < times; time++) {
      await this.#sleeping.promise
      this.#sleeping = Promise.withResolvers()
      for (const wake of this.#rounds.splice(0)) wake()
      await this.#sleeping.promise
    }
  }

  #sleep(signal: AbortSignal): Promise<void> {
    this.#sleeping.resolve()
    return new Promise((resolve, reject) => {
      this.#rounds.push(resolve)
      signal.addEventListener('abort', () => reject(signal.reason))
    })
  }

  #answer({ path, query, body, bulk }: { path: string; query?: object; body?: unknown; bulk?: Buffer }): Answered {
    this.asked.push(path)
    const [, index = '', operation] = path.split('/')
    const answered = this.intercept(path, query ?? {})
    if (answered !== undefined) return answered
    if (isRead(bulk)) {
      const sourceOf = (name: string, id: string) =>
        name === 'p-control'
          ? { kind: 'position', body: this.position }
          : this.indices.get(name)?.find({ _id: id })?.fields
      return primariesAnswer({ method: 'POST', path, ...(bulk && { bulk }) }, sourceOf) as Answered
    }
    if (operation === '_search') {
      const { routing } = (query ?? {}) as { routing?: string }
      return { status: 200, body: searchNow(this, index, routing, body as Asked, () => false) as object }
    }
    if (operation === '_refresh') {
      this.refresh()
      return { status: 200, body: { _shards: { total: 1, successful: 1, failed: 0 } } }
    }
    const lines = String(bulk).trim().split('\n')
    const items = lines.flatMap((line, at) => {
      if (at % 2 === 1) return []
      const { _index, _id, version } = JSON.parse(line).index
      const source = lines[at + 1] ?? ''
      const status = this.indices.get(_index)?.write({ _id }, version, source, JSON.parse(source)) ?? 404
      return [{ index: { _index, _id, status } }]
    })
    return { status: 200, body: { items } }
  }
}
