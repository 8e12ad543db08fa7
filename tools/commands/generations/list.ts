/** `commission projection list`: lists the generations, or the sandboxes. */
import { defineCommand } from '../../command.ts'

export default defineCommand({
  options: command => command.option('--sandbox', 'lists sandboxes instead').option('--json', 'a line of JSON each'),
  asked: ({ sandbox = false, json = false }: { readonly sandbox?: boolean; readonly json?: boolean }) => ({
    sandbox,
    json,
  }),
  run: async ({ sandbox, json }, { readContext }) =>
    sandbox
      ? (await import('../../generations/sandboxes.ts')).listSandboxes({ json }, readContext())
      : (await import('../../generations/generations.ts')).listGenerations({ json }, readContext()),
})
