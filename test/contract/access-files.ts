/** docs/access.md and the files of deploy/access/, from the table in `schemas/access.ts`. */
import { join } from 'node:path'
import {
  type AccessIdentity,
  aclCommand,
  byResource,
  identities,
  type KafkaResource,
  type KafkaRight,
} from '../../schemas/access.ts'
import { clusterSettingRules, indexSettingRules, type SettingRule } from '../../schemas/stored/index-settings.ts'

export const ACCESS_PAGE = join(import.meta.dirname, '../../docs/access.md')
export const ACCESS_FILES = join(import.meta.dirname, '../../deploy/access')

const all: readonly (readonly [name: string, identity: AccessIdentity])[] = Object.entries(identities)
const ofKafka = all.filter(([, { kafka }]) => kafka.length > 0)

/** Returns path and content of each file of deploy/access/. */
export const accessFiles = (): Map<string, string> =>
  new Map([
    ['kafka-acls.sh', kafkaAcls()],
    ...ofKafka.map(([name, { kafka }]) => [`kafka-users/${name}.yaml`, kafkaUser(name, kafka)] as const),
    ...all.flatMap(([name, { elasticsearch }]) =>
      elasticsearch === undefined
        ? []
        : [[`elasticsearch-roles/${name}.json`, `${JSON.stringify(roleOf(elasticsearch), null, 2)}\n`] as const],
    ),
  ])

const roleOf = ({ cluster, indices }: NonNullable<AccessIdentity['elasticsearch']>): object => ({
  cluster: cluster.map(({ privilege }) => privilege),
  indices: indices.map(({ names, privileges }) => ({ names, privileges })),
})

const writtenBy = 'Written by `npm run contract` from schemas/access.ts'

const kafkaAcls = (): string =>
  [
    '#!/bin/sh',
    `# ${writtenBy}: the ACLs of each identity.`,
    '# Needs kafka-acls.sh on the PATH, KAFKA_BROKERS, and ADMIN_CONFIG: a file with the credentials of an administrator.',
    '# The names of the users are arguments of `allow`: change them to yours. Lines after # are for the cases that they name.',
    'set -eu',
    `: "\${KAFKA_BROKERS:?}" "\${ADMIN_CONFIG:?}"`,
    `: "\${KAFKA_EVENTS_TOPIC:=commission.events}" "\${KAFKA_API_KEYS_TOPIC:=commission.api-keys}"`,
    `: "\${KAFKA_GROUP_ID:=commission-projector}" "\${TRANSACTIONAL_ID:=commission-publisher}"`,
    `: "\${AUDIT_TOPIC:=commission.audit}"`,
    '',
    'allow() {',
    '  user=$1',
    '  shift',
    '  kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --command-config "$ADMIN_CONFIG" --add --allow-principal "User:$user" "$@"',
    '}',
    ...ofKafka.flatMap(([name, { programs, kafka }]) => [
      '',
      `# ${name}: ${programs.replaceAll('`', '')}`,
      ...byResource(kafka).flatMap(([first, ...others]) =>
        first ? [aclLine(name, [first, ...others], first.only)] : [],
      ),
    ]),
    '',
  ].join('\n')

const aclLine = (name: string, rights: readonly KafkaRight[], only: string | undefined): string => {
  const line = aclCommand(name, rights)
  return only === undefined ? line : `${isCommand(name) ? '' : '# '}${line}  # ${only.replaceAll('`', '')}`
}

/** A command has all its rights: which of its parts runs is not known before. */
const isCommand = (name: string): boolean => name !== 'api' && !name.endsWith('-publisher')

const kafkaUser = (name: string, rights: readonly KafkaRight[]): string =>
  [
    `# ${writtenBy}. Strimzi before 0.49 needs apiVersion kafka.strimzi.io/v1beta2.`,
    `# Replace each \${NAME}, for example with envsubst. KAFKA_CLUSTER is the name of your Kafka resource.`,
    'apiVersion: kafka.strimzi.io/v1',
    'kind: KafkaUser',
    'metadata:',
    `  name: commission-${name}`,
    '  labels:',
    `    strimzi.io/cluster: \${KAFKA_CLUSTER}`,
    'spec:',
    '  authentication:',
    '    type: scram-sha-512 # or tls',
    '  authorization:',
    '    type: simple',
    '    acls:',
    ...byResource(rights).flatMap(([first, ...others]) => {
      if (first === undefined) return []
      const lines = aclEntry(first.resource, [first, ...others])
      if (first.only === undefined) return lines
      const note = `      # ${first.only.replaceAll('`', '')}:`
      // The API needs a user of Kafka only for this right.
      return [note, ...(isCommand(name) || name === 'api' ? lines : lines.map(line => `      # ${line.slice(6)}`))]
    }),
    '',
  ].join('\n')

