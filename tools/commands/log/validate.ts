/** `commission validate`: predicts the outcome of records before they are published. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { numberOption, parseGenerationOrSandbox } from '../arguments.ts'

const PARTITIONS_DEFAULT = 6

type Flags = {
  readonly type?: string
  readonly partitions: number
  readonly live?: boolean
  readonly generation?: string
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .argument('<file>', 'lines of JSON; - for standard input')
      .option('--type <type>', 'the event type of all lines, which are the data of events')
      .addOption(numberOption('--partitions <number>', 'of the events topic', 1, 1_000_000).default(PARTITIONS_DEFAULT))
      .addOption(
        new Option('--live', 'the records would follow everything that is projected now').conflicts('generation'),
      )
      .addOption(
        new Option('--generation <name>', 'they would follow everything in a generation, or in sandbox:NAME').argParser(
          parseGenerationOrSandbox,
        ),
      )
      .option('--json', 'a line of JSON for each record'),
  help: `
A line is a record (an object with value, key, headers), an event (type and data; with specversion a CloudEvents event), or, with --type, the data
of an event. contract/records.ndjson has examples. Without --live the file is a whole log: nothing exists before its first line, and no service
is needed. With --live or --generation it reads the projector's settings for Elasticsearch from the environment. Nothing is written or published.
Exit codes: 0 all would be applied or are duplicates; 1 it could not be done; 2 the command line is wrong; 3 some would be parked.`,
  asked: (file: string, { type, partitions, live = false, generation, json = false }: Flags) => ({
    file,
    type,
    partitions,
    live,
    generation,
    json,
  }),
  run: async (options, { validating }) =>
    (await import('../../validate/validate.ts')).validateFile(options, validating()),
})
