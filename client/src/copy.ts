/**
 * A copy of an organization that proves itself: its records add up to the totals of the API as of the same change.
 *
 *   const copy = await readCopy(client)
 *   await copy.update()   // applies the changes since; `follow` continues for ever
 *   await copy.prove()    // throws if an amount or a count differs
 *   await copy.prove(publicKey)   // the same for every change that it was served, against what the service has signed
 */
import { Decimal } from 'decimal.js'
import { type Checkpoint, hasGoneBack, readCheckpoint } from './checkpoint.ts'
import type { Change, Client, Payout, PayrollRecord, Period, Rep, Total } from './client.ts'
import { CopyDiffersError, readServed, type ServedChange, ServedChanges } from './served-changes.ts'

/** A copy as JSON. Store it, and continue with `continueCopy`. */
export type CopyState = {
  /** The last change that the copy includes; null while the organization has none. */
  readonly lastChangeId: string | null
  /** The last change that `update` or `follow` handed over, if the copy includes later ones. */
  readonly handedOver?: string | null
  readonly reps: readonly Rep[]
  readonly periods: readonly Period[]
  readonly payouts: readonly Payout[]
  readonly payrollRecords: readonly PayrollRecord[]
  /** Of a copy that was proved with a key: each change that it was served. */
  readonly changes?: readonly ServedChange[]
  /** Of such a copy: the last checkpoint that it was proved with. */
  readonly proved?: Checkpoint
  /** The last checkpoint that was proved before the copy was read anew, or before other rules. */
  readonly continues?: Checkpoint
}

/** A copy that was proved with a key: it is complete and unaltered up to the sequence of the checkpoint. */
export type Proof = {
  readonly checkpoint: Checkpoint
  /** As it was signed. Keep it: it proves later what the service has said. */
  readonly note: string
  /** The last checkpoint of the line before, if the copy was proved under other rules, or was read anew since. */
  readonly continues: Checkpoint | undefined
  /**
   * Whether the totals of the copy were compared with those of the checkpoint. False if the copy has later changes:
   * then the digest alone covers all amounts.
   */
  readonly areTotalsCompared: boolean
}

export type Copy = {
  readonly lastChangeId: () => string | null
  readonly reps: ReadonlyMap<string, Rep>
  readonly periods: ReadonlyMap<string, Period>
  /** Current payouts only. */
  readonly payouts: ReadonlyMap<string, Payout>
  readonly payrollRecords: ReadonlyMap<string, PayrollRecord>
  /**
   * Reads the changes since and applies each. `onChange` is called, and awaited, after a change is applied. Returns
   * their number. If `onChange` throws, the next `update` or `follow` begins with the same change, also of a copy that
   * continues the state. So it does with changes that `prove` has applied. An `update` without `onChange` leaves them
   * out. A copy has one `update` or `follow` at a time. If two run, one of them throws.
   */
  readonly update: (onChange?: (change: Change) => void | Promise<void>) => Promise<number>
  /** Applies every change as it comes, for ever, and yields it once, also if the body of the loop throws. */
  readonly follow: () => AsyncIterable<Change>
  /** Amounts owed, paid and open, by period and currency, as the copy adds them up. */
  readonly totals: () => Total[]
  readonly prove: Prove
  readonly state: () => CopyState
}

type Prove = {
  /** @throws CopyDiffersError unless the totals are those of the API as of the last change */
  (): Promise<void>
  /**
   * Proves the copy with a checkpoint of the service. It applies the changes up to the checkpoint first, and may be
   * behind it only while no `update` or `follow` runs. The first call reads all changes once.
   * @param publicKey `NAME+ID+KEY`, as the operator of the service gives it; several while the service changes its key
   * @throws CheckpointInvalidError; CopyDiffersError unless the changes that the copy was served, its records and its
   *   totals are those of the checkpoint, and it still has what it proved last; CopyDiffersError if the service has
   *   signed fewer changes since
   */
  (publicKey: string | readonly string[]): Promise<Proof>
}

/**
 * Reads an organization as of its last change, and proves the copy.
 * @param before the state of an earlier copy, if it is read anew: the new one continues the checkpoint that was proved
 */
