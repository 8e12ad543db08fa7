// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in checkpoints, and in the proofs of copies: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const flow = 'test/flow/api-checkpoint.test.ts'

export const checkpointMutants: readonly Mutant[] = [
  {
    name: 'a walk for a checkpoint begins again each time',
    inside: 'createReadCheckpoint',
    find: 'known?.of === of ? known',
    replace: "known?.of === '' ? known",
    flow,
  },
  {
    name: 'each request gets a signature of its own',
    inside: 'createReadCheckpoint',
    find: 'age < CHECKPOINT_AGE_MAX',
    replace: 'age < 0',
    flow,
  },
  {
    name: 'a checkpoint leaves out the last change of each page',
    inside: 'continueDigest',
    find: 'for (const hit of hits) {',
    replace: 'for (const hit of hits.slice(0, -1)) {',
    flow,
  },
  {
    name: 'the digest does not depend on the changes before',
    inside: 'continueDigest',
    find: 'sha256(digest, sha256(textOrRefuse(change)))',
    replace: 'sha256(FIRST, sha256(textOrRefuse(change)))',
    flow,
  },
  {
    name: 'what is read for a checkpoint costs nothing',
    inside: 'createRoutes',
    find: 'spent.added.bytes + bytes, ',
    replace: '0, ',
    flow,
  },
  {
    name: 'a walk that ends early costs one unit',
    inside: 'limitRate',
    find: 'spent.added.isKept ? spent.added.bytes : 0',
    replace: '0',
    flow,
  },
  {
    name: 'a key without totals:read reads a checkpoint',
    inside: 'requirePermission',
    find: "path === 'checkpoint' ? permissionsOfCheckpoints",
    replace: "path === 'checkpoints' ? permissionsOfCheckpoints",
    flow,
  },
  {
    name: 'an API without a key says that the records cannot be read now',
    inside: 'createReadCheckpoint',
    find: 'if (key === undefined) throw notSigned()',
    replace: "if (key === undefined) throw unavailable('checkpoints')",
    flow,
  },
  {
    name: 'the name of a rep is in the digest',
    inside: 'digestedFields',
    find: "reps: ['id', 'status',",
    replace: "reps: ['id', 'name', 'status',",
  },
  {
    name: 'a client does not check the signature of a checkpoint',
    inside: 'readCheckpoint',
    find: "if (await crypto.subtle.verify('Ed25519', imported, signature, new TextEncoder().encode(text)))",
    replace: 'if (signature.length > 0 && imported)',
  },
  {
    name: 'a proof compares no digest',
    inside: 'continueCopy',
    find: 'if (now !== digest) throw',
    replace: 'if (now === undefined) throw',
  },
  {
    name: 'a proof does not compare what was proved before',
    inside: 'continueCopy',
    find: 'before.digest !== undefined && then !== before.digest',
    replace: 'before.digest !== undefined && then === undefined',
  },
  {
    name: 'a proof overlooks a record that no change has made',
    inside: 'continueCopy',
    find: 'if (count !== changes.heldCount)',
    replace: 'if (count < changes.heldCount)',
  },
  {
    name: 'a proof takes the totals of the checkpoint as they are',
    inside: 'continueCopy',
    find: 'const difference = ours && differenceOf(checkpoint.totals, ours)',
    replace: 'const difference = ours && differenceOf(ours, ours)',
  },
  {
    name: 'the records of a copy are not hashed again once they were served',
    inside: 'continueCopy',
    find: 'return new ServedChanges(held, read.list())',
    replace: 'return read',
  },
  {
    name: 'a line of a payout is not in the digest of a client',
    inside: 'lineFields',
    find: "const lineFields = ['id', 'category', 'amount', 'deal_id']",
    replace: "const lineFields = ['id', 'category', 'amount']",
  },
  {
    name: 'a copy takes a change that does not follow its last one',
    inside: 'ServedChanges.add',
    find: 'if (sequence !== this.#changes.length + 1)',
    replace: 'if (sequence <= this.#changes.length)',
  },
]
