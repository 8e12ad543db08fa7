/** `commission projection replay`: projects the log up to a point into a sandbox. */
import { type Command, Option } from 'commander'
import type { UntilOffset } from '../../analysis/replay-bounds.ts'
import { defineCommand } from '../../command.ts'
import {
  addUntilOffset,
  maxRateOption,
  parseId,
  parseInstant,
  parseSandboxName,
  publicKeyOption,
} from '../arguments.ts'

type Flags = {
  readonly name?: string
  readonly untilOffset?: UntilOffset[]
  readonly untilTime?: number
  readonly org?: string
  readonly rules?: string
  readonly fromArchive?: string
  readonly key?: readonly string[]
  readonly maxRate: number
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .addOption(
        new Option(
          '--name <name>',
          'name of the sandbox (default: the next one of s1, s2 …, never one of before)',
        ).argParser(parseSandboxName),
      )
      .addOption(
        new Option('--until-offset <partition:offset>', 'stops before this offset; repeat it for each partition')
          .argParser(addUntilOffset)
          .conflicts('untilTime'),
      )
      .addOption(new Option('--until-time <instant>', 'replays all records up to this instant').argParser(parseInstant))
      .addOption(new Option('--org <id>', 'only the records of this organization').argParser(parseId('org')))
      .addOption(new Option('--rules <file>', 'a module that replaces some of the rules'))
      .addOption(
        new Option('--from-archive <archive>', 'reads an archive (directory, s3://…) of the topic instead of Kafka'),
      )
      .addOption(publicKeyOption())
      .addOption(maxRateOption())
      .option('--json', 'the sandbox, as JSON'),
  help: `
Reads only Kafka or an archive, and writes only to {ELASTICSEARCH_INDEX_PREFIX}-sandbox-*: rights to these are enough. In Kafka it uses a consumer
group of its own ({KAFKA_GROUP_ID}-sandbox-NAME). Without --until-time, a partition without --until-offset is replayed up to its present end.
With --org an offset needs no partition: --org org_1 --until-offset 1200.
--from-archive reads an archive (commission archive) and needs no Kafka, nor settings for it. It verifies the archive first, and refuses a damaged one
by name; with --key also one that is not signed by one of the keys. The sandbox is the one that a replay from Kafka makes up to the same offsets: diff compares it with generations and sandboxes of the topic,
and either replay continues the other. With SEAL_KEYS_DIR it warns of people who were redacted. --until-time then needs a later record in each partition.
--until-time uses the times of the records in Kafka: everything before the first later record of a partition is replayed. It must be over: each
partition has a later record, or the time is 30 s ago and no transaction is open there. It is refused if an earlier record follows a later one there (with --org only its records count).
The same command with --name continues a replay that was stopped. Other rules need another --name: the module of --rules and the files that it
imports by a relative path (not packages) must be as they were.
Other commands call a sandbox sandbox:NAME; list --sandbox lists sandboxes, drop sandbox:NAME deletes one.
After a change of the rules, the live generation keeps parked what the one before it parked, and a replay decides these records by its own rules:
they, and records that refer to them, can differ in diff.
--rules names a module (.ts or .js). Its default export is a function that gets the built-in table of rules and returns another one, as
tools/rules.ts describes. rules check tries it first: commission projection replay --rules ./capped.ts, then diff the two.`,
  asked: (flags: Flags, command: Command) => {
    const { untilOffset, untilTime: time, org, name, rules, fromArchive, key: keys, maxRate, json = false } = flags
    if (keys !== undefined && fromArchive === undefined) command.error('error: --key needs --from-archive')
    if (org === undefined && untilOffset?.some(({ partition }) => partition === undefined)) {
      command.error('error: an offset without a partition needs --org')
    }
    const until = untilOffset ? { offsets: untilOffset } : time === undefined ? undefined : { time }
    return { name, until, org, rules, fromArchive, keys, maxRate, json }
  },
  run: async ({ keys, ...options }, { rebuilding, interruptible, replayingArchive, targetSteps, sealKeys }) => {
    const { replay } = await import('../../analysis/replay.ts')
    const { sourceInArchive, sourceInKafka } = await import('../../analysis/replay-source.ts')
    if (options.fromArchive === undefined) {
      const steps = rebuilding()
      return replay(options, steps, sourceInKafka(interruptible(steps, steps.signal)))
    }
    const steps = replayingArchive()
    const keysDirectory = () => sealKeys()?.directory
    const archiveSteps = { ...steps, ...targetSteps(steps.signal), keysDirectory }
    return replay(options, steps, sourceInArchive(options.fromArchive, archiveSteps, keys))
  },
})
