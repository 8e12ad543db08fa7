/** `commission evidence key`: makes a key that signs manifests. */
import { InvalidArgumentError, Option } from 'commander'
import { defineCommand } from '../../command.ts'

type Flags = { readonly name: string; readonly out: string; readonly json?: boolean }

const parseSignerName = (text: string): string => {
  if (text !== '' && text.isWellFormed() && !/[\s+\p{Cc}]/u.test(text)) return text
  throw new InvalidArgumentError('Expected a name without spaces and plus signs, such as commission.example.com/close.')
}

export default defineCommand({
  options: command =>
    command
      .addOption(
        new Option('--name <name>', 'who signs, such as commission.example.com/close')
          .argParser(parseSignerName)
          .makeOptionMandatory(),
      )
      .requiredOption('--out <keyfile>', 'file of the secret key; it must not exist')
      .option('--json', 'as JSON: name, id and public key'),
  help: `
Prints the public key, for commission verify --key. The secret key is a line in the file, which only you may read.
Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong.`,
  asked: ({ name, out, json = false }: Flags) => ({ name, out, json }),
  run: async (options, { out, say }) =>
    (await import('../../signing/signing-key.ts')).makeSigningKey(options, { out, say }),
})
