/**
 * `commission projection rules check`: tries a rules module on records, without Kafka and Elasticsearch. In: a module,
 * and a file of records (by default the records of contract/). Out: whether the module loads, gives the same documents
 * when it runs again and when records are repeated, and keeps the sums; how many payouts differ from the rules in
 * force. The offset of a record is its line in the file.
 */
import { join } from 'node:path'
import {
  type AnyNewDocument,
  batchOfOne,
  builtInRules,
  Cache,
  decideBatch,
  decode,
  outcomeOf,
  type RulesTable,
} from '../../core/ledger/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { KEYS_PARTITIONS } from '../../schemas/partition.ts'
import { loadRules } from '../analysis/rules-module.ts'
import type { Fields } from '../documents/as-of.ts'
import { comparableRecordOf } from '../documents/comparable-content.ts'
import { firstDifference } from '../documents/find-differences.ts'
import { linesIn } from '../export/lines.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { DIFFERENCES_SHOWN } from '../limits.ts'
import { type ReadRecord, readLine } from './read-lines.ts'
import { problemsOf, type StoredDocument } from './rule-problems.ts'

export type CheckRulesOptions = {
  /** Path of the module. */
  readonly module: string
  /** A file, as `commission validate` takes it. By default the records of contract/. */
  readonly records: string | undefined
  readonly json: boolean
}
type CheckRulesSteps = {
  readonly open: (file: string) => AsyncIterable<Buffer>
  readonly out: (text: string) => void
  readonly now: () => number
  readonly signal: AbortSignal
}

const RECORDS = join(import.meta.dirname, '..', '..', 'contract', 'records.ndjson')
const PARTITIONS = 6

/** @throws CommandError for a module that cannot be loaded, throws, or returns something else than rules */
export const checkRules = async (
  { module, records, json }: CheckRulesOptions,
  steps: CheckRulesSteps,
): Promise<ExitCode> => {
  const { table, identity } = await loadRules(module)
  const log = await readLog(records ?? RECORDS, steps)
  const run = (name: string, rules: RulesTable, times: number) => projectAll(log, name, rules, times, steps.signal)
  const inForce = await run('the rules in force', builtInRules, 1)
  const once = await run(identity.name, table, 1)
  // Runs the same functions a second time: this shows rules that keep state in a variable.
  const again = await run(identity.name, table, 2)

  const unstable = once.decisions.flatMap(({ line, result }, index) =>
    again.decisions[index]?.results.every(other => other === result) ? [] : [line],
  )
  const changed = payoutsThatDiffer(inForce.documents, once.documents)
  const outcomes = once.decisions.filter(({ outcome }, index) => outcome !== inForce.decisions[index]?.outcome)
  const found = {
    module: identity.name,
    sha256: identity.sha256,
    records: log.length,
    deterministic: unstable.length === 0,
    conserving: once.problems.length === 0,
    problems: [
      ...unstable.map(line => ({ line, problem: 'another result when it is decided again' })),
      ...once.problems,
    ],
    payouts: changed,
    outcomes_that_differ: outcomes.map(({ line, outcome }) => ({ line, outcome })),
  }
  steps.out(json ? `${JSON.stringify(found)}\n` : textOf(found))
  return found.problems.length === 0 ? exitCodes.done : exitCodes.notAll
}

type Found = {
  readonly module: string
  readonly records: number
  readonly deterministic: boolean
  readonly conserving: boolean
  readonly problems: readonly { readonly line: number; readonly problem: string }[]
  readonly payouts: { readonly all: number; readonly differ: number }
  readonly outcomes_that_differ: readonly unknown[]
}

const textOf = (found: Found): string => {
  const { module, records, deterministic, conserving, problems, payouts, outcomes_that_differ } = found
  const shown = problems.slice(0, DIFFERENCES_SHOWN).map(({ line, problem }) => `  line ${line}: ${problem}`)
  const more = problems.length - shown.length
  return `${[
    `${module} loads, and decides ${records} records`,
    `deterministic: ${deterministic ? 'yes' : 'no'}`,
    `keeps the sums: ${conserving ? 'yes' : 'no'}`,
    ...shown,
    ...(more > 0 ? [`  and ${more} more; --json shows all`] : []),
    `payouts that differ from the rules in force: ${payouts.differ} of ${payouts.all}`,
    `records with another outcome: ${outcomes_that_differ.length}`,
  ].join('\n')}\n`
}

