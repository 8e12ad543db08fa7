/** `commission projection rules check`: runs a rules module over records. */
import { defineCommand } from '../../command.ts'

export default defineCommand({
  options: command =>
    command
      .argument('<module>', 'a module that replaces some of the rules, as replay --rules takes it')
      .option('--records <file>', 'lines of JSON, as validate takes them (default: contract/records.ndjson)')
      .option('--json', 'as JSON'),
  help: `
Needs no Kafka and no Elasticsearch, and writes nothing. The file is a whole log: nothing exists before its first line. Offsets in messages are
lines of the file. The module decides all records, then all of them again, each twice, as after a crash.
  deterministic    each decision gives the same documents every time
  keeps the sums   line items add up to the net amount; a void is the opposite of its payment; totals have the amounts of the records; a rep and
                   period has one current payout; nothing of another organization is written
Payouts that differ from the rules in force are no fault. Exit codes: 0 the module passes; 1 it cannot be loaded, throws, or returns no rules or
wrong decisions; 2 the command line is wrong; 3 it is not deterministic, or does not keep the sums.`,
  asked: (module: string, { records, json = false }: { readonly records?: string; readonly json?: boolean }) => ({
    module,
    records,
    json,
  }),
  run: async (options, { validating }) =>
    (await import('../../validate/check-rules.ts')).checkRules(options, validating()),
})
