/** `commission doctor`: checks whether a process can do its work with the settings in force. */
import { Argument } from 'commander'
import { type IdentityName, identities } from '../../../schemas/access.ts'
import { defineCommand } from '../../command.ts'

export default defineCommand({
  options: command =>
    command
      .addArgument(
        new Argument(
          '[identities...]',
          'identities of docs/access.md to check (default: projector, if KAFKA_BROKERS is set, and api)',
        ).choices(Object.keys(identities)),
      )
      .option('--json', 'one JSON document'),
  help: `
Reads the settings of each identity from the environment, credentials too: run it with the settings of the process that it is about.
It tries each right of docs/access.md without a trace, and checks topics, the cluster, clocks, certificates, Redis, seal keys and Vault. It changes nothing.
A line begins with ok, warning, failed or "not tried".
Exit codes: 0 nothing failed; 1 something failed; 2 the command line or a setting is wrong.`,
  asked: (names: IdentityName[], { json = false }: { readonly json?: boolean }) => ({ identities: names, json }),
  run: async (options, { doctorContext }) => (await import('../../doctor/doctor.ts')).doctor(options, doctorContext()),
})
