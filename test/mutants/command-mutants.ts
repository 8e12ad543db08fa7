/** Bugs in the commands of operators and analysts: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const commandMutants: readonly Mutant[] = [
  {
    name: 'documents are read together without a limit on their size',
    file: 'tools/documents/sizes.ts',
    find: '    if (count > 0 && bytes > max) break\n',
    replace: '',
  },
  {
    name: 'a response that is too long ends the command',
    file: 'tools/documents/scan.ts',
    find: '      if (error instanceof AnswerTooLong) continue\n',
    replace: '',
  },
  {
    name: 'a comparison ignores a different body_bytes',
    file: 'tools/documents/as-of.ts',
    find: '  { id, source: fields }: Document<Source>,\n  position: number,\n): Document<Source> | undefined => {\n',
    replace:
      '  { id, source }: Document<Source>,\n  position: number,\n): Document<Source> | undefined => {\n  const { body_bytes: _, ...fields } = source\n',
  },
  {
    name: 'a comparison of many documents finds only differences in their number',
    file: 'tools/documents/find-differences.ts',
    find: 'if (digest === other?.digest && count === other.count) continue',
    replace: 'if (count === other?.count) continue',
  },
  {
    name: 'the forecast counts records that will not be published again',
    file: 'tools/parked/forecast.ts',
    find: '    if (isSent(forecast)) known.addDecided(',
    replace: '    if (forecast.outcome === "applied") known.addDecided(',
  },
  {
    name: 'a replay accepts a time for which records can still arrive',
    file: 'tools/analysis/replay-bounds.ts',
    find: '    if (time <= latestOver || (firstLater',
    replace: '    if (time <= now || (firstLater',
  },
  {
    name: 'a replay from an archive accepts a time that the archive may not have reached',
    file: 'tools/analysis/replay-bounds.ts',
    find: 'replayed.find(partition => !firstLater.has(partition))',
    replace: 'replayed.find(() => false)',
  },
  {
    name: 'a sandbox that goes further than the archive counts as complete',
    file: 'tools/analysis/replay-bounds.ts',
    find: '    if (bound <= end) continue\n',
    replace: '    continue\n',
  },
  {
    name: 'a replay reads a segment that was replaced after the archive was verified',
    file: 'tools/archive/read-archive.ts',
    find: 'if (chains !== undefined && chains',
    replace: 'if (chains === undefined && chains',
  },
  {
    name: 'a replay does not verify the partitions of an archive',
    file: 'tools/archive/read-archive.ts',
    find: '  for await (const segment of segmentsOf(target, manifest, archived)) {\n    const { header, sha256 } = segment\n',
    replace:
      '  for (const from of await startsOf(target, manifest, archived)) {\n    const segment = await openAt(target, manifest, archived.partition, from)\n    const { header, sha256 } = segment\n',
  },
  {
    name: 'an export does not look for another export in its directory',
    file: 'tools/export/lock.ts',
    find: '      if (!isLock(name) || name === ours) continue\n',
    replace: '      if (!isLock(name) || name !== ours) continue\n',
  },
  {
    name: 'a process that got the pid of a killed export holds its lock',
    file: 'tools/export/lock.ts',
    find: 'return (await processes.startOf(other.pid)) === other.started',
    replace: 'return (await processes.startOf(other.pid)) !== undefined',
  },
  {
    name: 'a frozen export continues to write after another one took over its directory',
    file: 'tools/export/lock.ts',
    find: '      if (await modifiedAt(file)) return\n',
    replace: '      if ((await modifiedAt(file)) !== null) return\n',
  },
  {
    name: 'an export does not notice missing reps and periods',
    file: 'tools/export/export.ts',
    find: "assertWhole(files, totals, [await count('reps'), await count('periods')])",
    replace: 'assertWhole(files, totals, [files.files.reps?.records ?? 0, files.files.periods?.records ?? 0])',
  },
  {
    name: 'an export writes through a symbolic link',
    file: 'tools/export/lines.ts',
    find: 'O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW)',
    replace: 'O_WRONLY | O_CREAT | O_APPEND)',
  },
  {
    name: 'a command that could not write its output exits with its usual code',
    file: 'tools/main.ts',
    find: "process.stdout.write('', error => (error ? outputIsLost(error) : process.exit(code)))",
    replace: "process.stdout.write('', () => process.exit(code))",
  },
  {
    name: 'the time left counts the time in which a replay connects',
    file: 'tools/time-left.ts',
    find: 'samples.at(-1)?.done ?? began',
    replace: 'samples.at(-1)?.done ?? -1',
  },
  {
    name: 'Ctrl-C ends a command like a failure',
    file: 'tools/signals.ts',
    find: "isInterrupted ||= name === 'SIGINT'",
    replace: 'isInterrupted ||= false',
  },
  {
    name: 'a key that is made without a permission may read nothing',
    file: 'tools/commands/keys/create.ts',
    find: "'the key may not read anything', true)",
    replace: "'the key may not read anything')",
  },
  {
    name: 'the file of a command adds no options',
    file: 'tools/program.ts',
    find: 'file?.default(command, callOf(command))',
    replace: 'if (false) file?.default(command, callOf(command))',
  },
  {
    name: 'help does not fit the terminal',
    file: 'tools/terminal.ts',
    find: 'Math.max(COLUMNS_LEAST, columns)',
    replace: 'Math.max(COLUMNS_LEAST, columns + 40)',
  },
  {
    name: 'the time left goes up for a moment',
    file: 'tools/time-left.ts',
    find: 'endsAt === undefined || found <= endsAt',
    replace: 'true',
  },
  {
    name: 'a Parquet timestamp cuts nanoseconds off',
    file: 'tools/export/columns.ts',
    find: ' || nanoseconds % 1_000n !== 0n',
    replace: '',
  },
  {
    name: 'an amount with too many digits becomes a Parquet decimal',
    file: 'tools/export/columns.ts',
    find: 'areAmounts && digits + scale <= DECIMAL_DIGITS_MAX',
    replace: 'areAmounts',
  },
  {
    name: 'a name becomes markup of a page',
    file: 'tools/markup.ts',
    find: 'escaped(String(part))',
    replace: 'String(part)',
  },
  {
    name: 'a page of differences leaves out the smallest key and not the smallest difference',
    file: 'tools/documents/page.ts',
    find: 'money.toSorted((a, b) => sizeOf(b).cmp(sizeOf(a)))',
    replace: 'money',
  },
  {
    name: 'a rules module is tried without repeating its decisions',
    file: 'tools/validate/check-rules.ts',
    find: 'run(identity.name, table, 2)',
    replace: 'run(identity.name, table, 1)',
  },
  {
    name: 'doctor does not see a right that Kafka refuses',
    file: 'tools/doctor/kafka-rights.ts',
    find: '  if (!isTopic || DESCRIBING.some(one => allowed.has(one))) return false\n',
    replace: '  if (!isTopic || DESCRIBING.some(one => allowed.has(one))) return true\n',
  },
  {
    name: 'doctor ends with exit code 0 although a check failed',
    file: 'tools/doctor/finding.ts',
    find: "countOf(findings, 'failed') > 0 ? exitCodes.failed : exitCodes.done",
    replace: 'exitCodes.done',
  },
  {
    name: 'doctor takes a full disk for an empty one',
    file: 'tools/doctor/elasticsearch-cluster.ts',
    find: 'kept !== undefined && free < kept',
    replace: 'kept !== undefined && total - free < kept',
  },
  {
    name: 'a rules module may make lines that do not add up',
    file: 'tools/validate/rule-problems.ts',
    find: 'isSum(lines, net_amount)',
    replace: 'true',
  },
]
