/**
 * Clients that keep a copy of each organization for the whole run, and prove it with checkpoints of any API process:
 * beside recalculations, restarts, swaps and rollbacks. Each checkpoint is compared with the model. Not simulated: the
 * check of the signature by the client, and another key.
 */
import { answerChanges } from '../../api/answer/answer-changes.ts'
import type { Answering } from '../../api/answer/answer-page.ts'
import type { Context } from '../../api/http/request.ts'
import type { Change } from '../../client/src/client.ts'
import { ServedChanges } from '../../client/src/served-changes.ts'
import type { CheckpointRead } from '../../core/reading/checkpoint/read-checkpoint.ts'
import { CHECKPOINT_AGE_MAX } from '../../core/reading/limits.ts'
import { readListParameters } from '../../core/reading/pages/read-parameters.ts'
import { Refusal } from '../../core/runtime/refusals.ts'
import { checkNote, createSigningKey, parseNote } from '../../core/runtime/signing/note.ts'
import { listTraits } from '../../schemas/lists.ts'
import { listKinds } from '../../schemas/stored/documents.ts'
import { instantOf } from '../../schemas/values.ts'
import { answering } from '../support/answering-request.ts'
import { digestsOf } from '../support/checkpoints.ts'
import { scopeOf } from '../support/read-scope.ts'
import { totalsAt } from '../support/totals.ts'
import { BEGINNING, type Clock } from './clock.ts'
import type { History } from './history.ts'
import type { FeedReading } from './read-feed.ts'

export const checkpointKey = createSigningKey('simulated.example.com')
/** Schedules last seconds, and an organization gets one signature a minute: so this clock is faster. */
const FASTER = 200
export const checkpointTime = ({ elapsed }: Clock): number => BEGINNING + Math.floor(elapsed * FASTER)

type Parts = FeedReading & {
  readonly checkpoint: (org: string) => Promise<CheckpointRead | Refusal | undefined>
}
type Copy = {
  readonly records: Map<string, object>
  readonly served: ServedChanges
  lastChange: string | undefined
  proved: { readonly sequence: number; readonly digest: string; readonly generation: string } | undefined
}

export class Proofs {
  readonly #parts: Parts
  readonly #copies = new Map<string, Copy>()
  /** A copy has one proof at a time. */
  #last: Promise<void> = Promise.resolve()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Reads a checkpoint, and the changes up to it that the copy lacks. The copy must have what is signed. */
  prove(org: string): Promise<void> {
    this.#last = this.#last.then(() => this.#proveNext(org))
    return this.#last
  }

  async #proveNext(org: string): Promise<void> {
    const { history, coverage, fail, clock, positionOf, checkpoint } = this.#parts
    const least = history.eventsOf(org, positionOf(org)).length
    const begun = checkpointTime(clock)
    const read = await checkpoint(org)
    if (read === undefined) return
    if (read instanceof Refusal) return fail(`a checkpoint of ${org} is refused with ${read.code}`)
    const signed = linesOf(read.note)
    if (signed === undefined) return fail(`a checkpoint of ${org} is not signed by the key`)
    const sequence = Number(signed.sequence)
    const wrong = differenceOf(signed, wantedOf(history, org, sequence, read))
    if (wrong !== undefined) return fail(`the checkpoint ${sequence} of ${org}: ${wrong}`)
    const time = Date.parse(signed.time ?? '')
    if (time <= begun - CHECKPOINT_AGE_MAX) return fail(`a checkpoint of ${org} is of ${signed.time}`)
    if (sequence < least) return fail(`a checkpoint of ${org} has ${sequence} of ${least} changes`)
    coverage.count('checkpoints compared with the model')

    const copy = this.#copyOf(org)
    if (!(await this.#readUpTo(org, copy, sequence))) return
    const before = copy.proved
    const [now = '', then] = await copy.served.digests([sequence, before?.sequence ?? 0], async () => undefined)
    if (now !== signed.digest) return fail(`the copy of ${org} has not the digest of the checkpoint ${sequence}`)
    if (before && then !== before.digest)
      return fail(`the copy of ${org} has lost what it proved at ${before.sequence}`)
    const generation = read.position.generation.name
    coverage.count('copies proved with a checkpoint')
    if (before && before.generation !== generation) coverage.count('copies proved after a swap')
    if (before && sequence > before.sequence) coverage.count('checkpoints signed again')
    copy.proved = { sequence, digest: now, generation }
  }

  #copyOf(org: string): Copy {
    const records = new Map<string, object>()
    const served = new ServedChanges((_, id) => records.get(id))
    const copy = this.#copies.get(org) ?? { records, served, lastChange: undefined, proved: undefined }
    this.#copies.set(org, copy)
    return copy
  }