export const readCopy = async (client: Client, before?: CopyState): Promise<Copy> => {
  const proved = before?.proved ?? before?.continues
  const continues = proved && { continues: proved }
  const { last_change_id } = await client.totals()
  if (last_change_id === null) return continueCopy(client, { ...EMPTY, ...continues })
  const then = client.asOf(last_change_id)
  const copy = continueCopy(client, {
    ...continues,
    lastChangeId: last_change_id,
    reps: await all(then.reps()),
    periods: await all(then.periods()),
    payouts: await all(then.payouts()),
    payrollRecords: await all(then.payrollRecords()),
  })
  await copy.prove()
  return copy
}

/** Continues a copy from its stored state. */
export const continueCopy = (client: Client, state: CopyState): Copy => {
  let { lastChangeId, handedOver = lastChangeId } = state
  const reps = byId(state.reps)
  const periods = byId(state.periods)
  const payouts = byId(state.payouts)
  const payrollRecords = byId(state.payrollRecords)

  const held = (kind: Change['kind'], id: string): object | undefined =>
    ({ reps, periods, payouts, payroll_files: payrollRecords })[kind].get(id)
  let served = state.changes && new ServedChanges(held, state.changes)
  let { proved, continues } = state
  let running = 0
  /** Whether an `update` with `onChange` runs: only it says what is handed over. */
  let isHandingOver = false

  const apply = (change: Change): void => {
    served?.add(change)
    if (change.kind === 'reps') reps.set(change.record.id, change.record)
    else if (change.kind === 'periods') periods.set(change.record.id, change.record)
    else if (change.kind === 'payroll_files') payrollRecords.set(change.record.id, change.record)
    else {
      if (change.supersedes_id !== null) payouts.delete(change.supersedes_id)
      payouts.set(change.record.id, change.record)
    }
    lastChangeId = change.id
  }
  /** Yields the changes that are applied after `from`. Then applies those that follow the last one, and yields them. */
  const applying = async function* (read: Client['changes'] | Client['follow'], from = lastChangeId) {
    let before = lastChangeId
    running++
    try {
      if (from !== before) yield* between(client, from, before)
      for await (const change of read({ startingAfter: before })) {
        // A change that is applied after later ones would make replaced records current again.
        if (lastChangeId !== before) throw new Error(APPLIED_MEANWHILE)
        apply(change)
        before = change.id
        yield change
      }
    } finally {
      running--
    }
  }
  const handOver = async (change: Change, onChange: (change: Change) => unknown): Promise<void> => {
    const before = handedOver
    // Before the call: it may store the state.
    handedOver = change.id
    try {
      await onChange(change)
    } catch (error) {
      handedOver = before
      throw error
    }
  }
  const totals = (): Total[] => add(payouts.values(), payrollRecords.values())

  /** Reads all changes up to the last one of the copy. */
  const readAllServed = async (): Promise<ServedChanges> => {
    const to = lastChangeId
    const list = to === null ? [] : await readServed(client.changes(), to)
    if (list === undefined) throw new CopyDiffersError(`the API has no change ${to}, which the copy has`)
    if (lastChangeId !== to) throw new Error(APPLIED_MEANWHILE)
    return new ServedChanges(held, list)
  }

  const catchUp = async (changes: ServedChanges, sequence: number): Promise<void> => {
    const missing = sequence - changes.count
    if (running > 0) {
      throw new Error(
        `the copy lacks ${missing} changes of the checkpoint, and an update or follow runs: prove it later`,
      )
    }
    for await (const change of applying(client.changes)) if (change.sequence >= sequence) break
    if (changes.count < sequence) {
      throw new CopyDiffersError(`the checkpoint has ${sequence} changes, the API has served ${changes.count}`)
    }
  }

  const proveServed = async (publicKey: string | readonly string[]): Promise<Proof> => {
    const { note } = await client.checkpoint()
    const checkpoint = await readCheckpoint(note, publicKey)
    const { organization, sequence, digest } = checkpoint
    const known = proved ?? continues
    if (known && known.organization !== organization) {
      throw new CopyDiffersError(`the checkpoint is of ${organization}, the copy of ${known.organization}`)
    }
    // Under the same rules, a copy that is read anew has the same changes.
    const earlier = continues?.line === checkpoint.line ? continues : undefined
    for (const one of [proved, earlier]) {
      if (one && hasGoneBack(one, checkpoint)) throw new CopyDiffersError(fewerChanges(checkpoint, one))
    }
    served ??= await readAllServed()
    const changes = served
    if (sequence > changes.count) await catchUp(changes, sequence)
    // Nothing is awaited between these: all of them are of one moment.
    const ours = changes.count === sequence ? controlTotalsOf(totals()) : undefined
    const count = reps.size + periods.size + payouts.size + payrollRecords.size
    if (count !== changes.heldCount) {
      throw new CopyDiffersError(`the copy has ${count} records, after its changes it must have ${changes.heldCount}`)
    }
    const before = proved ?? { sequence: 0, digest: undefined, line: checkpoint.line }
    if (earlier && earlier.sequence > changes.count) {
      throw new CopyDiffersError(`the service has signed ${earlier.sequence} changes, and serves ${changes.count}`)
    }
    const wanted = [sequence, before.sequence, earlier?.sequence ?? 0]
    const [now, then, signed] = await changes.digests(wanted, nextTurn)
    if (before.digest !== undefined && then !== before.digest) {
      throw new CopyDiffersError(
        `up to change ${before.sequence}, the copy is not as it was proved: it was altered since`,
      )
    }
    if (now !== digest) throw new CopyDiffersError(differentDigest(checkpoint, before.line))
    if (earlier && signed !== earlier.digest) {
      throw new CopyDiffersError(`up to change ${earlier.sequence}, the service has signed another history before`)
    }
    const difference = ours && differenceOf(checkpoint.totals, ours)
    if (difference !== undefined) throw new CopyDiffersError(`at sequence ${sequence}, ${difference}`)
    if (proved && proved.line !== checkpoint.line) continues = proved
    if (sequence >= before.sequence) proved = checkpoint
    return { checkpoint, note, continues, areTotalsCompared: ours !== undefined }
  }
  const proveTotals = async (): Promise<void> => {
    // Nothing was ever published: there is no moment to compare at.
    if (lastChangeId === null) return
    // Changes may be applied while the totals are read.
    const [at, ours] = [lastChangeId, totals()]
    const expected = (await client.asOf(at).totals()).totals
    const difference = firstDifference(expected, ours)
    if (difference !== undefined) throw new CopyDiffersError(`as of ${at}, ${difference}`)
  }
  function prove(): Promise<void>
  function prove(publicKey: string | readonly string[]): Promise<Proof>
  function prove(publicKey?: string | readonly string[]): Promise<unknown> {
    return publicKey === undefined ? proveTotals() : proveServed(publicKey)
  }

  return {
    lastChangeId: () => lastChangeId,
    reps,
    periods,
    payouts,
    payrollRecords,
    totals,
    update: async onChange => {
      if (onChange && isHandingOver) throw new Error('another update hands over changes of this copy')
      isHandingOver ||= onChange !== undefined
      let count = 0
      try {
        for await (const change of applying(client.changes, onChange && handedOver)) {
          if (onChange) await handOver(change, onChange)
          count++
        }
        if (!isHandingOver) handedOver = lastChangeId
      } finally {
        if (onChange) isHandingOver = false
      }
      return count
    },
    follow: async function* () {
      for await (const change of applying(client.follow, handedOver)) {
        if (!isHandingOver) handedOver = change.id
        yield change
      }
    },
    prove,
    state: () => ({
      lastChangeId,
      ...(handedOver !== lastChangeId && { handedOver }),
      reps: [...reps.values()],
      periods: [...periods.values()],
      payouts: [...payouts.values()],
      payrollRecords: [...payrollRecords.values()],
      ...(served && { changes: served.list() }),
      ...(proved && { proved }),
      ...(continues && { continues }),
    }),
  }
}

