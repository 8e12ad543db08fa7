// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/**
 * Planted bugs: each breaks a promise, and a test must notice it. `npm run mutants` plants them in a copy. A bug hangs
 * on a named place (`places.ts`), so it moves with its function.
 */

import { agentMutants } from './agent-mutants.ts'
import { answerMutants } from './answer-mutants.ts'
import { apiMutants } from './api-mutants.ts'
import { archiveMutants } from './archive-mutants.ts'
import { auditMutants } from './audit-mutants.ts'
import { balanceMutants } from './balance-mutants.ts'
import { checkpointMutants } from './checkpoint-mutants.ts'
import { commandMutants } from './command-mutants.ts'
import { controlMutants } from './control-mutants.ts'
import { dealMutants } from './deal-mutants.ts'
import { evidenceMutants } from './evidence-mutants.ts'
import { explorerMutants } from './explorer-mutants.ts'
import { generationMutants } from './generation-mutants.ts'
import { growMutants } from './grow-mutants.ts'
import { hostileMutants } from './hostile-mutants.ts'
import { kafkaMutants } from './kafka-mutants.ts'
import { layoutMutants } from './layout-mutants.ts'
import { limitMutants } from './limit-mutants.ts'
import { logMutants } from './log-mutants.ts'
import { modelMutants } from './model-mutants.ts'
import { type Mutant, PROJECTED, WALKS } from './mutant.ts'
import { pairMutants } from './pair-mutants.ts'
import { partMutants } from './part-mutants.ts'
import { raceMutants } from './race-mutants.ts'
import { sealedMutants } from './sealed-mutants.ts'
import { sourceMutants } from './source-mutants.ts'
import { statusMutants } from './status-mutants.ts'
import { wordsMutants } from './words-mutants.ts'

