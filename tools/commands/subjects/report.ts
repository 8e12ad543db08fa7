/** `commission subjects report`: shows where the texts of a person are. */
import { defineCommand } from '../../command.ts'
import { orgArgument, repArgument } from '../arguments.ts'

export default defineCommand({
  options: command => command.addArgument(orgArgument()).addArgument(repArgument()).option('--json', 'as JSON'),
  asked: (org: string, rep: string, { json = false }: { readonly json?: boolean }) => ({ org, rep, json }),
  run: async (options, { erasing }) => (await import('../../subjects/subjects.ts')).reportSubject(options, erasing()),
})
