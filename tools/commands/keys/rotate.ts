/** `commission keys rotate`: makes the next key, like the one before. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { expiryOption, keyIdOption, networkOption, orgOption, parseKeyName, waitOption } from '../arguments.ts'

type Flags = {
  readonly org: string
  readonly id: string
  readonly name?: string
  readonly expiresAt?: string | null
  readonly network?: string[]
  readonly wait: number
  readonly json?: boolean
}

export default defineCommand({
  options: command =>
    command
      .addOption(orgOption())
      .addOption(keyIdOption())
      .addOption(new Option('--name <name>', 'another name').argParser(parseKeyName))
      .addOption(expiryOption())
      .addOption(networkOption('it works only from this network (default: those of the key in use); repeatable'))
      .addOption(waitOption())
      .option('--json', 'as JSON'),
  asked: ({ org, id, name, expiresAt = null, network, wait, json = false }: Flags) => ({
    org,
    id,
    name,
    expiresAt,
    networks: network,
    waitSeconds: wait,
    json,
  }),
  run: async (options, { kafkaContext }) => (await import('../../keys/rotate.ts')).rotateKey(options, kafkaContext()),
})
