/** `commission parked show`: shows one parked record. */
import { Option } from 'commander'
import { defineCommand } from '../../command.ts'
import type { RecordPosition } from '../../parked/find.ts'
import { A_POSITION, parsePosition } from '../arguments.ts'

export default defineCommand({
  options: command =>
    command
      .argument('<position>', A_POSITION, parsePosition)
      .addOption(new Option('--raw', 'only its value, byte for byte'))
      .addOption(new Option('--json', 'as JSON; key, headers and value in base64').conflicts('raw')),
  asked: (position: RecordPosition, { json, raw }: { readonly json?: true; readonly raw?: true }) => {
    const as: 'raw' | 'json' | 'text' = raw ? 'raw' : json ? 'json' : 'text'
    return { position, as }
  },
  run: async (options, { readContext }) => (await import('../../parked/parked.ts')).showParked(options, readContext()),
})