const APPLIED_MEANWHILE = 'another update or follow has applied changes to this copy'

/** Lets other work run. */
const nextTurn = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 0))

const EMPTY: CopyState = { lastChangeId: null, reps: [], periods: [], payouts: [], payrollRecords: [] }

/** Yields the changes after one, up to another one. */
const between = async function* (client: Client, after: string | null, to: string | null) {
  for await (const change of client.changes({ startingAfter: after })) {
    yield change
    if (change.id === to) return
  }
}

const all = async <Item>(list: AsyncIterable<Item>): Promise<Item[]> => {
  const items: Item[] = []
  for await (const item of list) items.push(item)
  return items
}

const byId = <Item extends { readonly id: string }>(items: readonly Item[]): Map<string, Item> =>
  new Map(items.map(item => [item.id, item]))

/** Adds exactly: an amount has at most 40 digits before the point and 40 after it. */
const Exact = Decimal.clone({ precision: 200, toExpPos: 200, toExpNeg: -200 })
type Sum = { owed: Decimal; owedCount: number; paid: Decimal; paidCount: number }

const add = (payouts: Iterable<Payout>, payrollRecords: Iterable<PayrollRecord>): Total[] => {
  const sums = new Map<string, Sum>()
  const sumOf = ({ period_id, currency }: Pick<Total, 'period_id' | 'currency'>): Sum => {
    const group = `${period_id} ${currency}`
    const sum = sums.get(group) ?? { owed: new Exact(0), owedCount: 0, paid: new Exact(0), paidCount: 0 }
    sums.set(group, sum)
    return sum
  }
  for (const payout of payouts) {
    const sum = sumOf(payout)
    sum.owed = sum.owed.plus(payout.net_amount)
    sum.owedCount++
  }
  for (const record of payrollRecords) {
    const sum = sumOf(record)
    sum.paid = sum.paid.plus(record.amount)
    sum.paidCount++
  }
  return [...sums].map(([group, { owed, owedCount, paid, paidCount }]) => {
    const [period_id = '', currency = ''] = group.split(' ')
    const open_amount = owed.minus(paid).toFixed()
    const amounts = { owed_amount: owed.toFixed(), paid_amount: paid.toFixed(), open_amount }
    return { period_id, currency, owed_count: owedCount, paid_count: paidCount, ...amounts }
  })
}