const aclEntry = ({ type, name, pattern }: KafkaResource, rights: readonly KafkaRight[]): string[] => [
  '      - resource:',
  `          type: ${type[0]?.toLowerCase()}${type.slice(1)}`,
  ...(type === 'Cluster'
    ? []
    : [`          name: "${name}"`, `          patternType: ${pattern === 'prefixed' ? 'prefix' : 'literal'}`]),
  '        operations:',
  ...rights.map(({ operation }) => `          - ${operation}`),
]

/** Returns the page in Markdown. */
export const accessPage = (): string =>
  `${[
    '# Access',
    'For those who create users and roles in Kafka and Elasticsearch. `npm run contract` writes this page and `deploy/access/` from `schemas/access.ts`. ' +
      `\`\${NAME}\` is the value of that [setting](settings.md).`,
    [
      '| files | use |',
      '|---|---|',
      '| [kafka-acls.sh](../deploy/access/kafka-acls.sh) | `KAFKA_BROKERS=… ADMIN_CONFIG=admin.properties sh kafka-acls.sh` adds all ACLs |',
      '| [kafka-users/](../deploy/access/kafka-users) | a Strimzi `KafkaUser` for each identity: `envsubst < projector.yaml \\| kubectl apply -f -` |',
      '| [elasticsearch-roles/](../deploy/access/elasticsearch-roles) | a role for each identity: `envsubst < api.json \\| curl -X PUT "$ELASTICSEARCH_URL/_security/role/commission-api" --json @-`. An API key takes the same object as role descriptor |',
    ].join('\n'),
    '`envsubst` replaces only variables that are exported: export also those that have a default.',
    '## Doctor',
    '`npx commission doctor projector` tries each right of an identity below with the credentials in the environment, and names the line or the file that gives a missing one. ' +
      'For `projector` it asks all that a projector asks at its start; *a projector would stop* comes with the stop code. For `api` it asks what `/readyz` of the API asks. ' +
      'It also checks topics, the Elasticsearch cluster, clocks, certificates, Redis and the seal keys. It changes nothing, and can run beside the processes. ' +
      'Run it once with the settings of each identity.',
    '`--json` prints one document. Exit codes: 0 nothing failed; 1 something failed, or it was stopped; 2 the command line or a setting is wrong. ' +
      'Not tried: rights on transactions, and without the security of Elasticsearch the right to delete indices ([0071](decisions/0071-a-doctor-leaves-no-trace.md)).',
    'With `SEAL_KEYS_DIR`, `api` and `follow` try whether they can read the directory and not write it. `projection` (for `npx commission subjects`) and `restore` (for `--redact`) try whether they can write it. ' +
      'With `SEAL_KEYS_VAULT_URL`, `api`, `follow` and `projection` also ask Vault; the token needs the policy `default` of Vault. No key is read, and nothing in Vault changes but its audit log.',
    '## Kafka',
    'Every process has an identity of its own: a publisher of events must not publish API keys, and the projector writes nothing. ' +
      'Nobody needs a right on the cluster. Read, Write and Delete include Describe. No right is needed for the topic of offsets.',
    ...ofKafka.flatMap(([name, { programs, kafka }]) => [
      `### Kafka: ${name}`,
      `For ${programs}.`,
      ['| resource | operation | reason |', '|---|---|---|', ...kafkaRows(kafka)].join('\n'),
    ]),
    'If Kafka refuses a right, the projector ends with `access_refused`, and a command ends with exit code 1. The line names the operation and the resource: *Kafka refuses Read on group commission-projector-g1*. ' +
      'So it does at the start if Kafka refuses the credentials. A projector that runs tries again, because a connection that is lost at that moment looks the same: its log and `/readyz` name `KafkaJSSASLAuthenticationError`. ' +
      'A missing Read on a topic or a group shows as Describe, which Kafka checks first. Without Delete on a group, `drop` deletes everything else, and says that the group stays. ' +
      'The API continues without its audit log, or without the check of its topic, and logs the refusal ([audit.md](audit.md)).',
    '## Elasticsearch',
    ...all.flatMap(([name, { programs, kafka, elasticsearch }]) =>
      elasticsearch === undefined
        ? []
        : [
            `### Elasticsearch: ${name}`,
            ...(kafka.length > 0 ? [] : [`For ${programs}.`]),
            [
              '| on | privileges | reason |',
              '|---|---|---|',
              ...elasticsearch.cluster.map(({ privilege, reason }) => `| the cluster | \`${privilege}\` | ${reason} |`),
              ...elasticsearch.indices.map(
                ({ names, privileges, reason }) =>
                  `| ${names.map(asCode).join(', ')} | ${privileges.map(asCode).join(', ')} | ${reason} |`,
              ),
            ].join('\n'),
          ],
    ),
    '## Settings of indices and of the cluster',
    'Somebody, or an index template of others, may change a setting. A projector reads those of the indices at its start and every 10 s; `npx commission doctor` tells of them and of those of the cluster. ' +
      'A line of the log names the index, the setting, the expected and the given value. Every other setting is yours. ' +
      'Another mapping or sort stops the projector, too. The API looks at no settings: it refuses answers that are not complete. ' +
      'Runtime fields of others can make lists wrong, so while an index has one, the API answers 503 (`runtime_fields`) and the projector stops. ' +
      'A role with `query` or `field_security` hides documents, and Elasticsearch answers fewer rows with status 200: give none to these users. ' +
      'The projector stops and the API answers 503 (`documents_hidden`), both also while they run; commands that answer from documents end. The API notices such a role up to 2 s late: until then a page can lack records, and [`sequence`](reading.md#changes) shows a change that is missing. ' +
      'A further role that permits `read` without restriction makes an index whole again, if its list of indices is another one. Elasticsearch tells nothing of a role that grants no field at all (`"grant": []`), and an API key with role descriptors is told only these: if they hide nothing, `npx commission doctor` warns. Look at the roles of the user who made it (`GET /_security/api_key?with_limited_by=true`). ' +
      'If a proxy refuses `GET /_security/_authenticate` or `GET /_security/api_key`, nothing may be known of a role: then nothing is signed, no seal key is destroyed, and an API that knew more before answers 503 (`roles_unknown`). A 400 or 405 of Elasticsearch itself to the first one proves: there is no security.',
    [
      '| setting | expected | otherwise | reason |',
      '|---|---|---|---|',
      ...settingLines(indexSettingRules.map(rule => ({ ...rule, setting: `index.${rule.setting}` }))),
      ...settingLines(clusterSettingRules),
    ].join('\n'),
    '**Put back**: the projector changes it with a warning (*a setting of an index was put back*). This needs `manage` on the index, which its role does not have: that right could also delete indices. ' +
      'Without it, the projector warns (*a setting of an index is not as expected*) and starts; put the setting back yourself: `curl -X PUT "$ELASTICSEARCH_URL/INDEX/_settings" --json \'{"index.refresh_interval": "-1"}\'`.',
  ].join('\n\n')}\n`

/** One row for each operation and reason, with all resources that need it. */
const kafkaRows = (rights: readonly KafkaRight[]): string[] => {
  const whyOf = ({ operation, reason, only }: KafkaRight): string =>
    `${operation} | ${reason}${only === undefined ? '' : ` (only ${only})`}`
  return [...Map.groupBy(rights, whyOf)].map(
    ([why, all]) => `| ${all.map(({ resource }) => describeResource(resource)).join(', ')} | ${why} |`,
  )
}

const consequences: Readonly<Record<SettingRule['consequence'], string>> = {
  'put back': 'put back',
  'put back or stop': 'put back; without the right, `index_unsuitable`',
  warn: 'a warning',
  stop: '`index_unsuitable`',
}
/** One row for all settings of which the same holds. */
const settingLines = (rules: readonly SettingRule[]): string[] => {
  const whyOf = ({ expected, consequence, reason }: SettingRule): string =>
    `${expected} | ${consequences[consequence]} | ${reason}`
  return [...Map.groupBy(rules, whyOf)].map(([why, all]) => `| ${all.map(settingCell).join(', ')} | ${why} |`)
}
const settingCell = ({ setting, inherits }: SettingRule): string =>
  `${asCode(setting)}${inherits ? `; if it is not set, the first that is set of ${inherits.map(asCode).join(', ')}` : ''}`

const describeResource = ({ type, name, pattern }: KafkaResource): string =>
  type === 'Cluster' ? 'Cluster' : `${type} \`${name}\`${pattern === 'prefixed' ? ' and longer names' : ''}`

const asCode = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``
