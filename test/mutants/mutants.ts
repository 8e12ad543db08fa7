// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands here is code as text
/**
 * Bugs that somebody could make: each takes a promise away, and some test must notice. They are never in the program;
 * the command `npm run mutants` plants one at a time in a copy of it.
 */

import { answerMutants } from './answer-mutants.ts'
import { apiMutants } from './api-mutants.ts'
import { commandMutants } from './command-mutants.ts'
import { controlMutants } from './control-mutants.ts'
import { generationMutants } from './generation-mutants.ts'
import { hostileMutants } from './hostile-mutants.ts'
import { limitMutants } from './limit-mutants.ts'
import { type Mutant, PROJECTED, WALKS } from './mutant.ts'
import { pairMutants } from './pair-mutants.ts'
import { sourceMutants } from './source-mutants.ts'

export const mutants: readonly Mutant[] = [
  // --- the order of the flow
  {
    name: 'Kafka is told before the bulk is answered',
    file: 'projector/flow/flow.ts',
    find: '    this.#written.push(written)\n',
    replace: '    this.#written.push(written)\n    this.#steps.commit(end)\n',
  },
  {
    name: 'a position is published before what was written is searchable',
    file: 'projector/flow/flow.ts',
    find: '      if (indices.length > 0) await this.#steps.refresh(',
    replace: '      if (indices.length > 0) void this.#steps.refresh(',
  },
  {
    name: 'a position is published before the write is acknowledged',
    file: 'projector/flow/flow.ts',
    find: '      await first.done\n      const unfinished = this.#written.findIndex(({ isDone }) => !isDone)',
    replace: '      const unfinished = -1 as number',
  },
  {
    name: 'a batch that was fetched elsewhere is taken',
    file: 'projector/flow/flow.ts',
    find: '    if (this.#closed || batch.from !== this.#readTo) return',
    replace: '    if (this.#closed) return',
  },
  {
    name: 'what comes while much is in flight is dropped, and the batch resolved',
    file: 'projector/flow/flow.ts',
    find: '    this.#read.add(batch)\n',
    replace: "    if (this.#unfinished().length > 1) return 'taken'\n    this.#read.add(batch)\n",
  },
  {
    name: 'a closed partition goes on publishing',
    file: 'projector/flow/flow.ts',
    find: '      if (this.#closed) break\n      // What comes next',
    replace: '      // What comes next',
  },
  {
    name: 'a position names the last record of the position before it that is published already',
    file: 'projector/flow/flow.ts',
    find: '?.last ?? this.#lastWritten\n',
    replace: '?.last ?? this.#steps.published.current().last\n',
  },
  {
    name: 'all that go together get the answer of the first',
    file: 'projector/elasticsearch/batch-requests.ts',
    find: 'const answer = answers[place]',
    replace: 'const answer = answers[0]',
  },
  {
    name: 'the part of a batch that was not loaded is forgotten',
    file: 'projector/flow/flow.ts',
    find: 'for (const later of [undecided, rest]) this',
    replace: 'for (const later of [undecided]) this',
  },

  // --- writing
  {
    name: 'errors of single items are ignored',
    file: 'projector/flow/write.ts',
    find: "      return 'retry'",
    replace: "      return 'written'",
  },
  {
    name: 'every 409 is taken for success',
    file: 'projector/flow/write.ts',
    find: '  const yetToHappen = await compare(stale, steps)',
    replace: '  const yetToHappen: Write[] = []',
  },
  {
    name: 'other content under the same version is taken for the same',
    file: 'projector/flow/write.ts',
    find: '!isSameDocument(stored._source, sourceOf(item))',
    replace: 'stored._source === undefined && !isDeepStrictEqual(1, 1)',
  },
  {
    name: 'with what is sent again goes all that lies between',
    file: 'projector/flow/write.ts',
    find: '  if (first && last && inOneGo) return',
    replace: '  if (first && last && (inOneGo || first.from < last.to)) return',
  },
  {
    name: 'documents are written without their version',
    file: 'projector/flow/serialize.ts',
    find: `,"version":\${version},"version_type":"external"}}`,
    replace: '}}${version < 0 ? 0 : ""}',
  },
  {
    name: 'an answer of the right length is taken for one that all is written',
    file: 'projector/elasticsearch/bulk-responses.ts',
    find: '    return this.text.replaceAll(REPLACED, CREATED) === `${expected}]}`',
    replace: '    return this.text.length === expected.length + 2',
  },
  {
    name: 'answers are believed without looking whose they are',
    file: 'projector/flow/write.ts',
    find: "    if (_index !== index || _id !== id || typeof status !== 'number') {",
    replace: "    if (typeof status !== 'number') {",
  },

  // --- refresh and position
  {
    name: 'a refresh that failed on a shard counts',
    file: 'projector/flow/refresh.ts',
    find: '  if (status !== 200 || failed !== 0) throw new Unavailable(status === 200 ? 503 : status)',
    replace: '  if (status !== 200 || failed === undefined) throw new Unavailable(status)\n  if (failed !== 0) return',
  },
  {
    name: 'a refresh that began before the write was acknowledged counts',
    file: 'projector/flow/refresh.ts',
    find: '    next = undefined\n    lastBegan = steps.now()\n    await steps.keepTrying(() => refreshOnce([...round().indices].sort(), steps.send))',
    replace:
      '    lastBegan = steps.now()\n    await steps.keepTrying(() => refreshOnce([...round().indices].sort(), steps.send))\n    next = undefined',
  },
  {
    name: 'a position goes back where another owner was further',
    file: 'projector/flow/publish.ts',
    find: '  const further = b.position > a.position ? b : a',
    replace: '  const further = b',
  },
  {
    name: 'a position is written whatever it is now',
    file: 'projector/flow/publish.ts',
    find: '        query: { if_seq_no: stored.seqNo, if_primary_term: stored.primaryTerm },\n',
    replace: '',
  },
  {
    name: 'a time is claimed that was not reached',
    file: 'projector/flow/included-time.ts',
    find: '    const reached = this.#seen.findLast(({ end }) => end <= position)',
    replace: '    const reached = this.#seen.at(-1)',
  },

  // --- deciding
  {
    name: 'chains are read as they are, not as of the offset',
    file: 'projector/rules/state.ts',
    find: '  return last === undefined || last.seq < seq ? items : items.filter(item => item.seq < seq)',
    replace: '  return last === undefined || last.seq < 0 ? [] : items',
  },
  {
    name: 'records are read as they are, not as of the offset',
    file: 'projector/rules/state.ts',
    find: '  record !== null && record.seq < seq ? record : null',
    replace: '  record !== null && record.seq !== seq ? record : null',
  },
  {
    name: 'what was decided and is not yet written is not seen by the next batch',
    file: 'projector/flow/cache.ts',
    find: '      shelf.add(key, shelf === this.#lines ? this.#slabs.add(line) : draft)\n',
    replace: '',
  },
  {
    name: 'a payout that is read by its text may have a line twice',
    file: 'projector/event/fast-payout.ts',
    find: '  return ids.size === amounts.length ? end : undefined',
    replace: '  return end',
  },
  {
    name: 'what was not seen is taken for absent also where the partition was not read from its beginning',
    file: 'projector/flow/flow.ts',
    find: 'new Cache(position === 0)',
    replace: 'new Cache(position >= 0)',
  },
  {
    name: 'the replaced payout stays current one record too long',
    file: 'projector/rules/payouts.ts',
    find: '{ ...replaced, until_seq: seq, superseded_by_id: data.id }',
    replace: '{ ...replaced, until_seq: seq + 1, superseded_by_id: data.id }',
    flow: WALKS,
  },
  {
    name: 'the replaced payout is forgotten',
    file: 'projector/rules/payouts.ts',
    find: '  if (names.replaced) {',
    replace: '  if (names.replaced && seq < 0) {',
  },
  {
    name: 'a payout may fork its chain',
    file: 'projector/rules/payouts.ts',
    find: "  if (data.supersedes_id !== current) return parked('supersedes_mismatch')",
    replace: "  if (data.supersedes_id === null && current !== null) return parked('supersedes_mismatch')",
  },
  {
    name: 'an event of an unknown type is passed over',
    file: 'projector/flow/project.ts',
    find: "  if (rules === undefined) return { outcome: 'parked', code: verdict }",
    replace:
      "  if (verdict === 'type_unknown') return { outcome: 'duplicate' }\n  if (rules === undefined) return { outcome: 'parked', code: verdict }",
  },
  {
    name: 'money goes through a number',
    file: 'projector/rules/payouts.ts',
    find: '    net_amount: data.net_amount,',
    replace: '    net_amount: String(Number(data.net_amount)),',
    flow: 'test/flow/money.test.ts',
  },
  {
    name: 'lines are added up in floating point',
    file: 'projector/event/validate.ts',
    find: '!addUpTo(amounts, event.data.net_amount)',
    replace:
      "(addUpTo([], '1') || amounts.reduce((sum, amount) => sum + Number(amount), 0) !== Number(event.data.net_amount))",
  },
  {
    name: 'the key of a record may be of another organization',
    file: 'projector/event/validate.ts',
    find: "  if (record.key?.toString('latin1') !== event.data.org_id)",
    replace: '  if (record.key === null)',
  },

  // --- source
  {
    name: 'reading begins where Kafka was told, not where was published',
    file: 'projector/stream/assign.ts',
    find: '    this.#seek(partition, assigned.last?.offset ?? flow.progress.readTo)\n',
    replace: '',
    flow: PROJECTED,
  },
  {
    name: 'what is there before the first reading is left out',
    file: 'projector/stream/consume.ts',
    find: 'fromBeginning: true',
    replace: 'fromBeginning: false',
  },
  {
    name: 'the last record is not compared with the one that was read',
    file: 'projector/stream/assign.ts',
    find: 'record?.offset !== last.offset || hashOf(record) !== last.sha256',
    replace: 'record?.offset !== last.offset || hashOf(record) === undefined',
  },
  {
    name: 'another source is projected on',
    file: 'projector/kafka/source.ts',
    find: '    if (expected[field] === got[field]) continue',
    replace: '    if (expected[field] === got[field] || got) continue',
  },
  {
    name: 'the error of Elasticsearch is shown in the log',
    file: 'projector/flow/write.ts',
    find: "    throw new StopError('write_refused', `status ${status}, ${type ?? 'no type'}`, { index })",
    replace: "    throw new StopError('write_refused', `status ${status}, ${JSON.stringify(item)}`, { index })",
  },

  ...sourceMutants,
  ...apiMutants,
  ...answerMutants,
  ...controlMutants,
  ...generationMutants,
  ...hostileMutants,
  ...limitMutants,
  ...pairMutants,
  ...commandMutants,
]