/** What is open follows from them. */
const fields = ['owed_amount', 'owed_count', 'paid_amount', 'paid_count'] as const

/** Returns the first total that differs, in words; undefined if none does. */
const firstDifference = (expected: readonly Total[], got: readonly Total[]): string | undefined => {
  const groupOf = ({ period_id, currency }: Total): string => `${period_id} in ${currency}`
  const [wanted, found] = [expected, got].map(totals => new Map(totals.map(total => [groupOf(total), total])))
  for (const group of new Set([...(wanted?.keys() ?? []), ...(found?.keys() ?? [])])) {
    for (const field of fields) {
      const [theirs, ours] = [wanted?.get(group)?.[field] ?? 0, found?.get(group)?.[field] ?? 0]
      if (!new Exact(theirs).eq(ours)) return `${group}: ${field} is ${theirs}, in the copy ${ours}`
    }
  }
  return undefined
}

const differentDigest = ({ sequence, line, digest }: Checkpoint, before: string): string => {
  const differs = `at sequence ${sequence}, the copy differs from what the service has signed (digest ${digest})`
  return line === before ? differs : `${differs}: ${otherRules(before, line)}`
}
const fewerChanges = ({ sequence, line, time }: Checkpoint, before: Checkpoint): string => {
  const differs = `the service has signed ${before.sequence} changes at ${before.time}, and ${sequence} at ${time}`
  return `${differs}: ${line === before.line ? 'its history went back' : otherRules(before.line, line)}`
}
const otherRules = (before: string, now: string): string =>
  `its rules changed from ${before} to ${now}, so read the copy anew`

type Sums = Checkpoint['totals'][number]

/** Adds up all periods, by currency. */
const controlTotalsOf = (totals: readonly Total[]): Sums[] => {
  const sums = new Map<string, { owed: Decimal; paid: Decimal }>()
  for (const { currency, owed_amount, paid_amount } of totals) {
    const { owed, paid } = sums.get(currency) ?? { owed: new Exact(0), paid: new Exact(0) }
    sums.set(currency, { owed: owed.plus(owed_amount), paid: paid.plus(paid_amount) })
  }
  return [...sums].map(([currency, { owed, paid }]) => {
    return { currency, owed: owed.toFixed(), paid: paid.toFixed(), open: owed.minus(paid).toFixed() }
  })
}

/** Returns the first sum that differs, in words; undefined if none does. */
const differenceOf = (expected: readonly Sums[], got: readonly Sums[]): string | undefined => {
  for (const currency of new Set([...expected, ...got].map(sums => sums.currency))) {
    const [theirs, ours] = [expected, got].map(all => all.find(sums => sums.currency === currency))
    for (const field of ['owed', 'paid', 'open'] as const) {
      const [signed, own] = [theirs?.[field] ?? '0', ours?.[field] ?? '0']
      if (!new Exact(signed).eq(own)) return `${field} in ${currency} is ${signed}, in the copy ${own}`
    }
  }
  return undefined
}
