/** `commission topics`: creates missing topics, configured to keep every record. */
import { defineCommand } from '../../command.ts'
import { exitCodes } from '../../failures.ts'

export default defineCommand({
  options: command => command.option('--json', 'a line of JSON for each topic'),
  help: `
Reads the projector's settings for Kafka and KAFKA_EVENTS_PARTITIONS, KAFKA_REPLICATION_FACTOR from the environment. Leaves an existing topic unchanged,
and names its differences. Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong.`,
  asked: ({ json = false }: { readonly json?: boolean }) => ({ json }),
  run: async ({ json }, { out, createTopics }) => {
    await createTopics(line => void out(json ? `${JSON.stringify({ message: line })}\n` : `${line}\n`))
    return exitCodes.done
  },
})
