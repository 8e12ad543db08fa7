/** `commission subjects erase`: destroys the keys of a person. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { orgArgument, parseId, parseInstant, repArgument } from '../arguments.ts'

type Flags = {
  readonly confirm?: string
  readonly shared?: boolean
  readonly completeUpTo?: number
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .addArgument(orgArgument())
      .addArgument(repArgument())
      .addOption(new Option('--confirm <rep>', 'the id of the rep again').argParser(parseId('rep')))
      .option('--shared', 'also a seal key that seals texts of others: they are lost, too')
      .addOption(
        new Option(
          '--complete-up-to <instant>',
          'also if records published later are not projected: their texts are not looked at, and may be lost',
        ).argParser(parseInstant),
      )
      .option('--json', 'the receipts, a line of JSON each, with the number of texts that stay readable'),
  asked: (org: string, rep: string, { confirm, shared = false, completeUpTo, json = false }: Flags) => ({
    org,
    rep,
    confirm,
    shared,
    completeUpTo,
    json,
  }),
  run: async (options, { erasing }) => (await import('../../subjects/subjects.ts')).eraseSubject(options, erasing()),
})
