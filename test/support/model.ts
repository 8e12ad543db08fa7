/**
 * The contract as a fold over records: the outcome of each record (applied, duplicate or parked with a code) and the
 * resulting lists. Written from the documents alone, as an independent check of the projector.
 *
 * Records of a partition must come in order. A position is an offset: a view at a position shows everything before it.
 */
import type { ParkCode } from '../../schemas/errors.ts'
import {
  type Data,
  type ModelEvent,
  type ModelRecord,
  type ModelStream,
  type Plain,
  readRecord,
  rows,
} from './model-record.ts'
import { sumsTo } from './model-values.ts'

export type Outcome =
  | { readonly outcome: 'applied' }
  | { readonly outcome: 'duplicate' }
  | { readonly outcome: 'parked'; readonly code: ParkCode }

export type Model = {
  readonly take: (stream: ModelStream, partition: number, record: ModelRecord) => Outcome
  /** Returns the state of an organization at a position; without a position, after everything taken. */
  readonly view: (org: string, position?: number) => View
  readonly changes: (org: string) => ModelChange[]
  readonly organizations: () => string[]
  /** Returns the holder of each key, by the SHA-256 of the key's text. Includes revoked keys. */
  readonly keys: () => ReadonlyMap<string, ModelKey>
}

export type Item = Readonly<Record<string, Plain | boolean>>
/** The lists, and every payout with its statement: superseded ones too. */
export type View = {
  readonly reps: readonly Item[]
  readonly periods: readonly Item[]
  readonly payouts: readonly Item[]
  readonly payroll_files: readonly Item[]
  readonly everyPayout: readonly Item[]
  readonly statements: readonly Item[]
}
/** `seq` is the offset of the event. `record` is the state just after it. */
export type ModelChange = {
  readonly seq: number
  readonly id: string
  readonly kind: 'reps' | 'periods' | 'payouts' | 'payroll_files'
  readonly sequence: number
  readonly supersedes_id: string | null
  readonly reverses_id: string | null
  readonly record: Item
}
type Unnumbered = Omit<ModelChange, 'sequence'>
export type ModelKey = {
  readonly org: string
  readonly id: string
  readonly permissions: readonly string[]
  readonly expiresAt: string | null
  readonly revoked: boolean
}

export const createModel = (partitions: number): Model => {
  const organizations = new Map<string, Organization>()
  const keys = new Keys()
  const organization = (org: string): Organization => {
    const known = organizations.get(org) ?? new Organization()
    organizations.set(org, known)
    return known
  }
  return {
    take: (stream, partition, record) => {
      const event = readRecord(record, stream, partition, partitions)
      if (typeof event === 'string') return parked(event)
      return stream === 'events' ? organization(event.org).take(event, record.offset) : keys.take(event)
    },
    view: (org, position = Number.POSITIVE_INFINITY) => (organizations.get(org) ?? new Organization()).view(position),
    changes: org => (organizations.get(org) ?? new Organization()).changes(),
    organizations: () => [...organizations.keys()],
    keys: () => keys.bySecret(),
  }
}

const CHAIN_LENGTH_MAX = 10_000

const applied: Outcome = { outcome: 'applied' }
const duplicate: Outcome = { outcome: 'duplicate' }
const parked = (code: ParkCode): Outcome => ({ outcome: 'parked', code })

type Version = { readonly seq: number; readonly event: ModelEvent }
type Payout = {
  readonly seq: number
  readonly event: ModelEvent
  replaced?: { readonly seq: number; readonly id: string }
}
/** A payment or a void. A void has the rep, period, payout and destination of the payment that it reverses. */
type Payroll = { readonly seq: number; readonly event: ModelEvent; readonly fields: Data; voided: boolean }
type Chain = { readonly payouts: Payout[]; readonly payroll: Payroll[] }

class Organization {
  readonly #reps = new Map<string, Version[]>()
  readonly #periods = new Map<string, Version[]>()
  readonly #payouts = new Map<string, Payout>()
  readonly #payroll = new Map<string, Payroll>()
  readonly #chains = new Map<string, Chain>()

  take(event: ModelEvent, seq: number): Outcome {
    switch (event.type) {
      case 'commission.rep.recorded.v1':
        return this.#takeVersion(this.#reps, event, seq)
      case 'commission.period.recorded.v1':
        return this.#takeVersion(this.#periods, event, seq)
      case 'commission.payout.calculated.v1':
      case 'commission.payout.recorded.v1':
        return this.#takePayout(event, seq)
      case 'commission.payroll.recorded.v1':
        return this.#takePayment(event, seq)
      case 'commission.payroll.voided.v1':
        return this.#takeVoid(event, seq)
      default:
        throw new Error(`the model does not know ${event.type}`)
    }
  }

