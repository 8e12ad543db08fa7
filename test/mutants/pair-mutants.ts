// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands here is code as text
/** Bugs that somebody could make where two commands meet, or one is cut short: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const PAIRS = 'test/simulation/pairs.test.ts'

export const pairMutants: readonly Mutant[] = [
  {
    name: 'a rebuild puts its generation back although it was dropped meanwhile',
    file: 'commands/generations/rebuild.ts',
    find: '  if (building === generation || kept.includes(generation)) return\n',
    replace: '  if (building !== undefined || kept.includes(generation)) return\n',
    flow: PAIRS,
  },
  {
    name: 'a generation is deleted while projectors keep it up',
    file: 'commands/generations/drop.ts',
    find: '    if (members === 0 && now() - began >= LET_GO_MS && now() - quietSince >= QUIET_MS) return\n',
    replace: '    if (members >= 0) return\n',
  },
  {
    name: 'a generation is deleted while its positions still move',
    file: 'commands/generations/drop.ts',
    find: '    if (found !== seen) quietSince = now()\n',
    replace: '',
  },
  {
    name: 'the one before is dropped before it is said how far readers saw it',
    file: 'commands/generations/drop.ts',
    find: '      isOut = isDeepStrictEqual(now, seen) && now.floor !== null\n',
    replace: '      isOut = true\n',
  },
  {
    name: 'a generation is dropped on another cluster',
    file: 'commands/generations/drop.ts',
    find: '  assertSameSource(live, await describeSource(admin, context.topics.events))\n',
    replace: '',
  },
  {
    name: 'a name is used again while indices of it are left',
    file: 'commands/generations/rebuild.ts',
    find: '  return Math.max(1, ...numbers) + 1\n',
    replace: '  return Math.min(2, ...numbers)\n',
    flow: PAIRS,
  },
  {
    name: 'a generation without documents cannot be dropped',
    file: 'commands/generations/drop.ts',
    find: '  if (!namesOf(now).includes(generation) && !(await findRemains(context)).has(generation)) {',
    replace: '  if (!(await findRemains(context)).get(generation)?.isGeneration) {',
  },
  {
    name: 'a difference does not take back that two were equal',
    file: 'commands/generations/compared.ts',
    find: '    return { ...now, verified, compared: { ...now.compared, [pair]: comparison } }\n',
    replace: '    return { ...now, verified, compared: { [pair]: comparison, ...now.compared } }\n',
  },
  {
    name: 'an older comparison takes back a difference that was found since',
    file: 'commands/generations/compared.ts',
    find: "      else if (last?.found === 'different' && last.run !== run) why = ",
    replace: "      else if (last?.found === 'different' && last.run < run) why = ",
  },
  {
    name: 'a generation of which nothing is projected is equal to any other',
    file: 'commands/generations/compared.ts',
    find: '    if (Math.min(ours, theirs) === 0 && Math.max(ours, theirs) > 0) {',
    replace: '    if (Math.min(ours, theirs) < 0) {',
  },
  {
    name: 'a swap stands on a comparison of a small part',
    file: 'commands/generations/compared.ts',
    find: '  if (since > Math.max(SWAP_UNCOMPARED_RECORDS, compared / SWAP_UNCOMPARED_PART)) {',
    replace: '  if (since < 0) {',
  },
  {
    name: 'a swap does not look again at what was found while it waited',
    file: 'commands/generations/swap.ts',
    find: '    refuseThen(now)\n',
    replace: '',
  },
  {
    name: 'a projector that slept ends because its generation was replaced and dropped',
    file: 'projector/stream/keep-up.ts',
    find: '      if (live === undefined || live === generation) return fail(error)\n',
    replace: '      if (live === undefined || live !== undefined) return fail(error)\n',
  },
]