export const mutants: readonly Mutant[] = [
  // --- the order of the flow
  {
    name: 'the offset is committed to Kafka before the bulk request is answered',
    inside: 'PartitionFlow.#decideAll',
    find: '      this.#inOrder.push(write, done, this.#untilSearchable(write, done))\n',
    replace:
      '      this.#inOrder.push(write, done, this.#untilSearchable(write, done))\n      void this.#parts.stream.commit(write.end)\n',
  },
  {
    name: 'a position is published before its documents are searchable',
    inside: 'PartitionFlow.#untilSearchable',
    find: '      await store.refresh(',
    replace: '      void store.refresh(',
  },
  {
    name: 'a position is published before the write is acknowledged',
    inside: 'InOrder.takeSearchable',
    find: 'const other = this.#writes.findIndex(({ write }) => !write.isSearchable)',
    replace: 'const other = -1 as number',
  },
  {
    name: 'a batch that does not start at the read position is accepted',
    inside: 'PartitionFlow.take',
    find: '    if (this.#closed || batch.from !== this.#readTo) return',
    replace: '    if (this.#closed) return',
  },
  {
    name: 'a batch that arrives while many are in flight is dropped and resolved',
    inside: 'PartitionFlow.take',
    find: '    this.#queue.add(batch)\n',
    replace: "    if (this.#inOrder.firstUnwrittenOf(2)) return 'taken'\n    this.#queue.add(batch)\n",
  },
  {
    name: 'a batch that is written last delays its refresh as if the batches behind it were not written',
    inside: 'PartitionFlow.#untilSearchable',
    find: 'Math.max(write.end, this.#inOrder.writtenTo)',
    replace: 'write.end',
  },
  {
    name: 'the rate of catching up is that since the partition began to work',
    inside: 'PartitionFlow.#publishAll',
    find: '      this.#catchUp.reach(group.end)\n',
    replace: '',
  },
  {
    name: 'a batch waits until the batches before it are searchable',
    inside: 'PartitionFlow.#untilSearchable',
    find: '      await written\n',
    replace: '      await written\n      await this.#publishing\n',
  },
  {
    name: 'a closed partition continues to publish',
    inside: 'InOrder.takeSearchable',
    find: 'if (end === undefined || this.#closed) return undefined',
    replace: 'if (end === undefined) return undefined',
  },
  {
    name: 'a position without records names the last record of the published position, not the last written one',
    inside: 'PartitionFlow.#positionAfter',
    find: 'group.last ?? this.#lastWritten\n',
    replace: 'group.last ?? this.#parts.store.published.current()\n',
  },
  {
    name: 'all requests of one round trip get the answer of the first request',
    inside: 'createBatcher',
    find: 'const answer = answers[index]',
    replace: 'const answer = answers[0]',
  },
  {
    name: 'a write that comes while the writes before it wait for a refresh goes one request later',
    inside: 'createBatcher',
    find: '      if (ready !== undefined) await ready()\n      await sendGroup(take())\n',
    replace: '      const group = take()\n      if (ready !== undefined) await ready()\n      await sendGroup(group)\n',
  },
  {
    name: 'the part of a batch that was not loaded is forgotten',
    inside: 'decideBatch',
    find: 'rest: [notFollowed, notLoaded]',
    replace: 'rest: [notFollowed]',
  },

  // --- writing
  {
    name: 'errors of single items are ignored',
    inside: 'itemOutcomes',
    find: "      return status === ELASTICSEARCH_OVERLOADED ? 'too much' : 'retry'",
    replace: "      return 'written'",
  },
  {
    name: 'every 409 counts as success',
    inside: 'writeOnce',
    find: '  const notStored = await findNotStored(conflicts, steps)',
    replace: '  const notStored: PackedDocument[] = []',
  },
  {
    name: 'different content under the same version counts as the same document',
    inside: 'findNotStored',
    find: '!isSameDocument(stored._source, sourceOf(item))',
    replace: 'stored._source === undefined && !isDeepStrictEqual(1, 1)',
  },
  {
    name: 'a document that a pipeline dropped counts as written',
    inside: 'assertNoPipeline',
    find: "if (result === 'noop') throw",
    replace: "if (result === 'none') throw",
  },
  {
    name: 'a document that went through a pipeline counts as written',
    inside: 'assertNoPipeline',
    find: 'if (Array.isArray(ran) && ran.length > 0) throw',
    replace: 'if (Array.isArray(ran) && ran.length > 99) throw',
    flow: 'test/flow/written-by-others.test.ts',
  },
  {
    name: 'mappings and settings of indices are checked at a start only',
    inside: 'watchIndices',
    find: 'for (const [name, definition] of definitions) tellNew(name, await keepSafe(name, definition, request, tell))',
    replace: 'if (definitions.length === 0) tellNew(prefix, await keepSafe(prefix, controlled, request, tell))',
    flow: 'test/flow/written-by-others.test.ts',
  },
  {
    name: 'a later version counts as a later state also without our change',
    inside: 'findNotStored',
    find: 'lastOffsetIn(stored._source) < item.version',
    replace: 'lastOffsetIn(stored._source) < 0',
    flow: 'test/flow/written-by-others.test.ts',
  },
  {
    name: 'a retry also sends the documents between the refused ones',
    inside: 'linesOf',
    file: 'core/store/documents/documents.ts',
    find: '  if (first && last && inOneGo) return',
    replace: '  if (first && last && (inOneGo || first.from < last.to)) return',
  },
  {
    name: 'documents are written without their version',
    inside: 'pack',
    find: `"version":\${version},"version_type":"external"\``,
    replace: '"require_alias":${version < 0}`',
  },
  {
    name: 'a bulk response with the expected number of items counts as success of all',
    inside: 'writeOnce',
    find: '  const outcomes = itemOutcomes(writes, body, steps)',
    replace: "  const outcomes: readonly Outcome[] = itemOutcomes(writes, body, steps).map(() => 'written')",
  },
  {
    name: 'an item of a bulk response is accepted without a check of its index and id',
    inside: 'itemOutcomes',
    find: "    if (_index !== index || _id !== id || typeof status !== 'number') {",
    replace: "    if (typeof status !== 'number') {",
  },

  // --- refresh and position
  {
    name: 'a refresh that failed on a shard counts as success',
    inside: 'refreshOnce',
    find: "  if (status !== 200 || failed !== 0) throw new Unanswered('elasticsearch', status === 200 ? 503 : status)",
    replace:
      "  if (status !== 200 || failed === undefined) throw new Unanswered('elasticsearch', status)\n  if (failed !== 0) return",
  },
  {
    name: 'a refresh that began before the write was acknowledged makes the write searchable',
    inside: 'createRefresh',
    find: "newest?.state.name === 'gathering'",
    replace: "newest?.state.name !== 'ended'",
  },
  {
    name: 'a position goes back when another owner was ahead',
    inside: 'mergePositions',
    find: '  const further = wanted.position > known.position ? wanted : known',
    replace: '  const further = wanted',
  },
  {
    name: 'a position is written without a check of its seq_no',
    inside: 'openPublishedPosition',
    find: '        query: ifVersion(stored.version),\n',
    replace: '',
  },
  {
    name: 'a position claims a time that it has not reached',
    inside: 'IncludedTime.reachedAt',
    find: '    const reached = this.#seen.findLast(({ end }) => end <= position)',
    replace: '    const reached = this.#seen.at(-1)',
  },

  // --- deciding
  {
    name: 'chains are read in their latest state, not as of the offset',
    inside: 'before',
    find: '  return last === undefined || last.seq < seq ? items : items.filter(item => item.seq < seq)',
    replace: '  return last === undefined || last.seq < 0 ? [] : items',
  },
  {
    name: 'records are read in their latest state, not as of the offset',
    inside: 'recordBefore',
    find: '  record !== null && record.seq < seq ? record : null',
    replace: '  record !== null && record.seq !== seq ? record : null',
  },
  {
    name: 'the next batch does not see decisions that are not yet written',
    inside: 'Cache.addDecided',
    find: '      const kept = recent.add(key, recent === this.#heads ? draft : line)\n',
    replace: '      const kept = draft\n',
  },
  {
    name: 'a replaced payout leaves the cache before its write is acknowledged',
    inside: 'Cache.addDecided',
    find: '      if (isReplaced(draft)) replaced.push({ key, kept })\n',
    replace: '      if (isReplaced(draft)) this.#lines.remove(key, kept)\n',
  },
  {
    name: 'an acknowledgement removes a payout that was decided again since',
    inside: 'RecentDocuments.remove',
    find: '    for (const half of [this.#young, this.#old]) if (half.documents.get(key) === kept) half.remove(key)',
    replace: '    for (const half of [this.#young, this.#old]) if (kept) half.remove(key)',
  },
  {
    name: 'the fast parser of payouts accepts two lines with the same id',
    inside: 'readLines',
    find: '  return ids.size === amounts.length ? end : undefined',
    replace: '  return end',
  },
  {
    name: 'the key filter forgets its keys when it grows',
    inside: 'KeyFilter.#layerWithRoom',
    find: '      this.#layers.unshift(new Uint32Array(next.bits / 32))',
    replace: '      this.#layers.splice(0, 1, new Uint32Array(next.bits / 32))',
  },
  {
    name: 'each further partition takes more memory',
    inside: 'shareOf',
    find: 'PARTITIONS_OF_FULL_SIZE / partitions)',
    replace: 'PARTITIONS_OF_FULL_SIZE)',
  },
  {
    name: 'a record that is not in the cache counts as absent even when the partition was not read from offset 0',
    inside: 'PartitionLedger.constructor',
    find: 'fromFirstRecord: parts.from === 0',
    replace: 'fromFirstRecord: parts.from >= 0',
  },
  {
    name: 'the replaced payout stays current one record too long',
    inside: 'decidePayout',
    find: '{ ...replaced, until_seq: seq, superseded_by_id: data.id }',
    replace: '{ ...replaced, until_seq: seq + 1, superseded_by_id: data.id }',
    flow: WALKS,
  },
  {
    name: 'the replaced payout is not updated',
    inside: 'decidePayout',
    find: '  if (reads.replaced) {',
    replace: '  if (reads.replaced && seq < 0) {',
  },
  {
    name: 'a payout may fork its chain',
    inside: 'decidePayout',
    find: "  if (data.supersedes_id !== current) return parked('supersedes_mismatch')",
    replace: "  if (data.supersedes_id === null && current !== null) return parked('supersedes_mismatch')",
  },
  {
    name: 'an event of an unknown type counts as a duplicate',
    inside: 'decisionOn',
    find: "  if (rules === undefined) return { outcome: 'parked', code: verdict }",
    replace:
      "  if (verdict === 'type_unknown') return { outcome: 'duplicate' }\n  if (rules === undefined) return { outcome: 'parked', code: verdict }",
  },
  {
    name: 'the highest time of a batch is that of all its records',
    inside: 'project',
    find: '    const at = timeOfRecord(item.record)\n',
    replace: '    const at = Math.max(...assessed.map(({ record }) => timeOfRecord(record)))\n',
    flow: 'test/flow/strangers-times.test.ts',
  },
  {
    name: 'an amount is converted to a number and back',
    inside: 'payoutDraft',
    find: '    net_amount: data.net_amount,',
    replace: '    net_amount: String(Number(data.net_amount)),',
    flow: 'test/flow/money.test.ts',
  },
  {
    name: 'lines are added up in floating point',
    inside: 'validate',
    find: '!addUpTo(amounts, event.data.net_amount)',
    replace:
      "(addUpTo([], '1') || amounts.reduce((sum, amount) => sum + Number(amount), 0) !== Number(event.data.net_amount))",
  },
  {
    name: 'the key of a record may name another organization',
    inside: 'validate',
    find: "  if (record.key?.toString('latin1') !== event.data.org_id)",
    replace: '  if (record.key === null)',
  },

  // --- source
  {
    name: 'reading begins at the committed offset, not at the published position',
    inside: 'Assignment.#enter',
    find: "if (state.name === 'verifying' || state.name === 'reading') this.#seek",
    replace: "if (state.name === 'reading' && state.last !== null) this.#seek",
    flow: PROJECTED,
  },
  {
    name: 'records from before the first start are skipped',
    inside: 'consume',
    find: 'fromBeginning: true',
    replace: 'fromBeginning: false',
  },
  {
    name: 'the hash of the last record that was read is not compared with the log',
    inside: 'isLastRecord',
    find: 'record?.offset === offset && recordHash(record) === sha256',
    replace: 'record?.offset === offset && recordHash(record) !== undefined',
  },
  {
    name: 'a projection continues from another source',
    inside: 'differingField',
    find: '    return expected[field] !== got[field]',
    replace: '    return expected[field] !== got[field] && !got',
  },
  {
    name: 'the log shows the text of an Elasticsearch error',
    inside: 'itemOutcomes',
    find: "    throw new StopError('write_refused', `status ${status}, ${type ?? 'no type'}`, { index })",
    replace: "    throw new StopError('write_refused', `status ${status}, ${JSON.stringify(item)}`, { index })",
  },

  ...sourceMutants,
  ...wordsMutants,
  ...sealedMutants,
  ...kafkaMutants,
  ...layoutMutants,
  ...apiMutants,
  ...answerMutants,
  ...auditMutants,
  ...balanceMutants,
  ...controlMutants,
  ...dealMutants,
  ...checkpointMutants,
  ...evidenceMutants,
  ...explorerMutants,
  ...agentMutants,
  ...statusMutants,
  ...generationMutants,
  ...growMutants,
  ...hostileMutants,
  ...limitMutants,
  ...logMutants,
  ...modelMutants,
  ...pairMutants,
  ...partMutants,
  ...raceMutants,
  ...commandMutants,
  ...archiveMutants,
]
