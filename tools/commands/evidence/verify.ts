/** `commission verify`: checks an export, a copy of parts, a close or an archive against its signed manifest. */
import { defineCommand } from '../../command.ts'
import { publicKeyOption } from '../arguments.ts'

type Flags = { readonly key?: readonly string[]; readonly json?: boolean }

export default defineCommand({
  options: command =>
    command
      .argument(
        '<directory>',
        'an export, a copy of parts, a close or an archive; an archive also as s3://BUCKET/PREFIX',
      )
      .addOption(publicKeyOption())
      .option('--json', 'as JSON: who signed what, and each difference'),
  help: `
Checks the signature of the manifest and says what it covers; then the size and the SHA-256 of each file, and names what was changed, lost or added;
of lines the first one. Follows no symbolic link: it is a difference. Of a copy that grows also a part that is lost, or does not continue the one before.
With --key a manifest that is not signed, or not by one of the keys, is a difference. Without --key only damage is found: whoever may write into the
directory can make its manifest too. Needs no Kafka, no Elasticsearch and no setting (of an archive in S3: ARCHIVE_S3_…). docs/evidence.md says
how keys are made, changed, and given to auditors.
Exit codes: 0 as it was written; 1 it could not be checked; 2 the command line is wrong; 3 something differs.`,
  asked: (address: string, { key = [], json = false }: Flags) => ({ address, keys: key, json }),
  run: async (options, { out, say, draw, time, targetSteps }) => {
    const { verifyEvidence } = await import('../../evidence/verify.ts')
    return verifyEvidence(options, { out, say, draw, elapsed: time.elapsed, sleep: time.sleep, ...targetSteps() })
  },
})
