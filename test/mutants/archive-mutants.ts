/** Bugs in archives, restores and the adoption of another cluster: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const KILLED = 'test/flow/archive-killed.long.test.ts'
const RESTORED = 'test/flow/archive.test.ts'
const IN_S3 = 'test/flow/archive-s3.long.test.ts'
const REDACTED = 'test/flow/redacted-killed.long.test.ts'
const LEFT_OVER = 'test/flow/leftover-documents.long.test.ts'
const ADOPTED = 'test/flow/adopt-archive.long.test.ts'

export const archiveMutants: readonly Mutant[] = [
  {
    name: 'a batch that was appended twice, because an answer was lost, counts as one with other times',
    inside: 'keepsTimes',
    find: ' || appended?.logAppendTime === String(latestOf(records))',
    replace: '',
    flow: 'test/flow/restored-times.long.test.ts',
  },
  {
    name: 'an archive may have streams of two installations',
    inside: 'readManifests',
    find: '    requireOneInstallation(target, manifests)\n',
    replace: '',
  },
  {
    name: 'an archive goes on beside a stream of another installation',
    inside: 'archive',
    find: '  for (const target of targets) await readManifests(target)\n',
    replace: '',
  },
  {
    name: 'an archive does not compare the topic id',
    inside: 'assertSameLog',
    find: '  if (field === undefined) return\n',
    replace: "  if (field === undefined || field === 'topic_id') return\n",
  },
  {
    name: 'an archive compares the last record of a partition when it comes to it',
    inside: 'verifyTopics',
    find: '  for (const one of all) await verifyRecords(one, waits)\n',
    replace: '',
  },
  {
    name: 'an archive that follows does not see that the topic was made anew',
    inside: 'copyLogs',
    find: '          if ((entries.at(-1)?.offset ?? 0) >= position) await verifyTopic(one, waits)\n',
    replace: '',
  },
  {
    name: 'an archive that was killed continues one offset too late',
    inside: 'openTopicArchive',
    find: 'readFrom: partition => Math.max(0, partOf(partition).position - 1)',
    replace: 'readFrom: partition => partOf(partition).position',
    flow: KILLED,
  },
  {
    name: 'the manifest names a segment before it is stored',
    inside: 'openTopicArchive',
    find: `    await target.create(segmentPath(stream, partition, from), bytes)
    const next = withSegment(manifest, archived, { end: position, records, sha256, digest })
    await assertHeld()
    await writeManifest(target, next)
`,
    replace: `    const next = withSegment(manifest, archived, { end: position, records, sha256, digest })
    await writeManifest(target, next)
    await target.create(segmentPath(stream, partition, from), bytes)
`,
  },
  {
    name: 'a segment that a killed run has stored is left alone',
    inside: 'takeInStored',
    find: '  if ((await target.read(path)) === undefined) return manifest\n',
    replace: '  if ((await target.read(path)) !== null) return manifest\n',
  },
  {
    name: 'of two runs that begin together both write into a bucket',
    inside: 'lockArchive',
    find: '  if (!(await write(encode(), present?.tag))) refuse(',
    replace: '  if (!(await write(encode(), present?.tag)) && beat < 0) refuse(',
    flow: IN_S3,
  },
  {
    name: 'an object that another run has written is taken for ours',
    inside: 's3Target',
    find: '      if (!found?.bytes.equals(bytes)) throw',
    replace: '      if (found === undefined) throw',
  },
  {
    name: 'a list of a bucket ends after its first page',
    inside: 'listFolder',
    find: '    token = isTruncated ? next : undefined\n',
    replace: '    token = undefined\n',
  },
  {
    name: 'a segment does not name the one before it',
    inside: 'openTopicArchive',
    find: 'from, end: position, previous }, entries)',
    replace: 'from, end: position, previous: previous.replace(/./g, "0") }, entries)',
  },
  {
    name: 'a log that was written anew beside the old signature is restored',
    inside: 'segmentsOf',
    find: ' && segment.sha256 !== signed.last_sha256',
    replace: ' && segment.sha256 === NO_SEGMENT',
  },
  {
    name: 'restore and adopt do not ask for the signature of --key',
    inside: 'readSignedManifests',
    find: 'readVerifierKeys(keys ?? [])',
    replace: 'readVerifierKeys([])',
  },
  {
    name: 'the chain of the segments is not compared',
    inside: 'segmentsOf',
    find: '    if (segment.header.previous !== previous) {\n',
    replace: '    if (segment.header.previous.length !== previous.length) {\n',
  },
  {
    name: 'a lost segment in the middle of an archive is passed over',
    inside: 'segmentsOf',
    find: '    if (from > next) throw',
    replace: '    if (from < 0) throw',
  },
  {
    name: 'an archive that lost its last segments is whole',
    inside: 'segmentsOf',
    find: '  if (next < end) {\n',
    replace: '  if (next < 0) {\n',
  },
  {
    name: 'the SHA-256 of a segment is not compared',
    inside: 'openSegment',
    find: '  if (!isTrailer || stated !== sha256) {\n',
    replace: '  if (!isTrailer) {\n',
  },
  {
    name: 'a log that was made anew is archived on',
    inside: 'assertStillThere',
    find: '  if (last?.equals(encodeEntry(entry))) return\n',
    replace: '  if (last !== undefined) return\n',
  },
  {
    name: 'a new leader whose log ends early for a moment ends an archive',
    inside: 'readLast',
    find: 'readUntilFound(reader, partition, offset, async () => {',
    replace: 'Object.assign(reader.read(partition, offset), async () => {',
  },
  {
    name: 'a comparison waits for ever for records that a log has lost',
    inside: 'compareWithArchive',
    find: '    if (emptyReads === EMPTY_READS_MAX) {\n',
    replace: '    if (emptyReads < 0) {\n',
  },
  {
    name: 'an archive ends at a record that is as large as a fetch',
    inside: 'readNext',
    find: '  if (entries.length !== 1 || next >= end) return { entries, end }\n',
    replace: '  if (entries.length !== 0 || next >= end) return { entries, end }\n',
    flow: RESTORED,
  },
  {
    name: 'the lock of an archive is released while its target still writes, because another one failed',
    inside: 'archive',
    find: '  await Promise.allSettled(copying)\n',
    replace: '',
  },
  {
    name: 'a reader of an archive waits for ever for a segment that is lost',
    inside: 'readArchivedLog',
    find: '      if (segment.header.end <= from) {\n',
    replace: '      if (segment.header.end < from) {\n',
  },
  {
    name: 'a limit of the rate makes up for all lost time at once',
    inside: 'createThrottle',
    find: 'due = Math.max(due, elapsed() - THROTTLE_SLACK_MS) +',
    replace: 'due = due +',
  },
  {
    name: 'a limit of the rate holds for each partition alone',
    inside: 'createThrottle',
    find: '    const until = due\n',
    replace: '    const until = elapsed() + (records * 1_000) / maxRate\n',
  },
  {
    name: 'a restore appends the next batch before the limit of the rate permits it',
    inside: 'appendFrom',
    find: '      await restore.onDone(run.length)\n',
    replace: '      void restore.onDone(run.length)\n',
  },
  {
    name: 'the redaction of a second rep replaces the list of the first one',
    inside: 'writeRedaction',
    find: '  if (before !== undefined && before !== text) {\n',
    replace: '  if (before === undefined && text === undefined) {\n',
    flow: REDACTED,
  },
  {
    name: 'a restore leaves out the holes of the log',
    inside: 'appendLog',
    find: '        if (before >= end) return before\n',
    replace: '        if (before >= 0) return end\n',
    flow: RESTORED,
  },
  {
    name: 'a restore gives records the time of now',
    inside: 'keepTimes',
    find: "own.set(TYPE, 'CreateTime')",
    replace: "own.set(TYPE, 'LogAppendTime')",
    flow: RESTORED,
  },
  {
    name: 'a restore leaves the limit of times of a topic lifted',
    inside: 'putTimesBack',
    find: '    if (value === NOT_SET) own.delete(name)\n',
    replace: '    if (value === NOT_SET) continue\n',
  },
  {
    name: 'a restore does not lift the limit of times of a topic',
    inside: 'keepTimes',
    find: 'BigInt(effective) >= LIMIT_MAX) continue',
    replace: 'BigInt(effective) >= 0n) continue',
    flow: 'test/flow/restored-times.long.test.ts',
  },
  {
    name: 'a restore that fails leaves the settings of the topics',
    inside: 'restoreTopics',
    find: 'await putAllBack(admin, topics).catch(',
    replace: 'await Promise.resolve().catch(',
    flow: 'test/flow/restored-times.long.test.ts',
  },
  {
    name: 'a hole ends a replay up to a time',
    inside: 'FirstLater.add',
    find: "if (kind !== 'record' || (org",
    replace: 'if ((org',
    flow: 'test/flow/restored-times.long.test.ts',
  },
  {
    name: 'a replay up to a time cuts off records that are not later',
    inside: 'FirstLater.add',
    find: 'else if (this.#offset !== undefined) throw this.#mixed(this.#offset, offset)',
    replace: '',
  },
  {
    name: 'a restore appends to a log that is another one',
    inside: 'compareWithArchive',
    find: 'if (!isRestored(wanted[index++], got)) throw',
    replace: 'if (!isRestored(wanted[index++], got) && end < 0) throw',
    flow: RESTORED,
  },
  {
    name: 'the times of a restored log are not compared',
    inside: 'isRestored',
    find: '    expected.timestamp === got.timestamp &&\n',
    replace: '',
  },
  {
    name: 'a restored log may be longer than the archive',
    inside: 'compareWithArchive',
    find: '      if (offset >= end) throw',
    replace: '      if (offset >= end) return offset\n      if (offset < 0) throw',
    flow: RESTORED,
  },
  {
    name: 'adopt compares no record of the other cluster',
    inside: 'compareTopics',
    find: '      const reached = await compared.catch(error => {\n',
    replace: '      const reached = await Promise.resolve(compared && end).catch(error => {\n',
    flow: ADOPTED,
  },
  {
    name: 'adopt takes a cluster whose log is shorter',
    inside: 'compareTopics',
    find: '      if (reached === end) continue\n',
    replace: '      if (reached <= end) continue\n',
    flow: ADOPTED,
  },
  {
    name: 'adopt takes an archive that ends before a position',
    inside: 'assertArchived',
    find: 'await archived.read(partition, 0)\n    if (position > end) {\n',
    replace: 'await archived.read(partition, 0)\n    if (position < 0) {\n',
  },
  {
    name: 'adopt does not compare the record that was read last',
    inside: 'assertArchived',
    find: '        if (got === expected) continue\n',
    replace: '        if (got === expected || entry.offset === last?.offset) continue\n',
  },
  {
    name: 'adopt leaves documents that the archive does not have',
    inside: 'removeAllLeftovers',
    find: 'if (!(await removeLeftovers({ ...body, partitions, from }, steps))) return one',
    replace: 'if (partitions > 0) return one',
    flow: LEFT_OVER,
  },
  {
    name: 'adopt leaves documents of lost records if the cluster is the same',
    inside: 'cleanUnchanged',
    find: "if (act === 'remove') await removeLeftovers(removal, steps)",
    replace: "if (act === 'remove') return",
    flow: LEFT_OVER,
  },
  {
    name: 'rewind leaves documents at and after the stored positions',
    inside: 'takeOver',
    find: 'const { from: removedFrom } = await remove(identity, positions, restart, forget)',
    replace: 'const removedFrom: readonly number[] = []',
    flow: 'test/simulation/pairs-restored.test.ts',
  },
  {
    name: 'adopt looks for writers of a stream that stays only after it has changed the other one',
    inside: 'adoptSource',
    find: "    await cleanUnchanged('wait', stay, generations.live, sources, admin, steps, groupId)\n",
    replace: '',
  },
  {
    name: 'a document that only later offsets made stays',
    inside: 'findLeftovers',
    find: 'if (version < (positions[partition] ?? 0)) return []',
    replace: 'if (version <= (positions[partition] ?? 0) + 2) return []',
  },
  {
    name: 'the earlier form of a document keeps the later version',
    inside: 'earlierForm',
    find: 'version: lastOffsetIn(earlier)',
    replace: 'version: lastOffsetIn(source)',
  },
  {
    name: 'an earlier form is not stored before its document is deleted',
    inside: 'remove',
    find: '  await carryOut(kept, steps)\n  await carryOut(leftovers.map(deletionOf), steps)\n',
    replace: '  await carryOut(leftovers.map(deletionOf), steps)\n  await carryOut(kept, steps)\n',
  },
  {
    name: 'adopt removes documents that a projector has published while it waited',
    inside: 'assertAsChecked',
    find: 'if (now.position === checked?.position && now.serve_from === checked.serve_from) return\n',
    replace: 'if (now.position >= 0) return\n',
  },
  {
    name: 'adopt says before its wait which documents go',
    inside: 'takeOver',
    find: '      first = await firstToRemoveOf(',
    replace: '      if (first.length === 0) first = await firstToRemoveOf(',
  },
  {
    name: 'an interrupted removal is not finished',
    inside: 'removeLeftovers',
    file: 'tools/leftovers/remove-leftovers.ts',
    find: '  const hasPutBack = await putBackAll(removal, steps)\n',
    replace: '  const hasPutBack = false\n',
  },
  {
    name: 'in restored indices that no position marks, documents that were gone for the moment stay so',
    inside: 'removeLeftovers',
    file: 'tools/leftovers/remove-leftovers.ts',
    find: '  const hasPutBack = await putBackAll(removal, steps)\n',
    replace: '  const hasPutBack = positions.some(isMarked) && (await putBackAll(removal, steps))\n',
  },
  {
    name: 'readers may read after a removal of documents before the position, until it is set back',
    inside: 'unmark',
    find: 'if (removing !== undefined && isServed) await',
    replace: 'if (removing !== undefined || isServed) await',
  },
  {
    name: 'archive names each batch that nobody can read',
    inside: 'namesUndecodable',
    find: 'batch?.first === entry.offset ? admit() : undefined',
    replace: 'batch?.first === entry.offset ? { ...admit(), more: 1, unnamed: 0 } : undefined',
  },
  {
    name: 'a projector does not compare what is written after the position with the log',
    inside: 'Assignment.#open',
    find: 'const last = published.written ?? published.current().last',
    replace: 'const { last } = published.current()',
  },
  {
    name: 'adopt does not forget what was written last',
    inside: 'forgetWritten',
    find: 'if (one === undefined || isKept(one.last, partition)) return []',
    replace: 'if (one === undefined || isKept !== undefined) return []',
  },
  {
    name: 'a key that no log revokes stays revoked',
    inside: 'keyAsOf',
    find: 'return { ...source, revoked: false }',
    replace: 'return source',
    flow: LEFT_OVER,
  },
  {
    name: 'a projector of the old cluster goes on after adopt',
    inside: 'assertMonotonic',
    find: '  if (found.position.source === before.position.source) return found\n',
    replace: '  if (found.position.position >= 0) return found\n',
  },
]
