// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in commands that run at the same time, are interrupted, or meet what an earlier one left: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const PAIRS = 'test/simulation/pairs.test.ts'
const ON_SOURCE = 'test/simulation/pairs-source.test.ts'
const AFTER_RESTORE = 'test/simulation/pairs-restored.test.ts'

export const pairMutants: readonly Mutant[] = [
  {
    name: 'a rebuild restores its generation after another command dropped it',
    inside: 'assertNamed',
    find: '  if (building === generation || active.includes(generation)) return\n',
    replace: '  if (building !== undefined || active.includes(generation)) return\n',
    flow: PAIRS,
  },
  {
    name: 'a generation is deleted while projectors write to it',
    inside: 'waitUntilNobodyWrites',
    find: '    if (members === 0 && waited >= PROJECTOR_STOP_MS && waited - quietSince >= QUIET_MS) return\n',
    replace: '    if (members >= 0) return\n',
  },
  {
    name: 'a generation is deleted while its positions still move',
    inside: 'waitUntilNobodyWrites',
    find: '    if (found !== seen) quietSince = waited\n',
    replace: '',
  },
  {
    name: 'the previous generation is dropped before the floor of the new one is stored',
    inside: 'removeName',
    find: '      isOut = isDeepStrictEqual(now, seen) && now.minPositions !== null\n',
    replace: '      isOut = true\n',
  },
  {
    name: 'a generation is dropped while Kafka is another cluster',
    inside: 'drop',
    find: '  assertSameSource(live, await describeSource(admin, context.topics.events))\n',
    replace: '',
  },
  {
    name: 'a generation name is used again while indices of it exist',
    inside: 'firstFree',
    find: '  return Math.max(1, ...numbers) + 1\n',
    replace: '  return Math.min(2, ...numbers)\n',
    flow: PAIRS,
  },
  {
    name: 'a generation without documents cannot be dropped',
    inside: 'drop',
    find: '  if (!namesOf(now).includes(generation) && !(await findRemains(context)).has(generation)) {',
    replace: '  if (!(await findRemains(context)).get(generation)?.hasDocument) {',
  },
  {
    name: 'a found difference does not replace an earlier note of equality',
    inside: 'noteComparison',
    find: '    return { ...now, verified, compared: { ...now.compared, [pair]: comparison } }\n',
    replace: '    return { ...now, verified, compared: { [pair]: comparison, ...now.compared } }\n',
  },
  {
    name: 'a comparison replaces a difference that was found after it began',
    inside: 'whyNotNoted',
    find: "const isOlder = last?.found === 'different' && last.run !== (",
    replace: "const isOlder = last?.found === 'different' && last.run < (",
  },
  {
    name: 'an empty generation is equal to any other',
    inside: 'commonPositions',
    find: '    if (Math.min(ours, theirs) === 0 && Math.max(ours, theirs) > 0) {',
    replace: '    if (Math.min(ours, theirs) < 0) {',
  },
  {
    name: 'a swap accepts a comparison of too few records',
    inside: 'assertComparedEqual',
    find: '  if (since > Math.max(SWAP_UNCOMPARED_RECORDS, compared / SWAP_UNCOMPARED_PART)) {',
    replace: '  if (since < 0) {',
  },
  {
    name: 'a swap does not check again for differences that were found while it waited',
    inside: 'makeLive',
    find: '    refuseThen(now)\n',
    replace: '',
  },
  {
    name: 'a projector that was suspended stops because its generation was replaced and dropped',
    inside: 'createKeepUp',
    find: '      if (live === undefined || live === generation) return fail(error)\n',
    replace: '      if (live === undefined || live !== undefined) return fail(error)\n',
  },
  {
    name: 'adopt overwrites what another command changed meanwhile',
    inside: 'replaceStored',
    find: "{ method: 'PUT', path, query: ifVersion(read), body: document }",
    replace: "{ method: 'PUT', path, query: read && {}, body: document }",
    flow: AFTER_RESTORE,
  },
  {
    name: 'two commands write the same temporary file',
    inside: 'writeTemporary',
    find: '`${name}.${randomUUID()}.new`',
    replace: '`${name}.new`',
    flow: ON_SOURCE,
  },
  {
    name: 'an erasure fails because another one has removed the key',
    inside: 'overwrite',
    find: '.catch(ifMissing)\n  if (handle === undefined) return\n',
    replace: '\n',
    flow: ON_SOURCE,
  },
  {
    name: 'an archive that grows meanwhile is damaged',
    inside: 'segmentsOf',
    find: '      if (await hasGrown(target, manifest, archived)) break\n',
    replace: '',
  },
  {
    name: 'a rollback trusts equal rules after a lost shard',
    inside: 'parkAlike',
    find: " && compared[pairOf(a.generation, b.generation)]?.found === 'equal'",
    replace: ' && compared !== undefined',
  },
  {
    name: 'a rollback serves texts that were redacted',
    inside: 'refuseOpenTexts',
    find: '  if (redacted_to === undefined) return\n',
    replace: '  if (redacted_to !== null) return\n',
  },
]
