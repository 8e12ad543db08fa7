/** The page of all log lines, docs/logs.md: fields and messages from the sources, their meaning from this file. */
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { type LogField, type Logged, type LogLine, readLogLines } from './log-lines.ts'

const ROOT = join(import.meta.dirname, '../..')
export const LOGS_PAGE = join(ROOT, 'docs/logs.md')

/** These files belong to commands: they write to a terminal, not to a log. */
const TERMINAL = ['core/projection/rebuild.ts', 'projector/topics.ts', 'core/log/create-topics.ts']

/** Reads the log lines of the projector and of the API. */
export const productLines = (): Logged =>
  readLogLines(ROOT, path => /^(?:projector|api|core)\//.test(path) && !TERMINAL.includes(path))

/** The libraries whose lines a program can log. */
const programs = {
  projector: { name: 'projector', folders: ['projector', 'core/projection', 'core/log', 'core/store', 'core/runtime'] },
  api: { name: 'API', folders: ['api', 'core/reading'] },
} as const

/** The meaning of each field, the same in every line. */
const meanings: Readonly<Record<string, string>> = {
  address:
    'API: address of a client without a valid key, or over a limit (429). Projector: address, family and port that it listens on',
  admin_port: 'port for health and metrics',
  agree: 'whether the clocks differ by at most 5 s',
  at: 'stack frames: function, file and line',
  because: 'reason of a refusal, as in `api_refusals_total`: a [code](errors.md#refusals-of-the-api) or a finer word',
  code: 'projector: a [stop code](operating.md#stop-codes), or a code of its [clocks](operating.md#wrong-clocks). API: code of Node for a failure of a file or a connection',
  codec: 'compression of a batch: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd',
  committedTo: 'offset that this process has committed, 0 before the first time',
  documents: 'documents in the request',
  dropped: 'lines that were not written',
  elasticsearch_ahead_ms: "milliseconds that Elasticsearch's clock is ahead; null if it does not tell",
  end: 'next offset of the partition',
  error: 'class of the error, never its message',
  expected: 'expected value',
  first: 'first offset of a batch',
  generation: 'a [generation](generations.md): `g1`, or `api-keys`',
  got: 'given value',
  group: 'consumer group of Kafka',
  host: 'address that the process listens on',
  index: 'index of Elasticsearch',
  is: 'published position now',
  isOfElasticsearch: 'whether the answer is of Elasticsearch, and not of a proxy',
  key_id: 'id of the API key; absent before authentication',
  lines: 'lines of the audit log',
  lag: 'offsets from `searchableTo` to the end of the partition',
  last: 'last offset of a batch',
  low: 'first offset that the topic still has',
  members: 'members of the group that do not name their installation',
  method: 'HTTP method',
  more: 'lines like this one that can still follow',
  ms: 'milliseconds from the request to its answer, without the time that it waited for a change (`wait`)',
  offset: 'offset of a record',
  operation: 'operation that Kafka refuses',
  organization_hash:
    'first 16 digits of the SHA-256 of the id of the organization, in hexadecimal; absent before authentication',
  our_prefix: 'index prefix of this projector',
  part: 'part of the process, as on `/readyz`; with its generation, if it belongs to one',
  partition: 'partition of the topic',
  phase: 'phase of a partition: `positioning`, `verifying` or `reading`',
  port: 'port that the process listens on',
  position: 'published position',
  readTo: 'next offset to read',
  reason: 'why a part does not work, a setting matters, or a batch cannot be read',
  reasons: 'why the API is not ready, as on `/readyz`',
  refusal: 'error of the Kafka protocol, or the first word of an error of Redis',
  request_id: 'as in the header `X-Request-Id`',
  resource: 'topic, group or cluster of Kafka',
  route: 'pattern of the route; absent for an unknown path',
  searchableTo: 'published position: readers see everything before it',
  setting: 'setting of an index, without `index.`',
  shards: 'shards of indices: names of the index and numbers of the shard',
  sent: 'documents that were sent',
  signal: 'signal that ends the process',
  status: 'HTTP status: in `answered` that of the API, for a stop code that of Elasticsearch',
  template: 'index template of Elasticsearch',
  their_prefix: 'index prefix of the other installation',
  timestamp: 'time of a record in Kafka, in milliseconds since 1970',
  topic: 'topic of Kafka',
  unnamed: 'batches that cannot be read and got no line since the last such line',
  unlogged: 'requests of this address without a line since its last one; absent if 0',
  vault: 'request to Vault, without the id of the key, and why it gave no key: a status, a code of Node, or words',
  version: 'version of a document',
  was: 'published position before',
  what: 'work that is not done yet',
  writtenTo: 'offset up to which documents are written, and maybe not yet published',
}

/** The text for each message that is not fixed. */
const variable: Readonly<Record<string, string>> = {
  '{error.message}': '*meaning of the stop code, and details*',
  '{warning}': '*warning about the configuration of a topic*',
  'the projection of a generation that is not live failed: {message}':
    'the projection of a generation that is not live failed: *meaning of the stop code, and details*',
}

const REQUEST_LINE = 'answered'

const example: Readonly<Record<string, string | number>> = {
  request_id: '5f0c6a52-9d4e-4b8e-8a39-0c6a1d0f7e11',
  method: 'GET',
  route: '/api/v1/payouts/:id',
  status: 200,
  ms: 3.41,
  key_id: 'key_1',
  organization_hash: hash('sha256', 'org_1', 'hex').slice(0, 16),
}

/** Returns the page in Markdown. @throws Error if a field or a message has no meaning here, or a meaning has no use */
export const logsPage = ({ lines, stops }: Logged): string => {
  const stopFields = [...Map.groupBy(stops, ({ code }) => code)]
    .map(([code, all]) => ({ code, fields: namesOf(all.flatMap(({ fields }) => fields)) }))
    .filter(({ fields }) => fields.length > 0)
    .toSorted((a, b) => a.code.localeCompare(b.code))
  const allFields = [...lines, ...stops].flatMap(({ fields }) => fields)
  assertSame('fields', namesOf(allFields), Object.keys(meanings))
  const messages = lines.flatMap(line => line.messages).filter(message => message.includes('{'))
  assertSame('messages', messages, Object.keys(variable))
  const request = lines.find(line => line.messages.includes(REQUEST_LINE))
  if (request === undefined) throw new Error(`no line has the message ${REQUEST_LINE}`)

  return `${[
    '# Logs',
    'For the person on call, and for those who search logs: every line of the projector and the API. `npm run contract` writes this page.',
    'A process writes its log to standard output, one JSON object a line. `LOG_LEVEL` is the lowest level that it writes ([settings](settings.md)). ' +
      'An error before there is a log, such as a wrong setting, goes to standard error as text. The projector writes nothing for a record; the API writes one line for a request.',
    [
      '| field of every line | type | meaning |',
      '|---|---|---|',
      '| `level` | number | 30 info, 40 warn, 50 error, 60 fatal. 10 and 20 have no lines |',
      '| `time` | number | milliseconds since 1970 by the clock of this machine |',
      '| `process` | string | `projector` or `api` |',
      '| `msg` | string | the message. A program may look for the fixed messages below; a change of one stands in the changelog |',
    ].join('\n'),
    '- `warn`: something does not work, and the process continues or tries again. `error`: a defect, a generation that failed, or a stop that took too long. `fatal`: the process ends at once.\n' +
      '- No line has the content of a record, an amount, a URL, an API key, a password, a header of a request, or the message of a defect. The API names an organization only by a hash.',
    '## Reading',
    [
      '```sh',
      `npm run -s start:api | jq -c 'select(.level >= 40)'                                    # trouble only`,
      `jq -c 'select(.request_id == "…")' api.log                                            # the request of a client that complains`,
      `jq -c 'select(.msg == "answered" and .status >= 500) | [.route, .because, .ms]' api.log`,
      `jq -c 'select(.msg == "position") | [.topic, .partition, .lag]' projector.log         # every 30 s`,
      `jq 'select(.level == 60)' projector.log                                               # why it ended`,
      `printf %s org_1 | sha256sum | cut -c1-16                                              # organization_hash of org_1`,
      '```',
    ].join('\n'),
    '## Line of a request',
    `One line for each request, at its end: \`${REQUEST_LINE}\`; none for an answered preflight request of a browser. Of requests without a valid key (401, also 400, 404 and the like), of those over a limit (429), and of bytes that never became a request (\`refused bytes\`), ` +
      'an address has at most 10 lines a minute, and all addresses together 1,000. `unlogged` counts the others, and metrics count every request.',
    ['| field | type | meaning |', '|---|---|---|', ...request.fields.map(rowOfField)].join('\n'),
    `\`\`\`json\n${exampleOf(request)}\n\`\`\``,
    ...Object.values(programs).flatMap(({ name, folders }) => [
      `## Lines of the ${name}`,
      [
        '| level | message | fields |',
        '|---|---|---|',
        // Two files may log the same line.
        ...new Set(
          lines.filter(({ file }) => folders.some(folder => file.startsWith(`${folder}/`))).flatMap(rowsOfLine),
        ),
      ].join('\n'),
    ]),
    '## Fields of stop codes',
    'A line with a [stop code](operating.md#stop-codes) has those of these fields that are known. With the code `defect`, the line of a generation that is not live has `error`.',
    [
      '| code | fields |',
      '|---|---|',
      ...stopFields.map(({ code, fields }) => `| \`${code}\` | ${fields.map(asCode).join(', ')} |`),
    ].join('\n'),
    '## Fields',
    '`?` after a field above: not every line has it. The others are those of [a request](#line-of-a-request).',
    [
      '| field | type | meaning |',
      '|---|---|---|',
      ...namesOf(allFields)
        .filter(name => !namesOf(request.fields).includes(name))
        .map(name => rowOfField(mergeFields(allFields.filter(field => field.name === name)))),
    ].join('\n'),
  ].join('\n\n')}\n`
}

/** A line of a request that was not refused, in the order in which pino writes its fields. */
const exampleOf = ({ fields }: LogLine): string => {
  const common = { level: 30, time: Date.UTC(2026, 6, 20, 12), process: 'api' }
  const given = fields.flatMap(({ name }) => (name in example ? [[name, example[name]]] : []))
  return JSON.stringify({ ...common, ...Object.fromEntries(given), msg: REQUEST_LINE })
}

const namesOf = (fields: readonly LogField[]): string[] => [...new Set(fields.map(({ name }) => name))].toSorted()

const mergeFields = (fields: readonly LogField[]): { name: string; type: string } => ({
  name: fields[0]?.name ?? '',
  type: [...new Set(fields.flatMap(({ type }) => type.split(' or ')))].toSorted().join(' or '),
})

const rowOfField = ({ name, type }: Pick<LogField, 'name' | 'type'>): string =>
  `| \`${name}\` | ${type} | ${meanings[name]} |`

const rowsOfLine = ({ levels, messages, fields, open }: LogLine): string[] => {
  const isRequest = messages.includes(REQUEST_LINE)
  const names = isRequest
    ? ['[those of a request](#line-of-a-request)']
    : fields.map(({ name, optional }) => `${asCode(name)}${optional ? '?' : ''}`)
  const all = [...names, ...(open ? ['[those of the code](#fields-of-stop-codes)'] : [])].join(', ')
  return messages.map(message => `| ${levels.join(' or ')} | ${variable[message] ?? message} | ${all} |`)
}

const asCode = (text: string): string => `\`${text}\``

/** @throws Error that names what only one of the two lists has */
const assertSame = (kind: string, found: readonly string[], known: readonly string[]): void => {
  const unknown = found.filter(name => !known.includes(name))
  const unused = known.filter(name => !found.includes(name))
  if (unknown.length > 0 || unused.length > 0)
    throw new Error(
      `test/contract/logs-page.ts: ${kind} without a meaning: ${unknown.join(', ')}; not in a line: ${unused.join(', ')}`,
    )
}
