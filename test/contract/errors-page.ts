/** The page of all error codes, docs/errors.md, as the catalogue says it. */
import { join } from 'node:path'
import { messages, parkCodes, type RefusalCode, refusals } from '../../schemas/errors.ts'
import { keysOf } from '../../schemas/objects.ts'
import { type CatalogueEntry, parkCatalogue, refusalCatalogue } from '../../schemas/reference/error-catalogue.ts'

export const ERRORS_PAGE = join(import.meta.dirname, '../../docs/errors.md')

/** Returns the page in Markdown. Each code is a heading, so that its anchor is the code. */
export const errorsPage = (): string =>
  `${[
    '# Errors',
    'For clients, publishers and the person on call: the cause and the action of every code. `npm run contract` writes this page. Its anchors are stable: `errors.md#rate_limited`.',
    '## Refusals of the API',
    'A refusal has the body `{"error": {"code", "message"}}`. Decide by the code: messages may change. 429 and 503 have `Retry-After`.',
    ...keysOf(refusals).flatMap(code => [
      `### \`${code}\``,
      [`- **Status**: ${refusals[code]}`, ...linesOf(refusalCatalogue[code]), `- **Message**: ${messageOf(code)}`].join(
        '\n',
      ),
    ]),
    '## Codes of parked records',
    'The projector parks a record that breaks a rule: it stores the record whole with its code, and continues. Parked records change no other data. ' +
      'If several codes fit, the first on this page counts. `contract/records.ndjson` has a record for each code but the last, and [contract/events](../contract/README.md) has the schema of each type.',
    ...parkCodes.flatMap(code => [`### \`${code}\``, linesOf(parkCatalogue[code]).join('\n')]),
  ].join('\n\n')}\n`

const linesOf = ({ cause, action, example }: CatalogueEntry): string[] => [
  `- **Cause**: ${cause}`,
  `- **Action**: ${action}`,
  `- **Example**: ${example}`,
]

/** A refused parameter has a message of its own. */
const messageOf = (code: RefusalCode): string =>
  code === 'invalid_request' ? '`limit` must be a whole number of at least 1, in digits.' : messages[code]
