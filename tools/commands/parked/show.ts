/** `commission parked show`: shows one parked record. */
import { type Command, Option } from 'commander'
import { defineCommand } from '../../command.ts'
import { A_POSITION, positionIn } from '../arguments.ts'

type Flags = { readonly json?: true; readonly raw?: true }

export default defineCommand({
  options: command =>
    command
      .argument('<position...>', `${A_POSITION}, or as three words`)
      .addOption(new Option('--raw', 'only its value, byte for byte'))
      .addOption(new Option('--json', 'as JSON; key, headers and value in base64').conflicts('raw')),
  asked: (words: readonly string[], { json, raw }: Flags, command: Command) => {
    const position = positionIn(words)
    if (position === undefined) return command.error(`error: expected ${A_POSITION}, or as three words`)
    const as: 'raw' | 'json' | 'text' = raw ? 'raw' : json ? 'json' : 'text'
    return { position, as }
  },
  run: async (options, { readContext }) => (await import('../../parked/parked.ts')).showParked(options, readContext()),
})
