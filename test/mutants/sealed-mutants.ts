// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in sealed texts and their erasure: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const flow = 'test/flow/sealed.test.ts'

export const sealedMutants: readonly Mutant[] = [
  {
    name: 'a sealed text of another organization opens',
    file: 'schemas/sealed/sealed-text.ts',
    find: '`commission sealed v1\\n${org}\\n${record}\\n${field}`',
    replace: '`commission sealed v1\\n${org.slice(0, 0)}\\n${record}\\n${field}`',
    flow,
  },
  {
    name: 'a key that is missing counts as destroyed without a receipt',
    file: 'api/sealed/key-directory.ts',
    find: "  return second === 'missing' ? { state: 'unknown' } : destroyed(second, id)",
    replace: "  return second === 'missing' ? { state: 'destroyed' } : destroyed(second, id)",
    flow,
  },
  {
    name: 'a receipt of another key counts',
    file: 'api/sealed/key-directory.ts',
    find: "key_id === id && typeof erased_at === 'string'",
    replace: "typeof key_id === 'string' && typeof erased_at === 'string'",
  },
  {
    name: 'the entity tag stays when a text is erased',
    file: 'api/answer/answer-page.ts',
    find: 'const etag = sealState === undefined ? contentTag : tagOf(`${contentTag} ${sealState}`)',
    replace: 'const etag = contentTag',
    flow,
  },
  {
    name: 'an answer as of a change says immutable although it has a sealed text',
    file: 'api/answer/answer-page.ts',
    find: 'const neverChanges = isFixed && sealState === undefined',
    replace: 'const neverChanges = isFixed',
    flow,
  },
  {
    name: 'the label of a void is opened for the void itself',
    file: 'schemas/sealed/sealed-text.ts',
    find: '  reverses_id ?? id\n',
    replace: '  reverses_id === null ? id : id\n',
    flow,
  },
  {
    name: 'a key that seals texts of others is destroyed',
    file: 'commands/subjects/subjects.ts',
    find: '    if (key === undefined || isOf(subject, found)) continue\n',
    replace: '    if (key === undefined || isOf(subject, found) || others.size === 0) continue\n',
    flow,
  },
  {
    name: 'a key is removed before its receipt is written',
    file: 'commands/subjects/destroy-key.ts',
    find: '  await writeReceipt(receiptFile, receipt)\n',
    replace: '  await rm(keyFile, { force: true })\n  await writeReceipt(receiptFile, receipt)\n',
  },
  {
    name: 'a key that Vault does not have counts as destroyed',
    file: 'api/sealed/vault.ts',
    find: "if (status === 404 && errors.length === 0) return { state: 'unknown' }",
    replace: "if (status === 404 && errors.length === 0) return { state: 'destroyed' }",
  },
  {
    name: 'a secrets engine that is not there looks like a key that is not there',
    file: 'api/sealed/vault.ts',
    find: 'status === 404 && errors.length === 0',
    replace: 'status === 404',
  },
  {
    name: 'an organization may read all keys of its pages at once',
    file: 'api/app.ts',
    find: 'createOpenRecords(readSealKey, createKeyReads(later))',
    replace: 'createOpenRecords(readSealKey)',
    flow: 'test/flow/sealed-vault.test.ts',
  },
  {
    name: 'the keys of a page are read although its client has gone',
    file: 'api/sealed/key-turns.ts',
    find: 'AbortSignal.any([signal, ending.signal])',
    replace: 'new AbortController().signal',
  },
  {
    name: 'Vault is asked before the receipt is read',
    file: 'api/sealed/key-sources.ts',
    find: "if (inDirectory.state !== 'unknown' || vault === undefined) return inDirectory",
    replace: "if (inDirectory.state === 'here' || vault === undefined) return inDirectory",
  },
  {
    name: 'Vault opens texts while the directory of receipts is gone',
    file: 'api/sealed/key-sources.ts',
    find: "if (!(await canRead(directory))) return { state: 'unavailable' }",
    replace: 'await canRead(directory)',
  },
  {
    name: 'the receipt is written although the key in Vault may not be deleted',
    file: 'commands/subjects/destroy-key.ts',
    find: "  if (inVault) await change(inVault, key_id, 'POST', '/config', { deletion_allowed: true })\n",
    replace: '',
  },
  {
    name: 'redacted texts that were different become equal',
    file: 'commands/archive/redact-record.ts',
    find: 'const number = texts.get(text) ?? texts.size + 1',
    replace: 'const number = 1',
    flow: 'test/flow/redacted.long.test.ts',
  },
  {
    name: 'a record that was invalid becomes valid by its redaction',
    file: 'commands/archive/redact-record.ts',
    find: 'const isAsBefore = outcomeOf(record, source, redacted) === outcomeOf(record, source, value)',
    replace: 'const isAsBefore = true',
  },
  {
    name: 'a redaction leaves the records that cannot be decoded',
    file: 'commands/archive/redact-record.ts',
    find: "return mentions(record, subject) ? checked(record, source, UNDECODABLE, ['value']) : undefined",
    replace: 'return undefined',
  },
  {
    name: 'a redaction takes the same rep of another organization',
    file: 'commands/archive/redact-record.ts',
    find: '  if (owner !== org) return []\n',
    replace: '',
  },
  {
    name: 'sealed texts are redacted, too',
    file: 'commands/archive/redact-record.ts',
    find: 'return isEmpty || isSealed ? []',
    replace: 'return isEmpty || (isSealed && rep.length === 0) ? []',
  },
  {
    name: 'adopt compares the topics with the archive as it was, not with its redaction',
    file: 'commands/archive/adopt-source.ts',
    find: "const archived = redaction && stream === 'events' ? redaction.reader(unchanged) : unchanged",
    replace: 'const archived = unchanged',
    flow: 'test/flow/redacted.long.test.ts',
  },
  {
    name: 'adopt believes a list that was changed',
    file: 'commands/archive/redact-log.ts',
    find: 'if (isDeepStrictEqual(list, redaction.list)) return redaction',
    replace: 'if (list.changes !== undefined) return redaction',
    flow: 'test/flow/redacted.long.test.ts',
  },
  {
    name: 'the doctor takes a refused export for a key that does not exist',
    file: 'commands/doctor/vault.ts',
    find: '  if (answer?.status === 404 && answer.errors.length === 0) return ok(check)\n',
    replace: '  if (answer?.status === 403 || answer?.status === 404) return ok(check)\n',
  },
  {
    name: 'the doctor does not look for the rights of an erasure',
    file: 'commands/doctor/vault.ts',
    find: "  if (use === 'erase' && exported.outcome === 'ok') {\n",
    replace: "  if (use === 'erase' && exported.outcome !== 'ok') {\n",
  },
]
