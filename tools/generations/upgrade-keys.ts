/**
 * `commission projection upgrade-keys`: raises the version of the rules for API keys in an existing projection. Stores
 * the offset from which on version 2 decides: the end of the topic. Records before it keep the decision of version 1.
 * Promises: no record is decided under two versions. The command runs while no projector does, the offset is stored
 * once, and programs that know version 1 only do not start after that. An interrupted command changed everything or
 * nothing.
 */

import { KEY_RULES_VERSION } from '../../core/ledger/index.ts'
import { assertSameSource, connectAdmin, describeSource, endOfPartition, fetchEnds } from '../../core/log/index.ts'
import type { DocumentAnswer } from '../../core/store/index.ts'
import { KEYS_PARTITION, KEYS_PARTITIONS } from '../../schemas/partition.ts'
import {
  API_KEYS_GENERATION,
  type GenerationDocument,
  generationId,
  type PositionDocument,
  positionId,
} from '../../schemas/stored/documents.ts'
import type { KafkaContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { waitUntilNobodyWrites } from './drop.ts'
import { expectStored, readAll, recordedIdentityOf, replaceStored } from './generations.ts'

export type UpgradeKeysOptions = {
  /** The offset that an earlier run stored, for a copy from before that run; by default the end of the topic. */
  readonly from: number | undefined
  readonly json: boolean
}

export const upgradeKeys = async (
  { from, json }: UpgradeKeysOptions,
  context: KafkaContext,
  groupId: string,
): Promise<ExitCode> => {
  const { say, out, topics } = context
  const tell = (first_rules_until: number): ExitCode => {
    if (json) out(`${JSON.stringify({ rules_version: KEY_RULES_VERSION, first_rules_until })}\n`)
    return exitCodes.done
  }
  await using stack = new AsyncDisposableStack()
  const seen = await readGenerationOfKeys(context)
  const identity = seen._source.body
  if (identity.rules_version !== 1) {
    const until = identity.first_rules_until ?? 0
    if (from !== undefined && from !== until)
      throw new CommandError(`version 2 decides from offset ${until} on already`)
    say(`version 2 of the rules decides about API keys from offset ${until} on already`)
    return tell(until)
  }
  const admin = await connectAdmin(context.kafka, stack)
  const topic = topics['api-keys']
  // On another cluster the projectors' group would look empty.
  assertSameSource(identity, await describeSource(admin, topic))
  const advice = 'stop all projectors, and run it again'
  // The positions of the keys change only when a record arrives. So the times of the live generation show whether a
  // projector of another group runs.
  const { live } = await readAll(context)
  const { partitions } = await recordedIdentityOf(live, context)
  const both = [
    [API_KEYS_GENERATION, KEYS_PARTITIONS],
    [live, partitions],
  ] as const
  await Promise.all(
    both.map(([generation, count]) =>
      waitUntilNobodyWrites(generation, count, `${groupId}-${generation}`, admin, context, advice),
    ),
  )
  const end = endOfPartition(KEYS_PARTITION, await fetchEnds(admin, topic))
  const until = from ?? end
  const position = await readPositionOfKeys(context)
  if (until > end || until < position) {
    const what = `--from: expected an offset from ${position} (the position) to ${end} (the end), got ${until}`
    throw new CommandError(until < position ? `${what}. ${TOO_LATE}` : what)
  }
  const body = { ...identity, rules_version: KEY_RULES_VERSION, first_rules_until: until }
  const document: GenerationDocument = { kind: 'generation', body }
  // Changed: another command was faster, or an earlier attempt of this one succeeded and its answer was lost.
  if (!(await replaceStored(generationId(API_KEYS_GENERATION), seen, document, context)))
    throw new CommandError('somebody else changed it meanwhile: run it again')
  say(
    `version 2 of the rules decides about API keys from offset ${until} on. Keep this number: after a restore of an older copy, run`,
  )
  say(`npx commission projection upgrade-keys --from ${until}`)
  say('Now start the projectors, of this version.')
  return tell(until)
}

const TOO_LATE =
  'If projectors have started since a restore: restore again, and run npx commission projection adopt and this command before they start'

const readGenerationOfKeys = async (context: KafkaContext): Promise<DocumentAnswer<GenerationDocument>> =>
  expectStored<GenerationDocument>(generationId(API_KEYS_GENERATION), context)

const readPositionOfKeys = async (context: KafkaContext): Promise<number> =>
  (await expectStored<PositionDocument>(positionId(API_KEYS_GENERATION, KEYS_PARTITION), context))._source.body.position
