/**
 * A copy of an organization that proves itself: its records add up to the totals of the API as of the same change.
 *
 *   const copy = await readCopy(client)
 *   await copy.update()   // applies the changes since; `follow` continues for ever
 *   await copy.prove()    // throws if an amount or a count differs
 *   await copy.prove(publicKey)   // the same for every change that it was served, against what the service has signed
 */
import { type Checkpoint, hasGoneBack, readCheckpoint } from './checkpoint.ts'
import type { Change, Client, Payout, PayrollRecord, Period, Rep, Total } from './client.ts'
import { RefusedError } from './refused.ts'
import { CopyDiffersError, readServed, requireNext, type ServedChange, ServedChanges } from './served-changes.ts'
import { addRecords, controlTotalsOf, differenceOfSums, differenceOfTotals } from './sums.ts'

/** A copy as JSON. Store it, and continue with `continueCopy`. */
export type CopyState = {
  /** The last change that the copy includes; null while the organization has none. */
  readonly lastChangeId: string | null
  /** Its `sequence`. States of older versions have none. */
  readonly lastSequence?: number
  /** The last change that `update` or `follow` handed over, if it is another one; null if none was. */
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
   * their number. If `onChange` throws, or does not end, the next `update` or `follow` begins with the same change,
   * also of a copy that continues the state. So it does with changes that `prove` has applied, and with those since an
   * earlier copy, if this one was read anew. An `update` without `onChange` leaves them out. A copy has one `update` or
   * `follow` at a time. If two run, one of them throws.
   */
  readonly update: (onChange?: OnChange) => Promise<number>
  /** Applies every change as it comes, for ever, and yields it once, also if the body of the loop throws. */
  readonly follow: () => AsyncIterable<Change>
  /** Amounts owed, paid and open, by period and currency, as the copy adds them up. */
  readonly totals: () => Total[]
  readonly prove: Prove
  readonly state: () => CopyState
}

/**
 * @param stateAfter returns the state in which this change is handed over: store it together with what you do, in one
 *   transaction. In `state()` it is handed over only after `onChange` has ended.
 */
export type OnChange = (change: Change, stateAfter: () => CopyState) => void | Promise<void>

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
 * @param before the state of an earlier copy, if it is read anew: the new one continues the checkpoint that was proved,
 *   and its `update` or `follow` begins after the last change that the earlier one handed over
 * @param options.handOver `all`: they begin with the first change instead; `none`: they leave out all changes until now
 * @throws CopyDiffersError if the API no longer has the last change that was handed over, and `handOver` is not given
 */
export const readCopy = async (
  client: Client,
  before?: CopyState,
  options: { readonly handOver?: 'all' | 'none' | undefined } = {},
): Promise<Copy> => {
  const proved = before?.proved ?? before?.continues
  const { last_change_id, last_sequence } = await client.totals()
  const continued = {
    ...(proved && { continues: proved }),
    handedOver: await handedOverBefore(client, before, last_change_id, options.handOver),
  }
  if (last_change_id === null) return continueCopy(client, { ...EMPTY, ...continued })
  const then = client.asOf(last_change_id)
  const copy = continueCopy(client, {
    ...continued,
    lastChangeId: last_change_id,
    lastSequence: last_sequence,
    reps: await all(then.reps()),
    periods: await all(then.periods()),
    payouts: await all(then.payouts()),
    payrollRecords: await all(then.payrollRecords()),
  })
  await copy.prove()
  return copy
}

/** Returns the change after which a copy that is read anew hands over; null for the beginning. */
const handedOverBefore = async (
  client: Client,
  before: CopyState | undefined,
  last: string | null,
  handOver: 'all' | 'none' | undefined,
): Promise<string | null> => {
  if (handOver === 'all') return null
  if (handOver === 'none' || before === undefined) return last
  const { handedOver = before.lastChangeId } = before
  if (handedOver === null || handedOver === last) return handedOver
  try {
    for await (const _ of client.changes({ startingAfter: handedOver, limit: 1 })) break
  } catch (error) {
    if (!(error instanceof RefusedError) || error.code !== 'invalid_cursor') throw error
    throw new CopyDiffersError(`the API has no change ${handedOver}, the last one handed over: ${CHOOSE}`, {
      cause: error,
    })
  }
  return handedOver
}

const CHOOSE = "choose handOver 'all' (from the beginning) or 'none' (leave out all until now)"

/** Continues a copy from its stored state. */
export const continueCopy = (client: Client, state: CopyState): Copy => {
  let { lastChangeId, lastSequence = lastChangeId === null ? 0 : undefined, handedOver = lastChangeId } = state
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
    if (served) served.add(change)
    else if (lastSequence !== undefined) requireNext(change, lastSequence)
    // A record of its own: those who get the change may alter theirs.
    const own = structuredClone(change)
    if (own.kind === 'reps') reps.set(own.record.id, own.record)
    else if (own.kind === 'periods') periods.set(own.record.id, own.record)
    else if (own.kind === 'payroll_files') payrollRecords.set(own.record.id, own.record)
    else {
      if (own.supersedes_id !== null) payouts.delete(own.supersedes_id)
      payouts.set(own.record.id, own.record)
    }
    lastChangeId = own.id
    lastSequence = own.sequence
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
  const stateAfter = (handed: string | null): CopyState => ({
    lastChangeId,
    ...(lastSequence !== undefined && { lastSequence }),
    ...(handed !== lastChangeId && { handedOver: handed }),
    reps: [...reps.values()],
    periods: [...periods.values()],
    payouts: [...payouts.values()],
    payrollRecords: [...payrollRecords.values()],
    ...(served && { changes: served.list() }),
    ...(proved && { proved }),
    ...(continues && { continues }),
  })
  const totals = (): Total[] => addRecords(payouts.values(), payrollRecords.values())

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
    const difference = ours && differenceOfSums(checkpoint.totals, ours)
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
    const difference = differenceOfTotals(expected, ours)
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
          if (onChange) {
            const { id } = change
            await onChange(change, () => stateAfter(id))
            // Not before: others may store the state meanwhile.
            handedOver = id
          }
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
    state: () => stateAfter(handedOver),
  }
}

const APPLIED_MEANWHILE = 'another update or follow has applied changes to this copy'

/** Lets other work run. */
const nextTurn = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 0))

const EMPTY: CopyState = { lastChangeId: null, reps: [], periods: [], payouts: [], payrollRecords: [] }

/** Yields the changes after one, up to another one. @throws CopyDiffersError at their end if that one does not come */
const between = async function* (client: Client, after: string | null, to: string | null) {
  for await (const change of client.changes({ startingAfter: after })) {
    yield change
    if (change.id === to) return
  }
  // The changes after `to` are read next: they would come twice.
  throw new CopyDiffersError(`the API has not served change ${to}, the last one of the copy: read the copy anew`)
}

const all = async <Item>(list: AsyncIterable<Item>): Promise<Item[]> => {
  const items: Item[] = []
  for await (const item of list) items.push(item)
  return items
}

const byId = <Item extends { readonly id: string }>(items: readonly Item[]): Map<string, Item> =>
  new Map(items.map(item => [item.id, item]))

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
