/** `commission keys revoke`: revokes an API key for ever. */
import { defineCommand } from '../../command.ts'
import { keyIdOption, orgOption, waitOption } from '../arguments.ts'

type Flags = { readonly org: string; readonly id: string; readonly wait: number; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .addOption(orgOption())
      .addOption(keyIdOption())
      .addOption(waitOption())
      .option('--json', 'as JSON; was_revoked: it was revoked before'),
  asked: ({ org, id, wait, json = false }: Flags) => ({ org, id, waitSeconds: wait, json }),
  run: async (options, { kafkaContext }) => (await import('../../keys/keys.ts')).revokeKey(options, kafkaContext()),
})
