/** `commission follow`: prints the changes of an organization. */
import { defineCommand } from '../../command.ts'
import { orgOption } from '../arguments.ts'

type Flags = { readonly org: string; readonly startingAfter?: string; readonly once?: boolean }

export default defineCommand({
  options: command =>
    command
      .addOption(orgOption('its changes'))
      .option('--starting-after <change>', 'continues after this change: the id of the last line')
      .option('--once', 'ends after the last change there is now'),
  help: `
Reads the projector's settings for Elasticsearch from the environment: ELASTICSEARCH_URL, ELASTICSEARCH_INDEX_PREFIX and the like. Needs no API
key. Texts that were published sealed stay sealed. Standard output has the changes only. Ends with Ctrl-C.
Exit codes: 0 done, or stopped without --once; 1 it could not be done, or --once was stopped (130 with Ctrl-C): it says how to continue; 2 the command
line is wrong.`,
  asked: ({ org, startingAfter, once = false }: Flags) => ({ org, startingAfter, once }),
  run: async (options, { exporting, out }) =>
    (await import('../../export/follow.ts')).follow(options, { ...(await exporting()), out }),
})
