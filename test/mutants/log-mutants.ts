/** Bugs with a log that was lost, made anew by a stranger, cut or restored: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const LOGS = 'test/simulation/foreign-logs.test.ts'

export const logMutants: readonly Mutant[] = [
  {
    name: 'a topic of another id is read',
    inside: 'differingField',
    find: "if (field === 'topic_id' && (expected[field] === undefined || got[field] === undefined)) return false",
    replace: "if (field === 'topic_id') return false",
    flow: LOGS,
  },
  {
    name: 'adopt --archive leaves documents that the archive does not have',
    inside: 'removeAllLeftovers',
    find: 'if (!(await removeLeftovers({ ...body, partitions, from }, steps))) return one',
    replace: 'if (from !== undefined) return one',
    flow: LOGS,
  },
  {
    name: 'adopt leaves documents of records that a broker has lost',
    inside: 'removeFromAll',
    find: 'if (await skipBadSpare(name, live, removing, context)) hasRemoved = true',
    replace: 'if (removing === undefined) hasRemoved = true',
    flow: LOGS,
  },
  {
    name: 'documents that a lost record had touched do not get their earlier form again',
    inside: 'remove',
    find: 'const form = source && earlierForm(kind, source, fromOf(partition))',
    replace: 'const form = source === null ? earlierForm(kind, source, fromOf(partition)) : undefined',
    flow: LOGS,
  },
  {
    name: 'adopt leaves API keys of records that a broker has lost',
    inside: 'firstToRemove',
    find: 'serve_from <= position) return position',
    replace: 'serve_from <= position) return Math.max(position, serve_from)',
    flow: LOGS,
  },
  {
    name: 'the last written record goes back when an earlier bulk request arrives later',
    inside: 'textOfReplaceable',
    find: `"version":\${version},"version_type":"external_gte"\``,
    replace: `"version":\${version < 0 ? version : Number.MAX_SAFE_INTEGER},"version_type":"external_gte"\``,
  },
  {
    name: 'documents that a shard has no memory for are sent again all together',
    inside: 'writeOnce',
    find: 'isTooMuch: tooMuch.length > 0',
    replace: 'isTooMuch: tooMuch.length < 0',
  },
  {
    name: 'ends that stay unknown are no reason not to be ready',
    inside: 'kafkaLog',
    find: 'elapsed() - unknownSince > ENDS_LATE_MS',
    replace: 'elapsed() - unknownSince < 0',
  },
  {
    name: 'the version of the last written record does not go on from the stored one',
    inside: 'readWritten',
    find: 'writtenFrom: body._version - written.offset }',
    replace: 'writtenFrom: Math.min(0, body._version) }',
  },
  {
    name: 'the ends of a partition are read before the last written record of another owner',
    inside: 'openPartition',
    find: `  const { written, writtenFrom } = await openWritten(partition, position, { identity, controlIndex, request })
  // After both: another owner may have written and published past ends that were read before.
  const ends = await untilKafkaAnswers(streamLog.ends, signal, steps)
`,
    replace: `  const ends = await untilKafkaAnswers(streamLog.ends, signal, steps)
  const { written, writtenFrom } = await openWritten(partition, position, { identity, controlIndex, request })
`,
  },
  {
    name: 'an owner that finds no written record counts its versions anew',
    inside: 'openWritten',
    find: 'writtenFrom: body._version - NOTHING_WRITTEN.body.offset',
    replace: 'writtenFrom: 0 - NOTHING_WRITTEN.body.offset',
  },
  {
    name: 'adopt leaves documents of lost records while a partition is read again',
    inside: 'firstToRemove',
    find: 'written.offset >= position && (await isOfLog(written))',
    replace: 'written.offset >= position && isOfLog !== undefined',
    flow: LOGS,
  },
  {
    name: 'adopt forgets up to where a partition that is read again has documents',
    inside: 'isKept',
    find: 'keepsWritten === true && ',
    replace: 'keepsWritten === undefined && ',
  },
  {
    name: 'the doctor does not read the last known records',
    inside: 'inspectPositions',
    find: '    await lastRecords.verify(known)\n',
    replace: '',
  },
  {
    name: 'the doctor does not compare the last written records',
    inside: 'inspectPositions',
    find: '    await lastRecords.verify(written).catch(asWrittenChanged)\n',
    replace: '',
  },
]
