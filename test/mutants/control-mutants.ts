// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in how the projector tracks its own indices: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const controlMutants: readonly Mutant[] = [
  {
    name: 'a control document whose shard is away for a moment ends the projector',
    inside: 'sendWhole',
    find: '  request.check?.(answer)\n',
    replace: '',
  },
  {
    name: 'a lost control index is created again although projected indices exist',
    inside: 'prepareControl',
    find: '    assertControlNotLost(names, prefix)\n',
    replace: '',
  },
  {
    name: 'only the first generation proves that something was projected',
    inside: 'generationOf',
    find: '? generation : undefined\n',
    replace: "&& generation === 'g1' ? generation : undefined\n",
  },
  {
    name: 'the indices of another installation prove that something was projected',
    inside: 'generationOf',
    find: "  const [generation, kind, ...others] = name.slice(prefix.length + 1).split('-')\n",
    replace:
      "  const [kind, generation, ...others] = name.slice(prefix.length + 1).split('-').reverse()\n  others.length = 0\n",
  },
  {
    name: 'the first generation is made live although nobody knows which one was live',
    inside: 'assertLiveNotLost',
    find: 'if (others.length === 0 || (await',
    replace: 'if (others.length >= 0 || (await',
  },
  {
    name: 'a damaged spare generation stops the live one',
    inside: 'createKeepUp',
    find: '=> generation === API_KEYS_GENERATION || generation === wanted.live',
    replace: "=> generation === API_KEYS_GENERATION || generation !== ''",
  },
  {
    name: 'a spare generation that cannot be opened stops the start',
    inside: 'createOpenActive',
    find: 'if (generation === generations.live || !(error instanceof StopError)) throw error',
    replace: 'if (generation !== undefined || !(error instanceof StopError)) throw error',
    flow: 'test/flow/damaged-spare.long.test.ts',
  },
  {
    name: 'a failed spare generation is started again without a pause',
    inside: 'createKeepUp',
    find: 'elapsed() - before.at >= SPARE_RETRY_MS',
    replace: 'elapsed() - before.at >= 0',
  },
  {
    name: 'a failure of the live generation only ends its stream',
    inside: 'createKeepUp',
    find: 'generation === API_KEYS_GENERATION || generation === wanted.live\n',
    replace: 'generation === API_KEYS_GENERATION\n',
  },
  {
    name: 'a projector continues on restored indices',
    inside: 'assertSameIndices',
    find: '  if (replaced === undefined) return\n',
    replace: '  if (replaced !== null) return\n',
  },
  {
    name: 'the ids of indices are recorded anew at every start',
    inside: 'recordIndices',
    find: '  if (identity.indices !== undefined) return identity\n',
    replace:
      '  identity = { ...identity, indices: await readIndexIds(names, steps) }\n  if (identity.indices !== undefined) return identity\n',
  },
  {
    name: 'a restore over a closed index is not recognized',
    inside: 'indexIdsIn',
    find: "ids.join('/')",
    replace: 'String(uuid)',
  },
  {
    name: 'the API serves restored indices',
    inside: 'createCheckIndices',
    find: "if (body.indices[index] !== ids.get(index)) throw unavailable('indices_replaced')",
    replace: "if (ids.get(index) === undefined) throw unavailable('indices_replaced')",
  },
  {
    name: 'what the API remembers of deleted indices is in answers of those that were made anew',
    inside: 'generationIdOf',
    find: "hash('sha256', ids.join(), 'base64url')",
    replace: "hash('sha256', ids.slice(ids.length).join(), 'base64url')",
  },
  {
    name: 'the API goes on with the partitions of indices that were made anew',
    inside: 'createPositionReader',
    find: '    forgotten.add(name)\n',
    replace: '',
  },
  {
    name: 'the API waits for the positions of a log that is gone',
    inside: 'positionKeyOf',
    find: '${source}/${log}/${partition}',
    replace: '${source}/${partition}',
  },
  {
    name: 'a generation that was made anew has the times of the former one',
    inside: 'createTimesCache',
    find: 'remembered.get(id)',
    replace: 'remembered.values().next().value',
  },
  {
    name: 'a read that fails because its generation was made anew fails for ever',
    inside: 'positionsChecked',
    find: 'if (before !== undefined && isOfAnother(error)) await',
    replace: 'if (before === undefined && isOfAnother(error)) await',
  },
  {
    name: 'the API serves indices whose ids nobody has recorded',
    inside: 'createCheckIndices',
    find: "if (body.indices === undefined) throw unavailable('indices_not_recorded')",
    replace: 'if (body.indices === undefined) return',
  },
  {
    name: 'a cached key is accepted although the check of its index is too old',
    inside: 'keysChecked',
    find: '    if (running === undefined) return keys.remembered(key)\n',
    replace: '    if (running !== null) return keys.remembered(key)\n',
  },
  {
    name: 'a request whose time is up waits on for the check of its indices',
    inside: 'waitFor',
    find: 'await waitOrAbort(running, signal)',
    replace: 'await (signal.aborted ? running : waitOrAbort(running, new AbortController().signal))',
  },
  {
    name: 'a key that was read before all keys were stored is not read again',
    inside: 'createApiKeyCache',
    find: 'isSame ? [documentBefore]',
    replace: 'isSame !== undefined ? [documentBefore]',
  },
  {
    name: 'after a restore the API serves a partition before it is read again',
    inside: 'asPosition',
    find: 'if (body.position < (body.serve_from ?? 0) || body.removing) throw',
    replace: 'if (body.removing) throw',
  },
  {
    name: 'the API reads a partition while documents that no log has are removed',
    inside: 'asPosition',
    find: ' || body.removing) throw',
    replace: ') throw',
  },
  {
    name: 'a projector opens a partition while documents that no log has are removed',
    inside: 'readStored',
    file: 'core/store/positions/publish.ts',
    find: '  if (body._source.body.removing) {\n',
    replace: '  if (body._source.body.removing && false) {\n',
  },
  {
    name: 'a key that was decided under version 1 of the rules is stored as under version 2',
    inside: 'assess',
    find: '(hasFirstKeyRules(source, record) ? firstKeyRules : table)',
    replace: 'table',
  },
  {
    name: 'version 1 of the rules for keys decides one record too many',
    inside: 'hasFirstKeyRules',
    find: "stream === 'api-keys' && offset < firstKeyRulesUntil",
    replace: "stream === 'api-keys' && offset <= firstKeyRulesUntil",
  },
  {
    name: 'the document of a dropped generation is written again with the ids of its indices',
    inside: 'record',
    file: 'core/store/generations/prepare.ts',
    find: '  if (found === undefined) throw generationMissing(generation, prefix)\n  const { body }',
    replace: '  if (found === undefined) return identity\n  const { body }',
  },
  {
    name: 'a swap that another process has finished stays a reason not to be ready',
    inside: 'finishInterruptedSwap',
    find: '    if (minPositions === null) await finishSwap(steps)\n',
    replace: '    if (minPositions !== null) return\n    await finishSwap(steps)\n',
  },
  {
    name: 'a rebuild ends when the ends of the log cannot be read once',
    inside: 'waitForCatchUp',
    find: 'await readEnds().catch(unlessUnavailable)',
    replace: 'await readEnds()',
  },
  {
    name: 'parked records of a shard that was not refreshed are not counted',
    inside: 'refreshParked',
    find: 'body?._shards?.failed !== 0',
    replace: 'body?._shards?.failed === null',
  },
  {
    name: 'a defect passes for a Kafka that does not answer',
    inside: 'watchEnds',
    find: 'if (!(error instanceof Unanswered)) return fail(error)',
    replace: 'if (error instanceof StopError) return fail(error)',
  },
]
