/** `commission keys list`: lists the API keys of an organization, perhaps with their last use. */
import { defineCommand } from '../../command.ts'
import { orgOption } from '../arguments.ts'

type Flags = { readonly org: string; readonly audit?: string[]; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .addOption(orgOption())
      .option('--audit <file...>', 'files of the audit log: shows the last use of each key')
      .option('--json', 'a line of JSON each'),
  asked: ({ org, audit, json = false }: Flags) => ({ org, audit, json }),
  run: async ({ audit, ...options }, { readContext }) => {
    const [{ listKeys }, { lastUses }] = await Promise.all([
      import('../../keys/keys.ts'),
      import('../../evidence/audit-lines.ts'),
    ])
    return listKeys({ ...options, uses: audit && (await lastUses(audit, options.org)) }, readContext())
  },
})
