/** `commission keys revoke`: revokes an API key for ever. */
import { defineCommand } from '../../command.ts'
import { keyIdOption, orgOption, waitOption } from '../arguments.ts'

export default defineCommand({
  options: command => command.addOption(orgOption()).addOption(keyIdOption()).addOption(waitOption()),
  asked: ({ org, id, wait }: { readonly org: string; readonly id: string; readonly wait: number }) => ({
    org,
    id,
    waitSeconds: wait,
  }),
  run: async (options, { kafkaContext }) => (await import('../../keys/keys.ts')).revokeKey(options, kafkaContext()),
})