type LogRecord = ReadRecord & { readonly line: number }

const readLog = async (file: string, { open, now }: CheckRulesSteps): Promise<LogRecord[]> => {
  const log: LogRecord[] = []
  let line = 0
  for await (const text of linesIn(open(file), 'a line')) {
    line++
    if (text.length > 0) {
      log.push({ line, ...readLine(text, line, { type: undefined, partitions: PARTITIONS, now: now() }) })
    }
  }
  return log
}

type Decided = {
  readonly line: number
  readonly outcome: string
  /** Outcome and documents, as text: of the first time, and of every time. */
  readonly result: string
  readonly results: readonly string[]
}

/** Projects a log from its first record on. @param times how often each record is decided, one after the other */
const projectAll = async (
  log: readonly LogRecord[],
  name: string,
  rules: RulesTable,
  times: number,
  signal: AbortSignal,
) => {
  const documents = new Map<string, StoredDocument>()
  const decisions: Decided[] = []
  const problems: { line: number; problem: string }[] = []
  const latest: Record<Stream, number> = { events: 0, 'api-keys': 0 }
  for (const record of log) {
    signal.throwIfAborted()
    const { line, stream } = record
    latest[stream] = Math.max(latest[stream], record.record.timestamp)
    const results: string[] = []
    let outcome = ''
    for (let time = 0; time < times; time++) {
      const decided = await decideOnce(record, name, rules, latest[stream], documents)
      outcome = decided.outcome
      results.push(decided.result)
      for (const document of decided.changed) documents.set(document.key, document)
      if (time > 0) continue
      const found = stream === 'events' ? problemsOf(decided.organization, decided.changed, documents) : []
      problems.push(...found.map(problem => ({ line, problem })))
    }
    decisions.push({ line, outcome, result: results[0] ?? '', results })
  }
  return { documents, decisions, problems }
}

/** @throws CommandError that names the record, if the rules return changes of another shape */
const decideOnce = async (
  { line, stream, partition, record }: LogRecord,
  name: string,
  rules: RulesTable,
  time: number,
  documents: ReadonlyMap<string, StoredDocument>,
) => {
  const source = { stream, partition, partitions: stream === 'events' ? PARTITIONS : KEYS_PARTITIONS, topic: stream }
  const raw = { ...record, offset: line, timestamp: time }
  try {
    // Nothing is kept between two records: rules get documents as they are stored.
    const decided = await decideBatch(
      batchOfOne(raw),
      { decode, source, rules },
      new Cache({ fromFirstRecord: false }),
      async keys => new Map(keys.map(key => [key, draftIn(documents.get(key))])),
    )
    const serialized = decided.documents.map(({ key, kind, id, version, line: text }) => {
      if (key !== `${kind}/${id}` || version !== line) throw new TypeError('a change of another document or offset')
      const source: Fields = JSON.parse(text)
      return { key, kind, source, text }
    })
    const outcome = outcomeOf(decided)
    const [assessed] = decided.assessed
    const organization = assessed?.rules === undefined ? '' : assessed.verdict.data.org_id
    const result = [outcome, ...serialized.map(({ key, text }) => `${key} ${text}`)].join('\n')
    return { outcome, result, organization, changed: serialized.map(({ text: _, ...document }) => document) }
  } catch (error) {
    if (error instanceof CommandError) throw error
    const envelope = decode(raw)
    const type = typeof envelope === 'string' ? 'record' : envelope.type
    throw new CommandError(
      `${name} gives wrong references or changes on a ${type} at offset ${line}: expected them as the rules in force give them`,
    )
  }
}

const draftIn = (document: StoredDocument | undefined): AnyNewDocument | null => {
  if (document === undefined) return null
  const { body_bytes: _, ...draft } = document.source
  return draft as unknown as AnyNewDocument
}

/** Compares the content of payouts, with what replaced them. */
const payoutsThatDiffer = (
  a: ReadonlyMap<string, StoredDocument>,
  b: ReadonlyMap<string, StoredDocument>,
): Found['payouts'] => {
  const content = (document: StoredDocument | undefined) =>
    document && comparableRecordOf('payouts', { id: document.key, source: document.source })?.content
  const keys = [...new Set([...a.keys(), ...b.keys()])].filter(key => key.startsWith('payouts/'))
  const differ = keys.filter(key => firstDifference(content(a.get(key)), content(b.get(key)), '') !== undefined)
  return { all: keys.length, differ: differ.length }
}
