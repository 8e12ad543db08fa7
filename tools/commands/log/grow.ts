/** `commission grow`: from a topic of events to one with more partitions. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { maxRateOption, numberOption } from '../arguments.ts'

type Flags = {
  readonly to: string
  readonly partitions?: number
  readonly swap?: boolean
  readonly maxRate: number
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .addOption(new Option('--to <topic>', 'the new topic of events').makeOptionMandatory())
      .addOption(numberOption('--partitions <number>', 'creates the new topic with as many partitions', 2, 1_000))
      .option('--swap', 'compares both generations, waits until publishers have stopped, and makes the new one live')
      .addOption(maxRateOption())
      .option('--json', 'the new topic, the number of copied records and the live generation, as JSON'),
  help: `
Each run does what can be done now, and says the next step: docs/growing.md has all of them. Reads the projector's settings from the environment:
KAFKA_EVENTS_TOPIC is the present topic until the swap. The same command continues a run that was stopped or killed. Of two runs at once, the earlier one ends.
After the swap it names the first ten records that were published to each old topic, with the source of their events, and all with --json.
Needs the rights of grow in docs/access.md.
Exit codes: 0 done; 1 it could not be done, organizations differ, or somebody published to an old topic; 2 the command line is wrong.`,
  asked: ({ to, partitions, swap = false, maxRate, json = false }: Flags) => ({ to, partitions, swap, maxRate, json }),
  run: async (options, { growing }) => (await import('../../grow/grow.ts')).grow(options, growing()),
})
