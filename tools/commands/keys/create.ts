/** `commission keys create`: makes an API key. */
import { type Command, Option } from 'commander'
import { type KeyPermission, keyPermissions } from '../../../schemas/values.ts'
import { defineCommand } from '../../command.ts'
import { expiryOption, networkOption, orgOption, parseKeyName, waitOption } from '../arguments.ts'

type Flags = {
  readonly org: string
  readonly name: string
  readonly read: boolean
  readonly permission?: KeyPermission[]
  readonly expiresAt?: string | null
  readonly network?: string[]
  readonly wait: number
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .addOption(orgOption())
      .addOption(new Option('--name <name>', 'what it is for').argParser(parseKeyName).makeOptionMandatory())
      .addOption(
        new Option('--permission <permission...>', 'what it may read (default: read, which is all)').choices(
          keyPermissions,
        ),
      )
      // The default is named: commander sets that of a `--no-` option only before this file is loaded.
      .option('--no-read', 'the key may not read anything', true)
      .addOption(expiryOption())
      .addOption(networkOption())
      .addOption(waitOption())
      .option('--json', 'as JSON'),
  help: `
Permissions: ${keyPermissions.join(', ')}. --permission takes several.`,
  asked: ({ org, name, read, permission, expiresAt = null, network, wait, json = false }: Flags, command: Command) => {
    if (!read && permission !== undefined) command.error('error: --no-read and --permission exclude each other')
    const permissions = read ? (permission ?? ['read' as const]) : []
    return { org, name, permissions, expiresAt, networks: network ?? null, waitSeconds: wait, json }
  },
  run: async (options, { kafkaContext }) => (await import('../../keys/keys.ts')).createKey(options, kafkaContext()),
})
