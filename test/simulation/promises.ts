/**
 * Checks the promises of the contract during a run: whenever a position is published, and whenever a refresh makes
 * documents searchable. Compares the content of the simulated Elasticsearch with the model.
 */
import { listOrder } from '../../schemas/lists.ts'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  controlIndexOf,
  FIRST_GENERATION,
  type GenerationDocument,
  generationId,
  type Kind,
  LIVE_ID,
  type LiveDocument,
  listKinds,
  type PositionDocument,
  positionId,
  type TimesDocument,
  type WrittenDocument,
} from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import { withPlainNames } from '../../schemas/stored/live-names.ts'
import type { Random } from '../support/random.ts'
import { isBalance, wrongBalance } from './balances.ts'
import type { Broker } from './broker.ts'
import type { Clock } from './clock.ts'
import type { Coverage } from './coverage.ts'
import type { SimulatedElasticsearch } from './elasticsearch.ts'
import { API_KEYS, EVENTS, type History, type List, textOf } from './history.ts'
import type { Index, Stored } from './stored.ts'

export const PREFIX = 'simulated'
export const SECOND_GENERATION = 'g2'
const GENERATIONS = [FIRST_GENERATION, SECOND_GENERATION]

export type Position = PositionDocument['body']

export class Promises {
  readonly #history: History
  readonly #broker: Broker
  readonly #clock: Clock
  readonly #random: Random
  readonly #coverage: Coverage
  readonly #fail: (reason: string) => void
  /** The ends of each partition, each with the time since when. */
  readonly #ends = new Map<string, { readonly time: number; readonly end: number }[]>()
  #engine: SimulatedElasticsearch | undefined
  movedAt = 0

  constructor(
    history: History,
    broker: Broker,
    clock: Clock,
    random: Random,
    coverage: Coverage,
    fail: (reason: string) => void,
  ) {
    this.#history = history
    this.#broker = broker
    this.#clock = clock
    this.#random = random
    this.#coverage = coverage
    this.#fail = fail
  }

  watch(engine: SimulatedElasticsearch): void {
    this.#engine = engine
  }

  /** Returns the published position of a partition; undefined before the first start. */
  published(generation: string, partition: number): Position | undefined {
    const stored = this.#index(controlIndexOf(PREFIX))?.documents.get(positionId(generation, partition))
    return stored && (stored.fields as PositionDocument).body
  }

  /** Whether a generation is live. Before that nothing can be read. */
  hasPosition(): boolean {
    const control = this.#index(controlIndexOf(PREFIX))
    return control?.documents.has(LIVE_ID) === true
  }

  live(): LiveDocument['body'] | undefined {
    const stored = this.#index(controlIndexOf(PREFIX))?.documents.get(LIVE_ID)
    return stored && withPlainNames((stored.fields as LiveDocument).body)
  }

  generations(): string[] {
    const control = this.#index(controlIndexOf(PREFIX))
    return GENERATIONS.filter(name => name === FIRST_GENERATION || control?.documents.has(generationId(name)))
  }

