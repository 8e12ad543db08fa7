/** Bugs in a copy that grows by parts: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const GROWING = 'test/flow/growing-copy.long.test.ts'
const COPIED = 'test/simulation/pairs-copied.test.ts'
const VIEWS = 'test/flow/copy-views.test.ts'

export const partMutants: readonly Mutant[] = [
  {
    name: 'a replaced payout of an earlier part counts in the sums of a copy',
    inside: 'countParts',
    find: 'if (replaced.has(id)) continue',
    replace: 'if (replaced.has(undefined)) continue',
    flow: GROWING,
  },
  {
    name: 'a continued part writes again what it has already',
    inside: 'writeSince',
    find: 'texts.slice(Math.max(0, file.written - file.count))',
    replace: 'texts.slice(0)',
  },
  {
    name: 'a part begins at the first change',
    inside: 'changesSince',
    find: 'let startingAfter = momentOfChange(begin.as_of).name',
    replace: 'let startingAfter: ReturnType<typeof changeNameOf> | undefined',
    flow: GROWING,
  },
  {
    name: 'a part that was stopped between two files leaves out what the others have',
    inside: 'writeSince',
    find: 'file.written - file.count',
    replace: '(open[0]?.written ?? 0) - file.count',
  },
  {
    name: 'labels of payments are not read again at the end of an export',
    inside: 'personalKinds',
    find: 'listTraits[kind].isPersonal',
    replace: "kind === 'reps'",
  },
  {
    name: 'a copy goes on with texts about a person who was forgotten',
    inside: 'addLocked',
    find: 'await assertNobodyForgottenSince(parts, options, steps)',
    replace: 'void parts',
  },
  {
    name: 'a part that a killed run finished is added with texts about a person who was forgotten since',
    inside: 'addLocked',
    find: '? [...former, { directory, manifest: finished }]',
    replace: '? former',
  },
  {
    name: 'a redaction is no reason to compare the texts of a copy',
    inside: 'textsNow',
    find: '[position.generation.id, receipts]',
    replace: '[position.generation.name, receipts]',
  },
  {
    name: 'an erasure is no reason to compare the opened texts of a copy',
    inside: 'textsNow',
    find: 'open ? await steps.readReceipts() : []',
    replace: '[]',
  },
  {
    name: 'only the first part of a copy is compared',
    inside: 'assertNobodyForgottenSince',
    find: 'of parts)',
    replace: 'of parts.slice(0, 1))',
  },
  {
    name: 'the last part is named before the part is there',
    inside: 'addLocked',
    find: '  await rename(directory, join(out, name))\n',
    replace:
      '  await nameLast({ directory: join(out, name), manifest }, texts, out)\n  await rename(directory, join(out, name))\n',
    flow: COPIED,
  },
  {
    name: 'a part is added to a copy that lost its last part',
    inside: 'assertNoneLost',
    find: 'if (found === undefined) throw new CommandError(',
    replace: 'if (found === undefined) return void new CommandError(',
  },
  {
    name: 'a part is added to a copy whose last part is unknown',
    inside: 'assertNoneLost',
    find: 'if (named === undefined && parts.length <= 1) return',
    replace: 'if (named === undefined) return',
  },
  {
    name: 'another part in place of the last one is continued',
    inside: 'assertNoneLost',
    find: 'found.manifest.digest === named.digest && found.manifest.as_of === named.as_of',
    replace: 'found.directory.endsWith(named.part)',
  },
  {
    name: 'a run that finds nothing new does not name the last part',
    inside: 'addLocked',
    find: '    await nameLast(last, texts, out)\n',
    replace: '',
  },
  {
    name: 'a part is written through a link',
    inside: 'addLocked',
    find: '  await assertNoLink(directory)\n',
    replace: '',
  },
  {
    name: 'an export without parts is written into a copy',
    inside: 'exportLocked',
    find: 'if (existsSync(join(out, LAST_PART_FILE)))',
    replace: "if (existsSync(join(out, 'last-part')))",
  },
  {
    name: 'a part does not name the part before it',
    inside: 'beginOfPart',
    find: 'former.map(beginAfter).at(-1)',
    replace: 'former.map(beginAfter).at(former.length)',
  },
  {
    name: 'a part is added to a copy whose files were changed',
    inside: 'readParts',
    find: 'await assertIntact(namedIn(manifest), directory)',
    replace: 'await assertIntact([], directory)',
  },
  {
    name: 'a part is added to a copy that lost a part',
    inside: 'readParts',
    find: 'if (name !== expected || parts.length >= PARTS_MAX)',
    replace: 'if (parts.length >= PARTS_MAX)',
  },
  {
    name: 'a part that follows another part is added',
    inside: 'whyNoPart',
    find: 'after.as_of === before.as_of && after.digest === before.digest',
    replace: 'true',
  },
  {
    name: 'a part without tables is added to parts that have some',
    inside: 'readParts',
    find: ' === asked) continue',
    replace: ' === asked || !asked) continue',
  },
  {
    name: 'an unsigned part is added to signed ones',
    inside: 'readParts',
    find: '!== (key !== undefined)',
    replace: '&& key === undefined && parts.length > PARTS_MAX',
  },
  {
    name: 'an unfinished part is given up at the next run',
    inside: 'addLocked',
    find: 'options.asOf ?? (begun?.as_of ? momentOfChange(begun.as_of) : undefined)',
    replace: 'options.asOf',
  },
  {
    name: 'other rules do not end a copy',
    inside: 'compareWith',
    find: 'if (now.rules_version !== rules_version)',
    replace: 'if (now.rules_version < rules_version)',
  },
  {
    name: 'a column of a later part has another decimal type than the first part',
    inside: 'decimal',
    file: 'tools/export/columns.ts',
    find: 'only === undefined || scale === only',
    replace: 'only === undefined || scale >= only',
    flow: GROWING,
  },
  {
    name: 'the view takes the first version of a rep and not the last',
    file: 'docs/examples/current.sql',
    find: "reps.parquet', union_by_name = true, filename = true, file_row_number = true)\nQUALIFY row_number() OVER (PARTITION BY id ORDER BY filename DESC",
    replace:
      "reps.parquet', union_by_name = true, filename = true, file_row_number = true)\nQUALIFY row_number() OVER (PARTITION BY id ORDER BY filename ASC",
    flow: VIEWS,
  },
  {
    name: 'the view of problems does not see that the last part is lost',
    file: 'docs/examples/current.sql',
    find: 'WHERE NOT EXISTS (\n  FROM parts WHERE filename LIKE',
    replace: 'WHERE NOT EXISTS (\n  FROM parts WHERE filename IS NOT NULL OR filename LIKE',
    flow: VIEWS,
  },
  {
    name: 'the view shows replaced payouts',
    file: 'docs/examples/current.sql',
    find: ' WHERE id NOT IN (SELECT supersedes_id FROM all_payouts WHERE supersedes_id IS NOT NULL)',
    replace: '',
    flow: VIEWS,
  },
]
