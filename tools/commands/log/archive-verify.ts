/** `commission archive verify`: reads a whole archive again. */
import type { Command } from 'commander'
import { defineCommand } from '../../command.ts'
import { maxRateOption, publicKeyOption } from '../arguments.ts'

export default defineCommand({
  options: command =>
    command
      .argument('<archive>', 'a directory, or s3://BUCKET/PREFIX')
      .addOption(publicKeyOption())
      .addOption(maxRateOption())
      .option('--json', 'as JSON: the manifests'),
  help: `
Needs no Kafka. With --key each manifest must be signed by one of the keys, and its segments must be those that are signed; records after the signed
end are counted. Without --key only damage is found, and a note that is there must fit.
Exit codes: 0 the archive is whole; 1 it is damaged, or cannot be read; 2 the command line is wrong.`,
  asked: (address: string, _: object, command: Command) => {
    // `archive` has these options, too, and takes them first.
    const flags: { readonly key?: readonly string[]; readonly maxRate: number; readonly json?: boolean } =
      command.optsWithGlobals()
    return { address, keys: flags.key, maxRate: flags.maxRate, json: flags.json ?? false }
  },
  run: async (options, { out, say, draw, time, targetSteps }) => {
    const { verifyTarget } = await import('../../archive/verify.ts')
    return verifyTarget(options, { out, say, draw, elapsed: time.elapsed, sleep: time.sleep, ...targetSteps() })
  },
})
