/** Bugs in the audit log: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const flow = 'test/flow/audit.test.ts'

export const auditMutants: readonly Mutant[] = [
  {
    name: 'the line of an answer is written after it',
    inside: 'auditReads',
    find: '    const outcome = await writer.write(line)\n',
    replace:
      "    const later = writer.write(line)\n    const outcome: string = isStrict ? await later : 'written'\n    void later\n",
  },
  {
    name: 'a route is answered without a list of its records',
    inside: 'auditReads',
    find: '      if (isAudited()) requireRecords(ctx.status, audited)\n',
    replace: '      if (ctx.status === 0) requireRecords(ctx.status, audited)\n',
  },
  {
    name: 'a statement, and every other single record, has no id in the audit',
    inside: 'createRoutes',
    find: '    noteRecordsForAudit(ctx, () => [id])\n    return { id, asOf }\n',
    replace: '    return { id, asOf }\n',
    flow,
  },
  {
    name: 'a page of a list has the id of its last record only in the audit',
    inside: 'answerList',
    find: '  noteRecordsForAudit(ctx, () => page.hits.map(recordIdOf))\n',
    replace: '  noteRecordsForAudit(ctx, () => page.hits.slice(-1).map(recordIdOf))\n',
    flow,
  },
  {
    name: 'a strict audit answers without a line',
    inside: 'auditReads',
    find: "    if (isStrict && outcome !== 'written')",
    replace: "    if (isStrict && outcome === 'late')",
    flow,
  },
  {
    name: 'a batch of the audit log that is too large stays too large',
    inside: 'createAuditWriter',
    find: 'if (isTooLarge && batch.length > 1) {',
    replace: 'if (!isTooLarge && batch.length > 1) {',
    flow: 'test/flow/audit-kafka.test.ts',
  },
  {
    name: 'a strict line that waited too long is dropped, and its answer goes out',
    inside: 'createAuditWriter',
    find: "      resolve('late')\n",
    replace: "      resolve(isStrict ? 'written' : 'late')\n",
  },
  {
    name: 'lines that a removed file has taken count as written',
    inside: 'createFileLog',
    find: '      if (!isRemoved) return { lines: lines.length }\n',
    replace: '      if (lines.length > 0) return { lines: lines.length }\n',
  },
  {
    name: 'the audit log continues in a file that was renamed',
    inside: 'openFile',
    find: '      return there?.ino === ino && there.dev === dev\n',
    replace: '      return there?.dev === dev || ino > 0\n',
    flow,
  },
  {
    name: 'lines wait for a slow log without a limit',
    inside: 'createAuditWriter',
    find: "    if (held + bytes > AUDIT_BYTES_MAX) return lost('too_many_wait')\n",
    replace: '',
  },
  {
    name: 'the write that a stop cuts off is not counted as lost',
    inside: 'createAuditWriter',
    find: '      const left = beingWritten + queue.size\n',
    replace: '      const left = queue.size\n',
  },
  {
    name: 'lines that Kafka may have are sent again',
    inside: 'createTopicLog',
    find: '      void end()\n',
    replace:
      '      await end()\n      await (await (connected ??= connect())).send({ topic, acks: ALL_REPLICAS, messages })\n',
  },
  {
    name: 'a client of Kafka that says nothing holds up the audit log',
    inside: 'createTopicLog',
    find: "() => resolve('too_slow')",
    replace: '() => undefined',
  },
  {
    name: 'a Redis that became a replica is asked for ever',
    inside: 'createRedisCounter',
    find: '        client.destroy()\n        connect()\n',
    replace: '',
  },
  {
    name: 'a file that took a part of the output of a command has all of it',
    inside: 'writeRest',
    find: 'written += writeSync(descriptor, chunk, written)',
    replace: 'written = writeSync(descriptor, chunk) && chunk.length',
  },
  {
    name: 'a 304 counts as records that the client got',
    inside: 'auditLineOf',
    find: "count: status === OK && method !== 'HEAD' ?",
    replace: "count: status < 400 && method !== 'HEAD' ?",
  },
  {
    name: 'the last use of a key is that of the last file',
    inside: 'lastUses',
    find: "if (time > (last.get(key_id) ?? ''))",
    replace: "if (time !== '')",
  },
  {
    name: 'a try from outside its networks counts as use of a key',
    inside: 'lastUses',
    find: ' || refused_for !== undefined)',
    replace: ')',
  },
  {
    name: 'the last use of a key is that of a key in another organization',
    inside: 'lastUses',
    find: 'org_id !== org || ',
    replace: '',
  },
]
