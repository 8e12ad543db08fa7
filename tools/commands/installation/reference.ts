/** `commission reference`: writes the reference of the API as files. */
import { defineCommand } from '../../command.ts'

export default defineCommand({
  options: command =>
    command.argument('<directory>', 'target directory; created if missing').option('--json', 'names the files as JSON'),
  asked: (directory: string, { json = false }: { readonly json?: boolean }) => ({ directory, json }),
  run: async (options, { out, say }) =>
    (await import('../../export/reference.ts')).writeReference(options, { out, say }),
})
