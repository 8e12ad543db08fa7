/** Bugs that somebody could make in what operators run by hand: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const commandMutants: readonly Mutant[] = [
  {
    name: 'as many documents are asked for at once as there are, however large',
    file: 'commands/documents/sizes.ts',
    find: '    if (count > 0 && bytes > most) break\n',
    replace: '',
  },
  {
    name: 'an answer that is too long ends the command',
    file: 'commands/documents/scan.ts',
    find: '      if (error instanceof AnswerTooLong) continue\n',
    replace: '',
  },
  {
    name: 'the size of a body is no difference',
    file: 'commands/documents/as-of.ts',
    find: 'export const asOf = (kind: Kind, { id, source: fields }: Document, position: number): Document | undefined => {\n',
    replace:
      'export const asOf = (kind: Kind, { id, source }: Document, position: number): Document | undefined => {\n  const { body_bytes: _, ...fields } = source\n',
  },
  {
    name: 'of many documents that differ none is looked at again',
    file: 'commands/documents/find-differences.ts',
    find: 'if (digest === other?.digest && count === other.count) continue',
    replace: 'if (count === other?.count) continue',
  },
  {
    name: 'what is not published again is foreseen as if it were',
    file: 'commands/parked/forecast.ts',
    find: '    if (isSent(forecast)) known.decided(',
    replace: '    if (forecast.outcome === "applied") known.decided(',
  },
  {
    name: 'a replay goes up to a time of which records are yet to come',
    file: 'commands/analysis/replay-bounds.ts',
    find: '    if (time <= settled || (firstLater',
    replace: '    if (time <= now || (firstLater',
  },
  {
    name: 'another export that writes into the directory is not looked for',
    file: 'commands/export/lock.ts',
    find: '      if (!isLock(name) || name === ours) continue\n',
    replace: '      if (!isLock(name) || name !== ours) continue\n',
  },
  {
    name: 'a process that has the number of one that was killed holds its lock',
    file: 'commands/export/lock.ts',
    find: 'return (await processes.startOf(other.pid)) === other.started',
    replace: 'return (await processes.startOf(other.pid)) !== undefined',
  },
  {
    name: 'an export that was frozen while another one took over writes on',
    file: 'commands/export/lock.ts',
    find: '      if (await timeOf(file)) return\n',
    replace: '      if ((await timeOf(file)) !== null) return\n',
  },
  {
    name: 'reps and periods that are missing from an export are not missed',
    file: 'commands/export/export.ts',
    find: "assertWhole(files, totals, [await count('reps'), await count('periods')])",
    replace: 'assertWhole(files, totals, [files.files.reps?.records ?? 0, files.files.periods?.records ?? 0])',
  },
  {
    name: 'an export writes through a link',
    file: 'commands/export/lines.ts',
    find: 'O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW)',
    replace: 'O_WRONLY | O_CREAT | O_APPEND)',
  },
  {
    name: 'an output that could not be written is a success',
    file: 'commands/main.ts',
    find: "process.stdout.write('', error => (error ? outputIsLost(error) : process.exit(code)))",
    replace: "process.stdout.write('', () => process.exit(code))",
  },
]
