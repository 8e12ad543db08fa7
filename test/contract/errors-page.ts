/** The page of all error codes, docs/errors.md, as the catalogue says it. */
import { join } from 'node:path'
import { parkCodes, refusals } from '../../schemas/errors.ts'
import { keysOf } from '../../schemas/objects.ts'
import { type CatalogueEntry, parkCatalogue, refusalCatalogue } from '../../schemas/reference/error-catalogue.ts'

export const ERRORS_PAGE = join(import.meta.dirname, '../../docs/errors.md')

/** Returns the page in Markdown. Each code is a heading, so that its anchor is the code. */
export const errorsPage = (): string =>
  `${[
    '# Errors',
    'For clients, publishers and the person on call. `npm run contract` writes this page. Its anchors are stable: `errors.md#rate_limited`.',
    '## Refusals of the API',
    'A refusal has the body `{"error": {"code", "message"}}`. Decide by the code: messages may change. 429 and 503 have `Retry-After`.',
    'The form of all parameters is checked before any record is looked up: a malformed `starting_after` is `invalid_cursor`, also beside an `as_of` that names no change. Beside a well-formed, unknown `starting_after`, such an `as_of` is `invalid_request`.',
    ...keysOf(refusals).flatMap(code => [
      `### \`${code}\``,
      [`- **Status**: ${refusals[code]}`, ...linesOf(refusalCatalogue[code])].join('\n'),
    ]),
    '## Codes of parked records',
    'The projector stores a record that breaks a rule with its code, and continues. Parked records change no other data. ' +
      'If several codes fit, the first on this page counts. `contract/records.ndjson` has a record for each code but the last, and [contract/events](../contract/README.md) has the schema of each type.',
    ...parkCodes.flatMap(code => [
      `### \`${code}\``,
      [...linesOf(parkCatalogue[code]), `- **Example**: ${parkCatalogue[code].example}`].join('\n'),
    ]),
  ].join('\n\n')}\n`

const linesOf = ({ cause, action }: CatalogueEntry): string[] => [`- **Cause**: ${cause}`, `- **Action**: ${action}`]
