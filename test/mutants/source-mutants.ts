// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in reading the log and in the use of clocks: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const sourceMutants: readonly Mutant[] = [
  {
    name: 'records of aborted transactions in an archive are projected',
    file: 'projector/stream/archived-log.ts',
    find: "entries.filter(({ kind }) => kind === 'record')",
    replace: '[...entries]',
  },
  {
    name: 'a partition of an archive that was paused is not read on',
    file: 'projector/stream/archived-log.ts',
    find: '          reading.running = false\n',
    replace: '',
  },
  {
    name: 'a hole in the log is ignored',
    file: 'projector/batch/unpack.ts',
    find: '      if (batch.first > next) return yield { ...gathered.upTo(next), missing: next }\n',
    replace: '      next = Math.max(next, batch.first)\n',
  },
  {
    name: 'a batch that is larger than the bound is read',
    file: 'projector/batch/read-batch.ts',
    find: "if (total > BATCH_BYTES_MAX) throw fault ?? new Undecodable('too_large')",
    replace: 'if (total > BATCH_BYTES_MAX) break',
  },
  {
    name: 'only the first frame of zstd is read',
    file: 'projector/batch/zstd.ts',
    find: '    if (isFrame) yield bytes.subarray(at, end)\n',
    replace: '    if (isFrame) return yield bytes.subarray(at, end)\n',
  },
  {
    name: 'a batch that was changed is read',
    file: 'projector/batch/record-batch.ts',
    find: 'distance >= 0 && batch.readUInt32BE(17) === crc32c(batch.subarray(CHECKED_FROM))',
    replace: 'distance >= 0',
  },
  {
    name: 'a batch of an aborted transaction is read',
    file: 'projector/batch/fetched-log.ts',
    find: 'batch.isTransactional && open.has(producerId)',
    replace: 'batch.isTransactional && open.size > 1e9 && producerId !== undefined',
  },
  {
    name: 'a batch that cannot be read is parked as a record of a publisher',
    file: 'projector/flow/assess.ts',
    find: "undecodableBatchOf(record) ? 'batch_undecodable' : 'record_undecodable'",
    replace: "undecodableBatchOf(record) ? 'record_undecodable' : 'record_undecodable'",
  },
  {
    name: 'a batch that waits for room is passed on after a seek',
    file: 'projector/batch/unpack.ts',
    find: '        if (epoch !== this.#epoch) break\n',
    replace: '',
  },
  {
    name: 'a batch that starts at another offset than the sought one counts as a hole',
    file: 'projector/stream/assign.ts',
    find: 'if (missing === undefined || from !== sought) return',
    replace: 'if (missing === undefined) return',
  },
  {
    name: 'only the clock of the machine is used',
    file: 'projector/elasticsearch/clocks.ts',
    find: 'reached: Math.min(ours, theirs)',
    replace: 'reached: ours',
  },
  {
    name: 'a time is taken back because one clock is behind',
    file: 'projector/flow/included-time.ts',
    find: 'this.#latest = clocks.latest -',
    replace: 'this.#latest = clocks.reached -',
  },
  {
    name: 'a late owner publishes a time again that was taken back',
    file: 'schemas/stored/documents.ts',
    find: '  (a.taken_back ?? 0) === (b.taken_back ?? 0) ? a.time > b.time :',
    replace: '  true ? a.time > b.time :',
  },
  {
    name: 'the time of a partition that stands still counts before its position is reached',
    file: 'schemas/stored/documents.ts',
    find: 'found.position > position.position || ',
    replace: '',
  },
  {
    name: 'a process overwrites the times of another one',
    file: 'projector/flow/publish-times.ts',
    find: 'query: ifVersion(version), ',
    replace: '',
  },
  {
    name: 'the API continues to show a time that was taken back',
    file: 'api/read/position.ts',
    find: 'takenBack: taken_back }',
    replace: 'takenBack: 0 }',
  },
  {
    name: 'a group with members of another installation is joined',
    file: 'projector/stream/group.ts',
    find: '  a.prefix === b.prefix &&',
    replace: '  true &&',
  },
  {
    name: 'a partition of another installation counts as ours',
    file: 'projector/stream/group.ts',
    find: '    if (mark !== undefined && !isSame(mark, ours)) return []\n',
    replace: '',
  },
  {
    name: 'two installations share the default group',
    file: 'schemas/settings.ts',
    find: 'prefix => `${prefix}-projector`',
    replace: "() => 'commission-projector'",
  },
  {
    name: 'a header name that is not UTF-8 is kept as text only',
    file: 'projector/kafka/patch-headers.ts',
    find: 'yield isUtf8(rawName) ? [name, value] : [name, value, rawName]',
    replace: 'yield [name, value]',
  },
  {
    name: 'a parked record that an older version wrote without raw names stops the projector',
    file: 'projector/flow/write.ts',
    find: ' || isDeepStrictEqual(stored, withoutRawNames(ours))',
    replace: '',
  },
  {
    name: 'a stream that ended leaves partitions without an owner in the metrics',
    file: 'projector/stream/metrics.ts',
    find: 'forgetUnowned: (topic: string) => unowned.remove({ generation, topic }),',
    replace: 'forgetUnowned: (_: string) => undefined,',
  },
  {
    name: 'no partition is ever reported without an owner',
    file: 'projector/stream/watch-owners.ts',
    find: '    onUnowned(unowned.length)\n',
    replace: '',
    flow: 'test/flow/alerts-projector.long.test.ts',
  },
]