  view(position: number): View {
    const payouts = [...this.#payouts.values()].filter(({ seq }) => seq < position)
    const isCurrent = ({ replaced }: Payout): boolean => replaced === undefined || replaced.seq >= position
    const payroll = [...this.#payroll.values()].filter(({ seq }) => seq < position)
    return {
      reps: versionsAt(this.#reps, position),
      periods: versionsAt(this.#periods, position),
      payouts: payouts.filter(isCurrent).map(payout => payoutItem(payout, position)),
      payroll_files: payroll.map(({ fields }) => fields),
      everyPayout: payouts.map(payout => payoutItem(payout, position)),
      statements: payouts.map(payout => statementItem(payout, position)),
    }
  }

  changes(): ModelChange[] {
    return this.#unnumbered().map((change, at) => ({ ...change, sequence: at + 1 }))
  }

  /** In order. */
  #unnumbered(): Unnumbered[] {
    const nothing = { supersedes_id: null, reverses_id: null }
    return [
      ...versionChanges('reps', this.#reps),
      ...versionChanges('periods', this.#periods),
      ...[...this.#payouts].map(([id, payout]): Unnumbered => {
        const supersedes_id = payout.event.data.supersedes_id as string | null
        const record = payoutItem(payout, payout.seq + 1)
        return { ...nothing, seq: payout.seq, id, kind: 'payouts', supersedes_id, record }
      }),
      ...[...this.#payroll].map(([id, { seq, fields }]): Unnumbered => {
        return {
          ...nothing,
          seq,
          id,
          kind: 'payroll_files',
          reverses_id: fields.reverses_id as string | null,
          record: fields,
        }
      }),
    ].toSorted((a, b) => a.seq - b.seq)
  }

  #takeVersion(versions: Map<string, Version[]>, event: ModelEvent, seq: number): Outcome {
    const before = versions.get(String(event.data.id)) ?? []
    const current = before.at(-1)?.event
    if (current?.text === event.text) return duplicate
    const fixed = ['kind', 'timezone', 'starts_at', 'ends_at']
    if (current && fixed.some(name => current.data[name] !== event.data[name])) return parked('period_changed')
    if (before.length >= CHAIN_LENGTH_MAX) return parked('chain_too_long')
    versions.set(String(event.data.id), [...before, { seq, event }])
    return applied
  }

  #takePayout(event: ModelEvent, seq: number): Outcome {
    const { id, supersedes_id } = event.data
    const seen = this.#payouts.get(String(id))
    if (seen) return seen.event.text === event.text ? duplicate : parked('id_reused')
    const unknown = this.#unknown(event.data)
    if (unknown) return unknown

    const chain = this.#chain(event.data)
    const current = chain.payouts.at(-1)
    if (supersedes_id !== (current?.event.data.id ?? null)) return parked('supersedes_mismatch')
    if (chain.payouts.length >= CHAIN_LENGTH_MAX) return parked('chain_too_long')
    const payout: Payout = { seq, event }
    if (current) current.replaced = { seq, id: String(id) }
    chain.payouts.push(payout)
    this.#payouts.set(String(id), payout)
    return applied
  }

  #takePayment(event: ModelEvent, seq: number): Outcome {
    const { id, payout_id } = event.data
    const seen = this.#payroll.get(String(id))
    if (seen) return seen.event.text === event.text ? duplicate : parked('id_reused')
    const unknown = this.#unknown(event.data)
    if (unknown) return unknown

    const chain = this.#chain(event.data)
    if (payout_id !== null && !chain.payouts.some(payout => payout.event.data.id === payout_id)) {
      return parked('payout_mismatch')
    }
    const last = chain.payroll.at(-1)
    if (last && last.fields.reverses_id === null && !last.voided) return parked('payroll_already_recorded')
    return this.#addPayroll(event, seq, { ...event.data, reverses_id: null }, chain)
  }

  #takeVoid(event: ModelEvent, seq: number): Outcome {
    const { id, reverses_id, amount, currency } = event.data
    const seen = this.#payroll.get(String(id))
    if (seen) return seen.event.text === event.text ? duplicate : parked('id_reused')

