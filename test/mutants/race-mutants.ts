// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs where two looks at what others change are taken as one look: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const raceMutants: readonly Mutant[] = [
  {
    name: 'a new leader that is behind for a moment has lost the last known record',
    inside: 'readUntilFound',
    find: 'if (part.entries.length > 0 || reads === KNOWN_READS) return part',
    replace: 'if (part.entries.length > 0 || reads > 0) return part',
  },
  {
    name: 'adopt forgets what a projector that starts meanwhile has written last',
    inside: 'removeLeftovers',
    file: 'tools/leftovers/remove-leftovers.ts',
    find: '    if (!(await hasLeftovers(removal, steps))) return false\n',
    replace: `    if (!(await hasLeftovers(removal, steps))) {
      await forget(removal, await readPositions(removal, steps), await readWrittenVersions(removal, steps), steps)
      return false
    }
`,
  },
  {
    name: 'a batch that is written while documents are removed is not noticed',
    inside: 'forgetWritten',
    find: '  if (written.some((one, at) => one && one.version !== before[at]?.version)) throw new CommandError(CHANGED)\n',
    replace: '  if (before.length < 0) throw new CommandError(CHANGED)\n',
  },
  {
    name: 'documents are removed while totals of them are still summed',
    inside: 'READERS_GONE_MS',
    find: 'export const READERS_GONE_MS = 40_000',
    replace: 'export const READERS_GONE_MS = 10_000',
  },
  {
    name: 'a receipt is of the generation that was live before its position was read',
    inside: 'getLivePositions',
    find: 'if (withPlainNames(now.body).generation !== generation) continue',
    replace: "if (withPlainNames(now.body).generation === '') continue",
  },
  {
    name: 'a key of a restored copy is one of the keys that were served before it',
    inside: 'createApiKeyCache',
    find: 'served.from === servedBefore?.from && asked - servedBefore.at < KEYS_SERVED_TIME',
    replace: 'served.from === servedBefore?.from',
  },
  {
    name: 'a record that somebody appends during a restore is an open transaction',
    inside: 'appendLog',
    find: `      const end = await endOf(partition, READ_UNCOMMITTED)
      return { stable: await endOf(partition), end }
`,
    replace: `      const stable = await endOf(partition)
      return { stable, end: await endOf(partition, READ_UNCOMMITTED) }
`,
  },
  {
    name: 'the doctor looks at the clock before it waits for the ends',
    inside: 'checkKafkaClock',
    find: '  const check = `clock of Kafka, by the records of ${topic}`\n',
    replace:
      '  const check = `clock of Kafka, by the records of ${topic}`\n  const begun = now()\n  now = () => begun\n',
  },
  {
    name: 'a diff compares two generations as of two moments',
    inside: 'diff',
    find: 'const isGrowing = !ours.identity.sandbox && !theirs.identity.sandbox',
    replace: 'const isGrowing = ours === undefined',
  },
]
