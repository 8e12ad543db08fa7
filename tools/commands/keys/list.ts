/** `commission keys list`: lists the API keys of an organization. */
import { defineCommand } from '../../command.ts'
import { orgOption } from '../arguments.ts'

export default defineCommand({
  options: command => command.addOption(orgOption()).option('--json', 'a line of JSON each'),
  asked: ({ org, json = false }: { readonly org: string; readonly json?: boolean }) => ({ org, json }),
  run: async (options, { readContext }) => (await import('../../keys/keys.ts')).listKeys(options, readContext()),
})