  /** @returns false if a read found no answer, or a refusal */
  async #readUpTo(org: string, copy: Copy, sequence: number): Promise<boolean> {
    const { random, read, fail } = this.#parts
    while (copy.served.count < sequence) {
      const after = copy.lastChange === undefined ? '' : `&starting_after=${copy.lastChange}`
      const asked = readListParameters('changes', `limit=${random.pick([1, 7, 50])}${after}`)
      const page = await read(scopeOf(org), { list: 'changes', ...asked })
      if (page === undefined) return false
      if (page instanceof Refusal) {
        fail(`the changes of ${org} after ${copy.lastChange} are refused with ${page.code}`)
        return false
      }
      for (const change of await answeredChanges(ctx => answerChanges(ctx, page, asked.startingAfter, NO_PACE))) {
        copy.served.add(change)
        if (change.kind === 'payouts' && change.supersedes_id !== null) copy.records.delete(change.supersedes_id)
        copy.records.set(change.record.id, change.record)
        copy.lastChange = change.id
      }
    }
    return true
  }
}

const NO_PACE = { countWork: () => false, rest: async () => undefined }
const answeredChanges = async (answer: (ctx: Context<Answering>) => Promise<void>): Promise<Change[]> => {
  const ctx = { body: Buffer.alloc(0), set: () => undefined, get: () => '', state: answering() }
  await answer(ctx as unknown as Context<Answering>)
  return (JSON.parse(ctx.body.toString()) as { data: Change[] }).data
}

/** Returns the lines by their first word; undefined unless the key has signed them. Totals are joined. */
const linesOf = (text: string): Record<string, string> | undefined => {
  const note = parseNote(Buffer.from(text))
  if (note === undefined || checkNote(note, [checkpointKey.verifier]).outcome !== 'signed') return undefined
  const lines: Record<string, string> = {}
  for (const line of note.text.toString('utf8').trimEnd().split('\n')) {
    const name = line.split(' ')[0] ?? ''
    const value = line.slice(name.length + 1)
    lines[name] = lines[name] === undefined ? value : `${lines[name]}; ${value}`
  }
  return lines
}

/** Returns the lines that a checkpoint must have after this number of changes. */
const wantedOf = (history: History, org: string, sequence: number, { position }: CheckpointRead) => {
  const last = history.eventsOf(org, position.publishedTo)[sequence - 1]
  const { digests, ids } = modelOf(history, org)
  const { payouts, payroll_files } = history.recordsAt(org, (last?.seq ?? -1) + 1)
  const currencies = [...new Set([...payouts, ...payroll_files].map(({ currency }) => String(currency)))].toSorted()
  const totals = currencies.map(currency => {
    const of = [payouts, payroll_files].map(items =>
      items.filter(item => item.currency === currency).map(item => ({ ...item, period_id: 'all' })),
    )
    const [sum] = totalsAt({ payouts: of[0] ?? [], payroll_files: of[1] ?? [] }, undefined, undefined)
    return `${currency} ${sum && 'owed_amount' in sum ? `owed ${sum.owed_amount} paid ${sum.paid_amount} open ${sum.open_amount}` : ''}`
  })
  return {
    organization: org,
    line: `rules-${position.generation.rules}`,
    change: ids[sequence] ?? 'nothing published',
    digest: digests[sequence],
    total: totals.length > 0 ? totals.join('; ') : undefined,
  }
}

type Signed = Readonly<Record<string, string | undefined>>
const differenceOf = (got: Signed, wanted: Signed): string | undefined => {
  const names = Object.keys(wanted).filter(name => got[name] !== wanted[name])
  const [first] = names
  return first && `${first} is ${got[first]}, and not ${wanted[first]}`
}

type ModelOfChanges = { readonly digests: readonly string[]; readonly ids: readonly string[] }
const models = new WeakMap<History, Map<string, ModelOfChanges>>()

/** Returns the digest, and the id of the last change, after each number of changes. */
const modelOf = (history: History, org: string): ModelOfChanges => {
  const ofHistory = models.get(history) ?? new Map<string, ModelOfChanges>()
  models.set(history, ofHistory)
  const known = ofHistory.get(org)
  if (known !== undefined) return known
  const versions = new Map<string, number>()
  const changes = history.eventsOf(org, Number.POSITIVE_INFINITY).map(({ seq, at, id }, index) => {
    const kind = listKinds.find(one => id.startsWith(`${listTraits[one].idPrefix}_`)) ?? 'reps'
    const { lists, payouts } = history.at(org, seq + 1)
    const found = kind === 'payouts' ? payouts.get(id) : lists[kind].find(item => item.id === id)
    const version = (versions.get(id) ?? 0) + 1
    versions.set(id, version)
    const name = kind === 'reps' || kind === 'periods' ? `${id}.${version}` : id
    return {
      ...{ kind, id: name, sequence: index + 1, published_at: instantOf(at) },
      record: JSON.parse(found?.text ?? '') as Record<string, unknown>,
    }
  })
  const model = { digests: digestsOf(changes), ids: ['none', ...changes.map(({ id }) => id)] }
  ofHistory.set(org, model)
  return model
}
