// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in rebuild, comparison and swap of generations: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const GENERATIONS = 'test/flow/projection.long.test.ts'
const CHANGE = 'test/flow/change-of-rules.long.test.ts'
const COPIES = 'test/simulation/copies.test.ts'
const SCHEDULES = 'test/simulation/first-half.test.ts'

export const generationMutants: readonly Mutant[] = [
  {
    name: 'an index that somebody hid is not of its generation',
    inside: 'readIndexNames',
    find: "{ expand_wildcards: 'all' }",
    replace: '{}',
    flow: 'test/flow/start.test.ts',
  },
  {
    name: 'a generation under other rules decides alone from the beginning',
    inside: 'createFollow',
    find: '  if (follows === undefined) return undefined\n',
    replace: '  if (follows === undefined || follows !== undefined) return undefined\n',
    flow: CHANGE,
  },
  {
    name: 'a generation under other rules does not wait for the one it follows',
    inside: 'createFollow',
    find: '    if (!isIndependent() && firstUndecidable() < batch.end) await waitUntilDecided(batch)\n',
    replace: '    if (!isIndependent() && firstUndecidable() < 0) await waitUntilDecided(batch)\n',
    flow: CHANGE,
  },
  {
    name: 'a generation decides past the position of the one it follows',
    inside: 'createFollow',
    find: 'const decidableTo = isIndependent() ? batch.end : Math.min(firstUndecidable(), batch.end)',
    replace: 'const decidableTo = batch.end',
  },
  {
    name: 'records that the followed generation parks after the swap are still taken over',
    inside: 'createFollow',
    find: '    const parkedTo = independentFrom ?? decidableTo\n',
    replace: '    const parkedTo = decidableTo\n',
  },
  {
    name: 'a generation waits for a whole batch although the one it follows stopped in the middle',
    inside: 'createFollow',
    find: '  const waitUntilDecided = ({ from }: Batch): Promise<void> =>\n',
    replace: '  const waitUntilDecided = ({ end: from }: Batch): Promise<void> =>\n',
  },
  {
    name: 'the undecided part of a batch that was cut is lost',
    inside: 'decideBatch',
    find: 'rest: [notFollowed, notLoaded]',
    replace: 'rest: [notLoaded]',
  },
  {
    name: 'the position of the followed generation is read after the live document',
    inside: 'createFollow',
    find: '    const [position] = await getDocuments<PositionDocument>([controlAddress(prefix, positionId(follows, partition))])\n    const [live] = await getDocuments<LiveDocument>([controlAddress(prefix, LIVE_ID)])\n',
    replace:
      '    const [live] = await getDocuments<LiveDocument>([controlAddress(prefix, LIVE_ID)])\n    const [position] = await getDocuments<PositionDocument>([controlAddress(prefix, positionId(follows, partition))])\n',
  },
  {
    name: 'a generation trusts the parked records of the one it follows although that lost a shard',
    inside: 'createFollow',
    find: 'if (!isChecked || followed._source.body.lost !== undefined)',
    replace: 'if (!isChecked)',
  },
  {
    name: 'a generation trusts the parked records of the one it follows while they are removed',
    inside: 'createFollow',
    find: 'return removing ? 0 : published',
    replace: 'return published',
  },
  {
    name: 'a decision rests on a document that any copy answered',
    inside: 'getFromPrimaries',
    find: '    const bulk = linesOf(part)\n',
    replace:
      "    if (part.length > 0) return (await import('./client.ts')).multiGet<Source>(send, part, signal)\n    const bulk = linesOf(part)\n",
    flow: SCHEDULES,
  },
  {
    name: 'the positions that readers may have seen before a swap are read from any copy',
    inside: 'readPositions',
    file: 'core/store/generations/generations.ts',
    find: 'part => getFromPrimaries<PositionDocument>(request, part)',
    replace: "async part => (await import('../elasticsearch/client.ts')).multiGet<PositionDocument>(request, part)",
    flow: SCHEDULES,
  },
  {
    name: 'the receipt of a record rests on a parked record that any copy answered',
    inside: 'createReceiptReader',
    find: 'await getFromPrimaries<Pick<ParkedDocument',
    replace: "await (await import('../elasticsearch/client.ts')).multiGet<Pick<ParkedDocument",
  },
  {
    name: 'the receipt of a record rests on an index that was replaced, or lost documents',
    inside: 'createReceiptReader',
    find: '      if (!intact.has(location.stream)) return NOT_SERVED\n',
    replace: '',
  },
  {
    name: 'the ids of the indices are read before the parked records of a receipt',
    inside: 'createReceiptReader',
    find: '    const found = docs.length === 0',
    replace: '    await isIntact(live, signal)\n    const found = docs.length === 0',
  },
  {
    name: 'the receipt of a run rests on an index that was replaced, or lost documents',
    inside: 'createRunReader',
    find: 'if (end > run.from && !(await isIntact(identityOf(run.stream), signal))) return',
    replace: 'if (end > run.from && !(await isIntact(identityOf(run.stream), signal)) && run.from < 0) return',
  },
  {
    name: 'a receipt rests on a position whose documents are removed or read again',
    inside: 'getLivePositions',
    find: ' || !isServed(position.body)',
    replace: '',
  },
  {
    name: 'the positions from which a generation decides alone are overwritten by each swap',
    inside: 'finishSwap',
    find: 'independentFrom: { [now.live]: reached, ...now.independentFrom }',
    replace: 'independentFrom: { ...now.independentFrom, [now.live]: reached }',
  },
  {
    name: 'a record that the followed generation parked is assessed by the own rules',
    inside: 'parkAsFollowed',
    find: "  if (code === undefined || 'skipped' in assessed) return assessed\n",
    replace:
      "  if (code === undefined || 'skipped' in assessed || typeof assessed.verdict !== 'string') return assessed\n",
    flow: CHANGE,
  },
  {
    name: 'a rebuild beside a generation that follows another one follows none',
    inside: 'followedBy',
    find: 'live.rules_version === rulesVersion && live.follows === undefined ? undefined',
    replace: 'live.rules_version === rulesVersion ? undefined',
    flow: CHANGE,
  },
  {
    name: 'a rollback does not check for parked records that the other generation applied',
    inside: 'refuseUnparked',
    find: '  if (count === 0) return { to, undecided }\n',
    replace: '  if (count >= 0) return { to, undecided }\n',
    flow: CHANGE,
  },
  {
    name: 'an API process serves a new generation below the position that another process has shown',
    inside: 'minPositionOf',
    find: 'minPositions === null ? Number.POSITIVE_INFINITY : (',
    replace: 'minPositions === null ? 0 : (',
  },
  {
    name: 'a swap does not wait until the new generation has caught up',
    inside: 'waitUntilReached',
    find: '    if (lag === 0) return\n',
    replace: '    if (lag >= 0) return\n',
    flow: GENERATIONS,
  },
  {
    name: 'a generation is made live without a comparison',
    inside: 'assertComparedEqual',
    find: '  if (note === undefined) {',
    replace: '  if (note === null) {',
    flow: GENERATIONS,
  },
  {
    name: 'after a swap the previous generation is not kept up',
    inside: 'makeLive',
    find: '    return { ...now, live: generation, previous: before, minPositions: null }\n',
    replace: '    return { ...now, live: generation, active: [generation], previous: before, minPositions: null }\n',
    flow: GENERATIONS,
  },
  {
    name: 'the live generation can be dropped',
    inside: 'removeName',
    find: '    if (seen.live === generation) throw new CommandError(`${generation} is live: it cannot be dropped`)\n',
    replace: '',
    flow: GENERATIONS,
  },
  {
    name: 'generations are compared by the ids of their documents only',
    inside: 'documentHash',
    find: '.update(`${kind}\\n${id}\\n${JSON.stringify(content)}`)',
    replace: '.update(`${kind}\\n${id}`)',
    flow: GENERATIONS,
  },
  {
    name: 'a projector does not finish a swap that was interrupted',
    inside: 'createOpenActive',
    find: '    await finishInterruptedSwap(generations, steps, health)\n',
    replace: '',
  },
  {
    name: 'the live document is read before the position',
    inside: 'createPositionReader',
    find: '    const each = await read([...ids.map(control), ...names], reading)\n',
    replace:
      '    const [liveFirst, ...rest] = await read([...names.slice(0, 1), ...ids.map(control), ...names.slice(1)], reading)\n    const each = names.length === 0 ? [liveFirst, ...rest] : [...rest.slice(0, ids.length), liveFirst, ...rest.slice(ids.length)]\n',
  },
  {
    name: 'events after the start of a comparison count as differences',
    inside: 'asOf',
    file: 'tools/documents/as-of.ts',
    find: "  const current = { until_seq: UNTIL_FOREVER, ...('superseded_by_id' in fields && { superseded_by_id: null }) }\n",
    replace: '  const current = {}\n',
  },
  {
    name: 'a rebuild that was stopped starts another generation instead of its own',
    inside: 'rebuild',
    find: 'isNew = before.building === null',
    replace: 'isNew = true',
    flow: GENERATIONS,
  },
  {
    name: 'rewind takes positions that are younger than the begin of the snapshot',
    inside: 'restartBefore',
    find: 'snapshotStart - REWIND_MARGIN_MS',
    replace: 'snapshotStart + 10 * REWIND_MARGIN_MS',
    flow: COPIES,
  },
  {
    name: 'no past positions are kept',
    inside: 'keepPositionsOf',
    find: '    if (isOurs() && elapsed() - keptAt >= KEEP_POSITIONS_MS) {\n',
    replace: '    if (isOurs() && elapsed() - keptAt < 0) {\n',
    flow: COPIES,
  },
  {
    name: 'rewind takes positions of indices that a restore has replaced since',
    inside: 'readPastPositions',
    find: 'time <= until && of === copy',
    replace: 'time <= until && of !== undefined',
  },
  {
    name: 'past positions are kept of a restored control index',
    inside: 'keepPositions',
    find: '  await assertSameIndices(identity, { request: send, prefix })\n',
    replace: '',
  },
  {
    name: 'past positions are dated before they are read',
    inside: 'keepPositions',
    find: '  const partitions = await readPositions(identity, { send, prefix })\n',
    replace:
      '  await readElasticsearchClock(send)\n  const partitions = await readPositions(identity, { send, prefix })\n',
  },
  {
    name: 'a rollback does not compare the sources',
    inside: 'makeLive',
    find: '  assertOfOneSource(identity, liveIdentity)\n',
    replace: '',
  },
  {
    name: 'rewind goes back to records that a dropped generation decided',
    inside: 'refuseWithoutFollowed',
    find: '(positions?.[partition]?.position ?? 0) < (alone?.[partition] ?? Number.POSITIVE_INFINITY)',
    replace: '(positions?.[partition]?.position ?? 0) < (alone?.[partition] ?? 0) - 2',
  },
  {
    name: 'adopt decides anew what a dropped generation parked',
    inside: 'refuseWithoutFollowed',
    find: '  if (early === undefined) {\n',
    replace: '  if (early === undefined || positions === undefined) {\n',
  },
  {
    name: 'rewind serves readers before the positions that they saw',
    inside: 'readAgain',
    find: 'const serve_from = Math.max(end, seen)',
    replace: 'const serve_from = from.position',
  },
  {
    name: 'an interrupted adopt that is repeated serves readers before the positions that they saw',
    inside: 'readAgain',
    find: 'generation === API_KEYS_GENERATION ? 0 : (before.serve_from ?? 0)',
    replace: '0',
  },
  {
    name: 'adopt does not name a partition that waits for more records than its topic has',
    inside: 'sayWaits',
    find: 'end < (position.serve_from ?? 0)',
    replace: 'end < position.position',
  },
  {
    name: 'after adopt, rewind goes back to positions from before it',
    inside: 'takeOver',
    find: '    await forgetPastPositions(identity.generation, context, restart.time)\n',
    replace: '',
  },
  {
    name: 'a rewind forgets the positions to which it goes back, and cannot be repeated',
    inside: 'takeOver',
    find: 'forgetPastPositions(identity.generation, context, restart.time)',
    replace: 'forgetPastPositions(identity.generation, context)',
  },
  {
    name: 'rewind goes back less far than a command before it',
    inside: 'refuseAboveStored',
    find: 'if (past <= position) continue',
    replace: 'if (past >= 0) continue',
  },
  {
    name: 'a follower is taken over before the generation that it follows',
    inside: 'takeOver',
    find: ' of followedFirst(replaced)',
    replace: ' of replaced',
  },
  {
    name: 'balances that were counted while documents were missing stay after adopt',
    inside: 'takeOver',
    find: '    await removeBalances(identity, starts, context)\n',
    replace: '',
  },
  {
    name: 'adopt does not say that keys are decided under version 1 of their rules again',
    inside: 'takeOver',
    find: 'identity.rules_version < KEY_RULES_VERSION',
    replace: 'identity.rules_version > KEY_RULES_VERSION',
  },
  {
    name: 'a wrong balance of an organization without records is not named',
    inside: 'verify',
    find: ' && wrong.length === 0)',
    replace: ')',
    flow: 'test/flow/one-organization.long.test.ts',
  },
]
