// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in signatures, and in the check of signed exports and archives: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const flow = 'test/flow/evidence.test.ts'

export const evidenceMutants: readonly Mutant[] = [
  {
    name: 'the id of a key does not depend on the name of its signer',
    inside: 'idOf',
    file: 'tools/signing/note.ts',
    find: 'Buffer.from(`${name}\\n`)',
    replace: "Buffer.from('\\n')",
  },
  {
    name: 'a wrong signature of a known key counts as one of an unknown key',
    inside: 'checkNote',
    find: "return { outcome: 'wrong', key }",
    replace: 'continue',
  },
  {
    name: 'a signature of a known key is not compared with the text',
    inside: 'checkNote',
    find: 'if (!verify(null, text, key.publicKey, signature.bytes))',
    replace: 'if (!verify(null, text, key.publicKey, signature.bytes) && text.length === 0)',
  },
  {
    name: 'a manifest that is not signed is good enough for --key',
    inside: 'checkSignature',
    find: '    if (keys.length > 0) throw',
    replace: '    if (keys.length > 99) throw',
    flow,
  },
  {
    name: 'a manifest beside its note is not compared with the signed text',
    inside: 'verifyFolder',
    find: '  if (!manifest.equals(found)) {\n',
    replace: '  if (!manifest.equals(found) && found.length === 0) {\n',
    flow,
  },
  {
    name: 'the files of an export are compared with the manifest, not with the signed text',
    inside: 'verifyFolder',
    find: 'filesIn(manifest, ',
    replace: 'filesIn(found, ',
  },
  {
    name: 'a file that the manifest does not name is overlooked',
    inside: 'verifyFolder',
    find: '    if (!known.has(name)) ',
    replace: '    if (!known.has(name) && known.size === 0) ',
  },
  {
    name: 'only the size of a file is compared',
    inside: 'differenceOfFile',
    find: 'now.bytes === bytes && now.sha256 === sha256',
    replace: 'now.bytes === bytes',
  },
  {
    name: 'a manifest may name a file of another folder',
    inside: 'isListed',
    find: "/^\\w[\\w.-]*$/.test(file ?? '')",
    replace: "file !== ''",
  },
  {
    name: 'the changed line is one too early',
    inside: 'findChangedLines',
    find: 'from: group * each + 1',
    replace: 'from: group * each',
  },
  {
    name: 'the tables of an export are not in its manifest',
    inside: 'exportLocked',
    find: '  if (tables.length > 0) await nameTables(tables, out, lock)\n',
    replace: '',
    flow,
  },
  {
    name: 'a signed export gets tables that are not signed',
    inside: 'exportLocked',
    find: '(parquet || csv) && key === undefined && existsSync(',
    replace: '(parquet || csv) && key === undefined && !existsSync(',
    flow,
  },
  {
    name: 'an archive is checked against the manifest, which anybody can write, not against the signed one',
    inside: 'verifySignedArchive',
    find: '[...(await unsignedIn(target, steps)), ...(await unnamedIn(target, manifests))]',
    replace: 'await unnamedIn(target, manifests)',
    flow,
  },
  {
    name: 'an archive that has grown is signed only where it began',
    inside: 'signingTarget',
    find: '      await target.replace(note, signNote(bytes, key))\n',
    replace: '',
    flow,
  },
  {
    name: 'an archive that is there already is not signed',
    inside: 'archive',
    find: '  for (const target of targets) await signStored(target, key)\n',
    replace: '',
    flow,
  },
  {
    name: 'the file of a secret key may be read by all',
    inside: 'makeSigningKey',
    find: 'mode: 0o600',
    replace: 'mode: 0o644',
    flow,
  },
]
