/** `commission reference`: writes the reference of the API as files. */
import { defineCommand } from '../../command.ts'

export default defineCommand({
  options: command => command.argument('<directory>', 'target directory; created if missing'),
  asked: (directory: string) => ({ directory }),
  run: async (options, { say }) => (await import('../../export/reference.ts')).writeReference(options, { say }),
})