  /** Whether all generations have published up to the end of the log, and readers can be served. */
  isCaughtUp(): boolean {
    if (this.live()?.floor === null) return false
    const reached = (generation: string, partition: number, end: number): boolean =>
      this.published(generation, partition)?.position === end
    return (
      this.#broker
        .topic(EVENTS)
        .partitions.every(({ end }, partition) => this.generations().every(name => reached(name, partition, end))) &&
      reached(API_KEYS_GENERATION, 0, this.#broker.topic(API_KEYS).partitions[0]?.end ?? 0)
    )
  }

  onEnd(topic: string, partition: number, end: number): void {
    const ends = this.#ends.get(`${topic} ${partition}`) ?? []
    ends.push({ time: this.#clock.now(), end })
    this.#ends.set(`${topic} ${partition}`, ends)
  }

  /** Returns the smallest possible end of a partition at an instant, which is only exact to a millisecond. */
  endAt(topic: string, partition: number, time: number): number {
    const ends = this.#ends.get(`${topic} ${partition}`) ?? []
    return ends.findLast(seen => seen.time < time)?.end ?? 0
  }

  onStored(index: Index, before: Stored | undefined, stored: Stored): void {
    if (isBalance(stored)) this.#checkBalance(stored)
    if (index.name !== controlIndexOf(PREFIX)) return
    if (stored.id.startsWith('times:')) this.#checkTimes(before, stored)
    if (stored.id.startsWith('written:')) {
      const [now, earlier] = [stored, before].map(
        one => (one?.fields as WrittenDocument | undefined)?.body.offset ?? -1,
      )
      if (Number(now) < Number(earlier)) this.#fail(`${stored.id} went back from ${earlier} to ${now}`)
    }
    if (!stored.id.startsWith('position:')) return
    const [, generation = '', number = ''] = stored.id.split(':')
    const position = (stored.fields as PositionDocument).body
    const partition = Number(number)
    if (before !== undefined) {
      const earlier = (before.fields as PositionDocument).body
      for (const field of ['position', 'time', 'serve_from'] as const) {
        if (position[field] < earlier[field]) {
          this.#fail(`${field} of ${stored.id} went back from ${earlier[field]} to ${position[field]}`)
        }
      }
    }
    this.#checkPosition(topicOf(generation), partition, position)
    if (before !== undefined && (before.fields as PositionDocument).body.position === position.position) return
    this.#coverage.count('positions published')
    this.movedAt = this.#clock.elapsed
    if (generation !== API_KEYS_GENERATION) {
      this.#checkLists(generation, partition, position.position, 'was published')
      this.#checkLists(generation, partition, this.#random.below(position.position + 1), 'is read again')
      this.#checkRecords(generation, partition, position.position)
    } else this.#checkKeys(position.position)
    this.#checkParked(generation, partition, position.position)
  }

  #checkBalance(stored: Stored): void {
    this.#coverage.count('balances stored')
    const wrong = wrongBalance(
      stored,
      (org, position) => this.#history.recordsAt(org, position),
      (org, position) => this.#history.eventsOf(org, position).length,
    )
    if (wrong !== undefined) this.#fail(wrong)
  }

  /** A refresh must not change the published lists. */
  onRefreshed(index: Index): void {
    for (const generation of GENERATIONS) {
      const lists = listKinds.filter(kind => index === this.#documents(generation, kind))
      if (lists.length === 0) continue
      for (let partition = 0; partition < this.#history.partitions; partition++) {
        const position = this.published(generation, partition)?.position
        if (position !== undefined) this.#checkLists(generation, partition, position, 'stays published', lists)
      }
    }
  }

  #index(name: string): Index | undefined {
    return this.#engine?.indices.get(name)
  }

  #documents(generation: string, kind: Kind): Index | undefined {
    const control = this.#index(controlIndexOf(PREFIX))
    const stored = control?.documents.get(generationId(generation))?.fields as GenerationDocument | undefined
    return stored && this.#index(layoutOf(PREFIX, stored.body).indexOf(kind))
  }

  #checkPosition(topic: string, partition: number, { position, last, time }: Position): void {
    const where = `${topic} ${partition}`
    const log = this.#broker.topic(topic).partitions[partition]
    if (log === undefined || position > log.end) {
      this.#fail(`position ${position} of ${where} is past its end`)
      return
    }
    const lastRecord = log.entries.slice(0, position).findLast(({ kind }) => kind === 'record')
    if (last?.offset !== lastRecord?.offset) this.#fail(`position ${position} of ${where} names a wrong last record`)
    if (time > this.#clock.now()) this.#fail(`the time of position ${position} of ${where} is in the future`)
    const end = this.endAt(topic, partition, time)
    if (end > position) this.#fail(`the time of position ${position} of ${where} includes offsets below ${end}`)
  }

  /** The time of a partition that stands still must be reached by its position, and must not go back. */
  #checkTimes(before: Stored | undefined, stored: Stored): void {
    const generation = stored.id.slice('times:'.length)
    const earlier = before === undefined ? {} : (before.fields as TimesDocument).body.partitions
    const partitions = (stored.fields as TimesDocument).body.partitions
    for (const name of new Set([...Object.keys(earlier), ...Object.keys(partitions)])) {
      const now = partitions[name]
      const where = `partition ${name} in ${stored.id}`
      if (now === undefined || now.time < (earlier[name]?.time ?? 0)) this.#fail(`the time of ${where} went back`)
      if (now === undefined) continue
      const published = this.published(generation, Number(name))
      if (published === undefined || published.position < now.position) this.#fail(`${where} was not published yet`)
      if (now.time > this.#clock.now()) this.#fail(`the time of ${where} is in the future`)
      const end = this.endAt(topicOf(generation), Number(name), now.time)
      if (end > now.position) this.#fail(`the time of ${where} includes offsets from ${now.position} on`)
    }
    this.#coverage.count('times of partitions that stand still published')
  }

  /** Compares each list that a search finds at a position with the model. */
  #checkLists(
    generation: string,
    partition: number,
    position: number,
    why: string,
    lists: readonly List[] = listKinds,
  ): void {
    for (const org of this.#history.organizationsOf(partition)) {
      const expected = this.#history.at(org, position)
      for (const list of lists) {
        const found = this.#search(generation, list, org, position)
        const wanted = expected.lists[list]
        if (found.length === wanted.length && found.every((text, place) => text === wanted[place]?.text)) continue
        this.#fail(
          `position ${position} of partition ${partition} of ${generation} ${why}, but ${list} differ from the model: ${found.length} found, ${wanted.length} expected`,
        )
      }
    }
  }

  #search(generation: string, list: List, org: string, position: number): string[] {
    const order = listOrder[list]
    const found: { readonly place: number; readonly text: string }[] = []
    for (const stored of this.#documents(generation, list)?.searchable.flatMap(shard => [...shard.values()]) ?? []) {
      const { fields } = stored
      if ((fields.kind ?? list) !== list || isBalance(stored)) continue
      if (fields.org_id !== org || typeof fields.seq !== 'number' || fields.seq >= position) continue
      if (typeof fields.until_seq === 'number' && fields.until_seq < position) continue
      found.push({ place: Number(fields[order]), text: bodyText(stored, list === 'payouts' ? null : undefined) })
    }
    return found.sort((a, b) => a.place - b.place).map(({ text }) => text)
  }

  /** Compares records that are read by id: every payout, superseded ones too, and its statement. */
  #checkRecords(generation: string, partition: number, position: number): void {
    for (const org of this.#history.organizationsOf(partition)) {
      const { payouts, statements } = this.#history.at(org, position)
      for (const [id, { text }] of payouts) {
        const stored = this.#documents(generation, 'payouts')?.documents.get(`${org}:${id}`)
        if (stored === undefined) {
          this.#fail(`position ${position} was published, but ${id} is missing`)
          continue
        }
        const { until_seq, superseded_by_id } = stored.fields as { until_seq: number; superseded_by_id: string | null }
        const replacedBy = until_seq < position ? superseded_by_id : null
        if (bodyText(stored, replacedBy) !== text) this.#fail(`position ${position}: ${id} differs from the model`)
        const trace = this.#documents(generation, 'statements')?.documents.get(`${org}:${id}`)
        if (trace === undefined || statementText(stored, trace, replacedBy) !== statements.get(id))
          this.#fail(`position ${position}: the statement of ${id} is wrong`)
      }
    }
  }

  #checkParked(generation: string, partition: number, position: number): void {
    const topic = topicOf(generation)
    const index = topic === EVENTS ? this.#documents(generation, 'parked') : this.#index(apiKeysParkedIndexOf(PREFIX))
    for (const [id, code] of this.#history.parked) {
      const [of, number, offset] = id.split(':')
      if (of !== topic || Number(number) !== partition || Number(offset) >= position) continue
      const found = index?.documents.get(id)?.fields.code
      if (found !== code) this.#fail(`position ${position} was published, but ${id} is parked as ${found}, not ${code}`)
    }
  }

  #checkKeys(position: number): void {
    for (const [secret, { org, id, created, revoked }] of this.#history.keys) {
      if (created >= position) continue
      const fields = this.#index(apiKeysIndexOf(PREFIX))?.documents.get(secret)?.fields
      if (fields?.org_id !== org || fields.key_id !== id || (revoked < position && fields.revoked !== true)) {
        this.#fail(`position ${position} of the keys was published, but ${id} differs from the model`)
      }
    }
  }
}

const topicOf = (generation: string): string => (generation === API_KEYS_GENERATION ? API_KEYS : EVENTS)

const statementTexts = new WeakMap<Stored, Map<string, string>>()

const statementText = (payout: Stored, trace: Stored, replacedBy: string | null): string => {
  const known = statementTexts.get(trace) ?? new Map<string, string>()
  statementTexts.set(trace, known)
  const key = `${payout.version} ${replacedBy}`
  const body = { ...(payout.fields.body as object), superseded_by_id: replacedBy }
  const text = known.get(key) ?? textOf({ ...body, ...(trace.fields.body as object) })
  known.set(key, text)
  return text
}

const texts = new WeakMap<Stored, Map<unknown, string>>()

/** Returns the body as text; of a payout with the id of its replacement. Cached for each document. */
const bodyText = (stored: Stored, replacedBy: string | null | undefined): string => {
  const known = texts.get(stored) ?? new Map()
  texts.set(stored, known)
  const text =
    known.get(replacedBy) ??
    textOf({
      ...(stored.fields.body as object),
      ...(replacedBy !== undefined && { superseded_by_id: replacedBy }),
    })
  known.set(replacedBy, text)
  return text
}