    const reversed = this.#payroll.get(String(reverses_id))
    if (!reversed || reversed.fields.reverses_id !== null || reversed.voided) return parked('payroll_reversal_invalid')
    const { rep_id, period_id, payout_id, destination } = reversed.fields
    if (currency !== reversed.fields.currency) return parked('payroll_reversal_invalid')
    if (!sumsTo([String(reversed.fields.amount), String(amount)], '0')) return parked('payroll_reversal_invalid')
    const fields = { ...event.data, rep_id, period_id, payout_id, destination } as Data
    const outcome = this.#addPayroll(event, seq, fields, this.#chain(fields))
    if (outcome.outcome === 'applied') reversed.voided = true
    return outcome
  }

  #addPayroll(event: ModelEvent, seq: number, { org_id: _, ...fields }: Data, chain: Chain): Outcome {
    if (chain.payroll.length >= CHAIN_LENGTH_MAX) return parked('chain_too_long')
    const payroll: Payroll = { seq, event, fields, voided: false }
    chain.payroll.push(payroll)
    this.#payroll.set(String(fields.id), payroll)
    return applied
  }

  #unknown({ rep_id, period_id }: Data): Outcome | undefined {
    if (!this.#reps.has(String(rep_id))) return parked('rep_unknown')
    if (!this.#periods.has(String(period_id))) return parked('period_unknown')
    return undefined
  }

  #chain({ rep_id, period_id }: Data): Chain {
    const pair = `${rep_id} ${period_id}`
    const chain = this.#chains.get(pair) ?? { payouts: [], payroll: [] }
    this.#chains.set(pair, chain)
    return chain
  }
}

/** Returns the latest version of each record before the position, in the order of their first versions. */
const versionsAt = (versions: ReadonlyMap<string, Version[]>, position: number): Item[] =>
  [...versions.values()].flatMap(all => {
    const last = all.findLast(({ seq }) => seq < position)
    if (last === undefined) return []
    const { org_id: _, ...item } = last.event.data
    return [item]
  })

const versionChanges = (kind: 'reps' | 'periods', versions: ReadonlyMap<string, Version[]>): Unnumbered[] =>
  [...versions].flatMap(([id, all]) =>
    all.map(({ seq, event }, place) => {
      const { org_id: _, ...record } = event.data
      const supersedes_id = place === 0 ? null : `${id}.${place}`
      return { seq, id: `${id}.${place + 1}`, kind, supersedes_id, reverses_id: null, record }
    }),
  )

const payoutItem = ({ event, replaced }: Payout, position: number): Item => {
  const { org_id: _, calculation_trace: __, calculated_at = null, recorded_at = null, ...fields } = event.data
  const superseded_by_id = replaced && replaced.seq < position ? replaced.id : null
  return { ...fields, superseded_by_id, calculated_at, recorded_at }
}

const statementItem = (payout: Payout, position: number): Item => {
  const { calculation_trace } = payout.event.data
  return {
    ...payoutItem(payout, position),
    calculation_trace_recorded: calculation_trace !== undefined,
    calculation_trace: rows(calculation_trace),
  }
}

type KeyState = { readonly event: ModelEvent; revoked: boolean }

class Keys {
  readonly #byId = new Map<string, KeyState>()
  readonly #bySecret = new Map<string, KeyState>()

  take(event: ModelEvent): Outcome {
    const id = `${event.org} ${event.data.id}`
    const known = this.#byId.get(id)
    if (event.type === 'commission.api_key.revoked.v1') {
      if (known === undefined) return parked('key_unknown')
      if (known.revoked) return duplicate
      known.revoked = true
      return applied
    }
    if (known) return known.event.text === event.text ? duplicate : parked('id_reused')
    const secret = String(event.data.secret_sha256)
    if (this.#bySecret.has(secret)) return parked('id_reused')
    const state: KeyState = { event, revoked: false }
    this.#byId.set(id, state)
    this.#bySecret.set(secret, state)
    return applied
  }

  bySecret(): Map<string, ModelKey> {
    return new Map(
      [...this.#bySecret].map(([secret, { event, revoked }]) => {
        const { id, permissions, expires_at = null } = event.data
        const names = Array.isArray(permissions) ? permissions.map(String) : []
        const expiresAt = expires_at === null ? null : String(expires_at)
        return [secret, { org: event.org, id: String(id), permissions: names, expiresAt, revoked }]
      }),
    )
  }
}
