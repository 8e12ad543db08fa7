/**
 * `commission subjects`: lists the people of an organization, reports where the data of one is, and erases it by
 * destroying the key that seals it. Documents keep what was published, so `verify` and rebuilds stay equal.
 */
import { hash } from 'node:crypto'
import type { KeySources } from '../../core/reading/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { API_KEYS_GENERATION } from '../../schemas/stored/documents.ts'
import type { CommandContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { recordedIdentityOf } from '../generations/generations.ts'
import { readLive } from '../live.ts'
import { aligned, createProgressLine, timeOf } from '../terminal.ts'
import { destroyKey, type ErasureReceipt, type KeyState, keyStateOf, storedReceipt } from './destroy-key.ts'
import { type FoundText, findTexts, searchedGenerations } from './find-subjects.ts'
import { firstSince, liveGeneration, refuseUncomparedCopies, sameProjection, wholeProjection } from './live-copies.ts'
import type { Subject } from './person-in-bytes.ts'

export type SubjectsContext = CommandContext & {
  /** Undefined if SEAL_KEYS_DIR is not set. */
  readonly keys: KeySources | undefined
  readonly draw: ((line: string) => void) | undefined
  readonly signal: AbortSignal
}

export type ListSubjectsOptions = { readonly org: string; readonly json: boolean }
export type ReportSubjectOptions = Subject & { readonly json: boolean }
export type EraseSubjectOptions = Subject & {
  readonly confirm: string | undefined
  /** Also a key that seals texts of others: these are lost, too. */
  readonly shared: boolean
  /** Milliseconds since 1970: what was published later may be missing. By default nothing that is there by now. */
  readonly completeUpTo?: number | undefined
  readonly json: boolean
}

/** Lists the reps of an organization in the live generation, with the keys of their texts. */
export const listSubjects = async ({ org, json }: ListSubjectsOptions, context: SubjectsContext): Promise<ExitCode> => {
  const { out, say } = context
  const live = await liveGeneration(context)
  await warnOfUncompared(context)
  // Counts and key ids only: an organization may have more texts than memory holds.
  const reps = new Map<string, { readonly counts: Counts; readonly ids: Set<string> }>()
  for await (const found of withProgress(findTexts(live, org, undefined), context)) {
    if (found.kind === 'parked' || found.subject?.org !== org) continue
    const { rep } = found.subject
    const ofRep = reps.get(rep) ?? { counts: noTexts(), ids: new Set() }
    reps.set(rep, ofRep)
    addText(ofRep.counts, found)
    for (const id of found.keys) ofRep.ids.add(id)
  }
  const rows: string[][] = [['REP', 'VERSIONS', 'LABELS', 'IN THE OPEN', 'KEYS']]
  for (const [rep, { counts, ids }] of reps) {
    const summary = { ...counts, keys: await statesOf([...ids].sort(), context) }
    if (json) out(`${JSON.stringify({ rep, ...summary })}\n`)
    const { versions, labels, plain, keys } = summary
    rows.push([rep, `${versions}`, `${labels}`, `${plain}`, shownKeys(keys)])
  }
  if (!json) out(`${aligned(rows, [1, 2, 3])}\n`)
  say(`${reps.size} reps of ${org} in ${live.label}`)
  return exitCodes.done
}

/** In a shard that cannot be compared, texts may be missing. */
const warnOfUncompared = async (context: SubjectsContext): Promise<void> =>
  refuseUncomparedCopies(await readLive(context.send, context.prefix), undefined, context)

/** Shows where the texts of a person are, in each generation and sandbox. */
export const reportSubject = async (
  { org, rep, json }: ReportSubjectOptions,
  context: SubjectsContext,
): Promise<ExitCode> => {
  const { out } = context
  const { topic, partitions } = await recordedIdentityOf((await liveGeneration(context)).name, context)
  const partition = partitionOf(org, partitions)
  await warnOfUncompared(context)
  const generations = []
  for (const { generation, texts } of await findEverywhere({ org, rep }, context)) {
    generations.push({
      generation,
      ...countsOf(texts.filter(isNamed)),
      records: texts
        .filter(isNamed)
        .map(({ kind, id, offset, keys, plain = null }) => ({ kind, id, offset, keys, plain })),
      unclear: texts.filter(text => !isNamed(text)).map(({ id }) => id),
    })
  }
  const all = generations.flatMap(({ records }) => records.flatMap(({ keys }) => keys))
  const keys = await statesOf([...new Set(all)], context)
  if (json) {
    out(`${JSON.stringify({ organization: org, rep, topic, partition, keys, generations })}\n`)
    return exitCodes.done
  }
  out(`${rep} of ${org}, in partition ${partition} of ${topic}\nkeys: ${shownKeys(keys)}\n`)
  for (const { generation, versions, labels, parked, plain, records, unclear } of generations) {
    out(`${generation}: ${versions} versions, ${labels} labels, ${parked} parked records; ${plain} texts in the open\n`)
    const rows = records.map(({ kind, id, offset, keys, plain }) => [
      kind,
      id,
      `offset ${offset}`,
      keys.length > 0 ? `sealed with ${keys.join(', ')}` : plain === null ? 'parked: look at its value' : 'in the open',
    ])
    if (rows.length > 0) out(`${aligned(rows).replaceAll(/^/gm, '  ')}\n`)
    for (const id of unclear) out(`  ${id}  nobody can read it: it may have texts of ${rep}\n`)
  }
  return exitCodes.done
}

/** The others are parked records that may concern the person. */
const isNamed = ({ concern }: FoundText): boolean => concern === 'named'

/** Destroys the keys of a person. Without `confirm` it only shows what would be lost. */
export const eraseSubject = async (
  { org, rep, confirm, shared, completeUpTo, json }: EraseSubjectOptions,
  context: SubjectsContext,
): Promise<ExitCode> => {
  const { out, say } = context
  const sources = requireKeys(context)
  if (confirm !== undefined && confirm !== rep) {
    throw new CommandError(`--confirm: expected ${rep}, the rep whose data is to be lost; got ${confirm}`)
  }
  const before = await wholeProjection(completeUpTo, context)
  await refuseUncomparedCopies(before.live, confirm === undefined ? undefined : NOTHING_DESTROYED, context)
  const found = await findEverywhere({ org, rep }, context)
  const texts = found.flatMap(({ texts }) => texts.filter(isNamed))
  const keys = keysOf(texts)
  if (keys.length === 0) {
    throw new CommandError(`no text of ${rep} is sealed: there is no key to destroy (docs/privacy.md)`)
  }
  const states = await statesOf(keys, context)
  const missing = keys.filter(key => states[key] === 'missing')
  if (missing.length > 0) {
    const where = sources.vault ? 'SEAL_KEYS_DIR and Vault have' : 'SEAL_KEYS_DIR has'
    const what = `${where} neither ${missing.join(', ')} nor a receipt`
    throw new CommandError(`${what}: nothing was destroyed. Is it the directory that the API reads?`)
  }
  const searched = { subject: { org, rep }, keys, texts, shared }
  if (!shared) await refuseLosses(searched, wholeLog, context)

  const receipts = keys.map(key_id => receiptOf(key_id, texts, { org, rep }, context))
  const left = leftReadable(found.flatMap(({ texts }) => texts))
  const show = (receipt: ErasureReceipt, changed: object = {}): void => {
    if (json) out(`${JSON.stringify({ ...receipt, ...changed, ...left })}\n`)
  }
  if (confirm === undefined) {
    say(`${rep} of ${org}: sealed with ${shownKeys(states)}`)
    say(lossLine(found, texts))
    for (const line of leftLines(left)) say(line)
    const given = `${shared ? ' --shared' : ''}${completeUpTo === undefined ? '' : ` --complete-up-to ${timeOf(completeUpTo)}`}`
    const command = `npx commission subjects erase ${org} ${rep} --confirm ${rep}${given}`
    say(`Nothing is changed yet. The texts are lost for ever with: ${command}`)
    for (const receipt of receipts) show(receipt, { erased_at: null })
    return exitCodes.done
  }
  const end = (): ExitCode => {
    for (const line of leftLines(left)) say(line)
    return left.texts_in_the_open > 0 ? exitCodes.notAll : exitCodes.done
  }
  if (keys.every(key => states[key] === 'erased')) {
    for (const key of keys) show(await storedReceipt(sources, key))
    say(`erased before: ${keys.join(', ')}. Remove them from all copies of the directory, too.`)
    return end()
  }
  // The searches take minutes: what was projected meanwhile is searched directly before.
  const after = await sameProjection(before, context)
  await refuseLosses(searched, stream => firstSince(before.positions[stream], after.positions[stream]), context)
  const { live } = await sameProjection(before, context)
  await refuseUncomparedCopies(live, NOTHING_DESTROYED, context)
  for (const receipt of receipts) {
    const { key_id } = receipt
    if (states[key_id] === 'erased') {
      show(await storedReceipt(sources, key_id))
      say(`${key_id} was erased before`)
      continue
    }
    show(await destroyKey(sources, receipt))
    say(`erased ${key_id}; its receipt is ${key_id}.erased.json`)
  }
  say('Every API answers without these texts within 2 s. Remove the key from all copies of the directory, too.')
  say(
    `Records that were published and not projected yet are not in this. Look again: npx commission subjects report ${org} ${rep}`,
  )
  return end()
}

const NOTHING_DESTROYED = 'Nothing was destroyed'

/** Says where an erasure makes texts unreadable. */
const lossLine = (found: readonly FoundIn[], texts: readonly FoundText[]): string => {
  const { versions, labels, parked } = countsOf(texts)
  const generations = found.map(({ generation }) => generation).join(', ')
  return `in ${generations}: ${versions} versions, ${labels} labels, ${parked} parked records`
}

/** Of `--json`: the texts that stay readable after an erasure, and the parked records that may have such texts. */
type LeftReadable = { readonly texts_in_the_open: number; readonly parked_to_look_at: number }
const leftReadable = (texts: readonly FoundText[]): LeftReadable => {
  const unclear = texts.filter(text => !isNamed(text) || (text.kind === 'parked' && text.keys.length === 0))
  return {
    texts_in_the_open: countsOf(texts).plain,
    parked_to_look_at: new Set(unclear.map(({ id }) => id)).size,
  }
}

const leftLines = ({ texts_in_the_open: open, parked_to_look_at: parked }: LeftReadable): string[] => [
  ...(open > 0 ? [`${open} texts were published in the open: they stay readable (docs/privacy.md)`] : []),
  ...(parked > 0 ? [`${parked} parked records may have texts that stay readable: report names them`] : []),
]

type Searched = Pick<EraseSubjectOptions, 'shared'> & {
  readonly subject: Subject
  readonly keys: readonly string[]
  /** The texts of the person that were found. */
  readonly texts: readonly FoundText[]
}
/** The offset from which a stream is searched; undefined: it is not. */
type SearchedFrom = (stream: Stream) => number | undefined
const wholeLog: SearchedFrom = () => 0

/**
 * Searches the live generation, and parked API keys.
 * @throws CommandError if a key seals the text of somebody else, which would be lost, too, or if the person has another
 *   sealed text than those that were found
 */
const refuseLosses = async (
  { subject, keys, texts: known, shared }: Searched,
  from: SearchedFrom,
  context: SubjectsContext,
): Promise<void> => {
  const live = await liveGeneration(context)
  const streams = new Map<string, Stream>([
    [live.label, 'events'],
    [API_KEYS_GENERATION, 'api-keys'],
  ])
  const found = new Set(known.flatMap(({ sealed }) => sealed))
  const others = new Map<string, string>()
  let texts = 0
  for (const one of await searchedGenerations(context)) {
    const stream = streams.get(one.label)
    const since = stream && from(stream)
    if (since === undefined) continue
    for await (const text of withProgress(findTexts(one, undefined, subject, since), context)) {
      if (isNamed(text) && text.sealed.some(sealed => !found.has(sealed))) {
        const what = `a sealed text of ${subject.rep} was published meanwhile`
        throw new CommandError(`${what}: nothing was destroyed. Run the same command again`)
      }
      const key = text.keys.find(one => keys.includes(one))
      if (key === undefined || isNamed(text) || shared) continue
      texts += text.sealed.length
      const { subject: other } = text
      others.set(other ? `${other.rep} of ${other.org}` : `parked record ${text.id}`, key)
    }
  }
  const [first] = others
  if (first === undefined) return
  const what = `${first[1]} also seals ${texts} texts of ${others.size} others, for example of ${first[0]}`
  const advice = 'Publish those texts again, sealed with other keys, then use --shared'
  throw new CommandError(`${what}: nothing was destroyed. ${advice}`)
}

type FoundIn = { readonly generation: string; readonly texts: readonly FoundText[] }

/** @throws CommandError if no generation has a rep of this id */
const findEverywhere = async (subject: Subject, context: SubjectsContext): Promise<FoundIn[]> => {
  const found: FoundIn[] = []
  // A copy that is not read again can lack texts: their keys would stay.
  await liveGeneration(context)
  for (const generation of await searchedGenerations(context)) {
    const texts: FoundText[] = []
    for await (const text of withProgress(findTexts(generation, subject.org, subject), context)) {
      if (text.concern !== 'other') texts.push(text)
    }
    if (texts.length > 0) found.push({ generation: generation.label, texts })
  }
  if (found.some(({ texts }) => texts.some(isNamed))) return found
  throw new CommandError(`${subject.org} has no ${subject.rep} (npx commission subjects list ${subject.org})`)
}

/** Shows the number of documents from time to time, and stops with the command. */
async function* withProgress(texts: AsyncIterable<FoundText>, context: SubjectsContext): AsyncGenerator<FoundText> {
  const show = createProgressLine(context, context.now)
  let count = 0
  for await (const text of texts) {
    context.signal.throwIfAborted()
    show(`searched ${++count} records`)
    yield text
  }
}

const keysOf = (texts: readonly FoundText[]): string[] => [...new Set(texts.flatMap(({ keys }) => keys))].sort()

/** Numbers of records with texts, by kind, and of texts in the open. */
type Counts = Record<'versions' | 'labels' | 'parked' | 'plain', number>
const countedAs = { reps: 'versions', payroll_files: 'labels', parked: 'parked' } as const
const noTexts = (): Counts => ({ versions: 0, labels: 0, parked: 0, plain: 0 })
const addText = (counts: Counts, { kind, plain = 0 }: FoundText): void => {
  counts[countedAs[kind]]++
  counts.plain += plain
}
const countsOf = (texts: readonly FoundText[]): Counts => {
  const counts = noTexts()
  for (const text of texts) addText(counts, text)
  return counts
}

/** The state of each key; `unknown` if SEAL_KEYS_DIR is not set. */
type KeyStates = Readonly<Record<string, KeyState | 'unknown'>>
const statesOf = async (keys: readonly string[], { keys: sources }: SubjectsContext): Promise<KeyStates> => {
  const state = (id: string) => (sources === undefined ? 'unknown' : keyStateOf(sources, id))
  return Object.fromEntries(await Promise.all(keys.map(async id => [id, await state(id)] as const)))
}
const shownKeys = (states: KeyStates): string =>
  Object.entries(states)
    .map(([id, state]) => `${id} (${state})`)
    .join(', ') || '-'

const requireKeys = ({ keys }: SubjectsContext): KeySources => {
  if (keys !== undefined) return keys
  throw new CommandError('SEAL_KEYS_DIR is not set: it names the directory of the keys')
}

const receiptOf = (
  key_id: string,
  texts: readonly FoundText[],
  { org, rep }: Subject,
  { now }: SubjectsContext,
): ErasureReceipt => {
  const ofKey = texts.flatMap(({ sealed }) => sealed.filter(text => text.includes(`:${key_id}:`)))
  const sealed = [...new Set(ofKey)].sort()
  return {
    version: 1,
    erased_at: timeOf(now()),
    organization: org,
    rep,
    key_id,
    sealed_texts: sealed.length,
    sealed_sha256: hash('sha256', sealed.map(text => `${text}\n`).join('')),
  }
}
