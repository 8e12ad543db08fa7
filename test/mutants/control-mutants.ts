// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands here is code as text
/** Bugs that somebody could make in what the projector knows of its own indices: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const controlMutants: readonly Mutant[] = [
  {
    name: 'a lost control index is made anew beside what was projected',
    file: 'projector/generations/prepare.ts',
    find: '    if (projected.length > 0) {\n',
    replace: '    if (projected.length < 0) {\n',
  },
  {
    name: 'only the first generation proves that something was projected',
    file: 'projector/generations/indices.ts',
    find: '? generation : undefined\n',
    replace: "&& generation === 'g1' ? generation : undefined\n",
  },
  {
    name: 'the indices of another installation prove that something was projected',
    file: 'projector/generations/indices.ts',
    find: "  const [generation, kind, ...others] = name.slice(prefix.length + 1).split('-')\n",
    replace:
      "  const [kind, generation, ...others] = name.slice(prefix.length + 1).split('-').reverse()\n  others.length = 0\n",
  },
  {
    name: 'the first generation is made live where nobody knows any more which one was',
    file: 'projector/generations/prepare.ts',
    find: 'if (others.length === 0 || (await',
    replace: 'if (others.length >= 0 || (await',
  },
  {
    name: 'a damaged spare generation stops the live one',
    file: 'projector/stream/keep-up.ts',
    find: '=> generation === API_KEYS_GENERATION || generation === wanted.live',
    replace: "=> generation === API_KEYS_GENERATION || generation !== ''",
  },
  {
    name: 'a spare generation that cannot be opened stops the start',
    file: 'projector/start.ts',
    find: 'if (generation === generations.live || !(error instanceof StopError)) throw error',
    replace: 'if (generation !== undefined || !(error instanceof StopError)) throw error',
    flow: 'test/flow/damaged-spare.test.ts',
  },
  {
    name: 'a spare generation that fails is tried again at every look',
    file: 'projector/stream/keep-up.ts',
    find: 'now() - before.at >= SPARE_RETRY_MS',
    replace: 'now() - before.at >= 0',
  },
  {
    name: 'a failure of the live generation only ends its stream',
    file: 'projector/stream/keep-up.ts',
    find: 'generation === API_KEYS_GENERATION || generation === wanted.live\n',
    replace: 'generation === API_KEYS_GENERATION\n',
  },
  {
    name: 'a projector goes on with indices that were restored',
    file: 'projector/generations/indices.ts',
    find: '  if (replaced === undefined) return\n',
    replace: '  if (replaced !== null) return\n',
  },
  {
    name: 'the ids of indices are recorded anew at every start',
    file: 'projector/generations/prepare.ts',
    find: '  if (identity.indices !== undefined) return identity\n',
    replace:
      '  identity = { ...identity, indices: await readIndexIds(names, { request, prefix }) }\n  if (identity.indices !== undefined) return identity\n',
  },
  {
    name: 'a restore over a closed index is not told from what was there',
    file: 'schemas/stored/index-ids.ts',
    find: "ids.join('/')",
    replace: 'String(uuid)',
  },
  {
    name: 'the API believes restored indices',
    file: 'api/read/check-indices.ts',
    find: "if (body.indices[index] !== ids.get(index)) throw unavailable('indices_replaced')",
    replace: "if (ids.get(index) === undefined) throw unavailable('indices_replaced')",
  },
  {
    name: 'the API believes indices that nobody has recorded',
    file: 'api/read/check-indices.ts',
    find: "if (body.indices === undefined) throw unavailable('indices_not_recorded')",
    replace: 'if (body.indices === undefined) return',
  },
  {
    name: 'a key that is remembered is served although its index was not looked at',
    file: 'api/read/check-indices.ts',
    find: '    if (looking === undefined) return keys.remembered(key)\n',
    replace: '    if (looking !== null) return keys.remembered(key)\n',
  },
  {
    name: 'what is read again after a restore is served before that is done',
    file: 'api/read/position.ts',
    find: "  if (body.position < (body.serve_from ?? 0)) throw unavailable('not_read_again_yet')\n",
    replace: '',
  },
]
