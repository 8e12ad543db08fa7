/** `commission subjects list`: lists the people of an organization. */
import { defineCommand } from '../../command.ts'
import { orgArgument } from '../arguments.ts'

export default defineCommand({
  options: command => command.addArgument(orgArgument()).option('--json', 'a line of JSON each'),
  asked: (org: string, { json = false }: { readonly json?: boolean }) => ({ org, json }),
  run: async (options, { erasing }) => (await import('../../subjects/subjects.ts')).listSubjects(options, erasing()),
})
