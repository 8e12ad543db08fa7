/**
 * The rights of each identity, in Kafka and in Elasticsearch, each with its reason. docs/access.md and deploy/access/
 * are written from this table (`npm run contract`), and tests give processes exactly these rights. `${NAME}` in a name
 * is the value of that setting.
 */
import { keysOf } from './objects.ts'
import { type Kind, kinds, listKinds } from './stored/documents.ts'

/** As `kafka-acls.sh` and Strimzi write them. Read, Write and Delete include Describe. */
export type KafkaOperation = 'Read' | 'Write' | 'Create' | 'Delete' | 'Describe' | 'DescribeConfigs' | 'AlterConfigs'

/** The codes with which Kafka refuses a right. It says which kind of resource, but not which one. */
export const kafkaRefusals: ReadonlySet<string> = new Set([
  'TOPIC_AUTHORIZATION_FAILED',
  'GROUP_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'TRANSACTIONAL_ID_AUTHORIZATION_FAILED',
])

export type KafkaResource = {
  readonly type: 'Topic' | 'Group' | 'Cluster' | 'TransactionalId'
  readonly name: string
  readonly pattern: 'literal' | 'prefixed'
}

export type KafkaRight = {
  readonly resource: KafkaResource
  readonly operation: KafkaOperation
  readonly reason: string
  /** When the right is needed, if not always. */
  readonly only?: string
}

/** As the Elasticsearch security API names them. */
type IndexPrivileges = {
  /** Names of indices. Between slashes is a regular expression. */
  readonly names: readonly string[]
  readonly privileges: readonly ElasticsearchIndexPrivilege[]
  readonly reason: string
}
export type ElasticsearchIndexPrivilege =
  | 'read'
  | 'index'
  | 'delete'
  | 'create_index'
  | 'delete_index'
  | 'maintenance'
  | 'view_index_metadata'
  | 'monitor'

export type ElasticsearchRole = {
  readonly cluster: readonly { readonly privilege: 'monitor' | 'manage_index_templates'; readonly reason: string }[]
  readonly indices: readonly IndexPrivileges[]
}

export type AccessIdentity = {
  /** The processes that use it. */
  readonly programs: string
  readonly kafka: readonly KafkaRight[]
  readonly elasticsearch?: ElasticsearchRole
}

const topic = (name: string): KafkaResource => ({ type: 'Topic', name, pattern: 'literal' })
const events = topic(`\${KAFKA_EVENTS_TOPIC}`)
const apiKeys = topic(`\${KAFKA_API_KEYS_TOPIC}`)
/** The topic that AUDIT_LOG names. */
const audit = topic(`\${AUDIT_TOPIC}`)
/** Of the generations, of the API keys and of sandboxes. */
const groups: KafkaResource = { type: 'Group', name: `\${KAFKA_GROUP_ID}-`, pattern: 'prefixed' }
const transactions: KafkaResource = { type: 'TransactionalId', name: `\${TRANSACTIONAL_ID}`, pattern: 'literal' }

const rights = (
  resource: KafkaResource,
  reasons: Readonly<Partial<Record<KafkaOperation, string>>>,
  only?: string,
): KafkaRight[] =>
  keysOf(reasons).map(operation => ({
    resource,
    operation,
    reason: reasons[operation] ?? '',
    ...(only !== undefined && { only }),
  }))

const readsTopic = {
  Read: 'reads the records, and the ends of the partitions',
  DescribeConfigs: 'checks at its start, and every 10 s, that the topic keeps every record',
}
const createsTopic = {
  Create: 'creates the topic if it is missing',
  Describe: 'checks whether the topic exists, and waits for its leaders',
  DescribeConfigs: 'checks that an existing topic keeps every record',
}

const restoresTopic = {
  Read: 'compares the topic with the archive, before and after',
  Write: 'appends the records of the archive',
  DescribeConfigs: 'checks that the topic keeps every record, and reads its settings before it changes one',
  AlterConfigs:
    'lets the records keep their times: `message.timestamp.type` is CreateTime meanwhile, and `message.timestamp.*.max.ms` have no limit',
}
const restoreTransactions: KafkaResource = { type: 'TransactionalId', name: 'commission-restore-', pattern: 'prefixed' }

/** The new topic of `commission grow`: its name begins with that of the present one. */
const grown: KafkaResource = { type: 'Topic', name: `\${KAFKA_EVENTS_TOPIC}-`, pattern: 'prefixed' }
const growsTopic = {
  Create: 'creates the new topic',
  Read: 'compares it with the present one, and makes a generation from it',
  Write: 'appends the records of the present one',
  DescribeConfigs: 'checks that the topic keeps every record, and reads its settings before it changes one',
  AlterConfigs: 'lets the records keep their times, as `restore` does',
}
const growTransactions: KafkaResource = { type: 'TransactionalId', name: 'commission-grow-', pattern: 'prefixed' }

const prefix = `\${ELASTICSEARCH_INDEX_PREFIX}`
const control = `${prefix}-control`
const keys = `${prefix}-api-keys`
const parkedKeys = `${prefix}-api-keys-parked`
/** A generation is one word: no index of a sandbox, and none of an installation with a longer prefix, matches. */
const ofGenerations = (wanted: readonly Kind[]): string => `/${prefix}-[a-z][a-z0-9]*-(${wanted.join('|')})/`
const answered: readonly Kind[] = [...listKinds, 'statements']
const sandboxes = [`${prefix}-sandbox-control`, `/${prefix}-sandbox-[a-z][a-z0-9]*-(${kinds.join('|')})/`]
const everything = [control, keys, parkedKeys, ofGenerations(kinds)]

const monitor = {
  privilege: 'monitor',
  reason: 'reads the id of the cluster, its health, its clock and its index templates',
} as const
/** A command compares all indices of a generation with those that a projector recorded, read by it or not. */
const compares = {
  names: [ofGenerations(kinds)],
  privileges: ['view_index_metadata', 'monitor'],
  reason: 'compares the ids of all indices and shards with the recorded ones: documents can be missing in another copy',
} as const satisfies IndexPrivileges

/** The key is the name of the files in deploy/access/. */
export const identities = {
  projector: {
    programs: '`npm run start:projector`',
    kafka: [
      ...rights(events, readsTopic),
      ...rights(apiKeys, readsTopic),
      ...rights(groups, { Read: 'joins its consumer groups, describes them, and commits positions for lag tools' }),
    ],
    elasticsearch: {
      cluster: [
        monitor,
        {
          privilege: 'manage_index_templates',
          reason: 'forbids, at its start and every 10 s, that Elasticsearch creates indices automatically',
        },
      ],
      indices: [
        {
          names: everything,
          privileges: ['create_index', 'view_index_metadata', 'monitor', 'read', 'index', 'maintenance'],
          reason:
            'creates and checks its indices, and reads the ids of their shards; reads, writes and refreshes documents. It deletes nothing',
        },
      ],
    },
  },
  api: {
    programs: '`npm run start:api`',
    kafka: rights(
      audit,
      {
        Write: 'appends the lines of the audit log, with an idempotent producer',
        DescribeConfigs:
          'checks at its start that the topic is not compacted. Without this right, it starts with a warning',
      },
      '`AUDIT_LOG=kafka:TOPIC`',
    ),
    elasticsearch: {
      cluster: [],
      indices: [
        {
          names: [control, keys, ofGenerations(answered)],
          privileges: ['read', 'view_index_metadata', 'monitor'],
          reason:
            'answers requests, and reads the ids of shards before it signs a checkpoint. Neither parked records nor sandboxes',
        },
      ],
    },
  },
  topics: {
    programs: '`npx commission topics`',
    kafka: [...rights(events, createsTopic), ...rights(apiKeys, createsTopic)],
  },
  keys: {
    programs: '`npx commission keys create`, `rotate`, `revoke` and `list`',
    kafka: rights(apiKeys, { Write: 'publishes keys and revocations; waits for the projector' }),
    elasticsearch: {
      cluster: [],
      indices: [
        {
          names: [control, keys, parkedKeys],
          privileges: ['read', 'view_index_metadata', 'monitor', 'maintenance'],
          reason: 'lists keys, and tells what the projector decided',
        },
      ],
    },
  },
  parked: {
    programs: '`npx commission parked`',
    kafka: [
      ...rights(events, { Write: 'publishes parked events again' }, '`publish-again`'),
      ...rights(apiKeys, { Write: 'publishes parked API keys again' }, '`publish-again`'),
    ],
    elasticsearch: {
      cluster: [],
      indices: [
        {
          names: everything,
          privileges: ['read', 'view_index_metadata', 'monitor', 'maintenance'],
          reason: 'reads parked records with the pay in them, and foresees the decision on each',
        },
      ],
    },
  },
  projection: {
    programs:
      '`npx commission projection`: `rebuild`, `replay`, `status`, `adopt`, `rewind`, `drop` and the others; `npx commission subjects`',
    kafka: [
      ...rights(events, readsTopic),
      ...rights(apiKeys, { Describe: 'checks that the topic is the projected one' }, '`upgrade-keys`'),
      ...rights(
        apiKeys,
        { ...readsTopic, Read: 'compares the records with an archive, or with what was read last' },
        '`adopt`, `rewind`',
      ),
      ...rights(groups, {
        Read: 'joins the consumer group of the generation or sandbox that it makes',
        Delete: 'deletes the consumer group of what it drops',
      }),
    ],
    elasticsearch: {
      cluster: [monitor],
      indices: [
        {
          names: [...everything, ...sandboxes],
          privileges: [
            ...(['create_index', 'delete_index', 'view_index_metadata', 'monitor'] as const),
            ...(['read', 'index', 'delete', 'maintenance'] as const),
          ],
          reason: 'makes, compares and drops generations and sandboxes',
        },
      ],
    },
  },
  grow: {
    programs: '`npx commission grow`',
    kafka: [
      ...rights(events, { Read: 'copies the records', DescribeConfigs: 'checks that the topic keeps every record' }),
      ...rights(grown, growsTopic),
      ...rights(groups, {
        Read: 'joins the consumer group of the generation that it makes, and describes that of the live one',
      }),
      ...rights(growTransactions, {
        Write: 'appends each part of the copy whole or not at all, and ends an earlier run',
        Describe: 'finds the coordinator of its transactions',
      }),
    ],
    elasticsearch: {
      cluster: [monitor],
      indices: [
        {
          names: everything,
          privileges: ['create_index', 'view_index_metadata', 'monitor', 'read', 'index', 'maintenance'],
          reason: 'makes a generation, compares it with the live one, and swaps them',
        },
      ],
    },
  },
  follow: {
    programs: '`npx commission follow`, `npx commission projection export` and `totals`',
    kafka: [],
    elasticsearch: {
      cluster: [],
      indices: [
        {
          names: [control, ofGenerations(answered)],
          privileges: ['read', 'view_index_metadata', 'monitor'],
          reason: 'reads an organization as the API answers it',
        },
        compares,
      ],
    },
  },
  close: {
    programs: '`npx commission close`',
    kafka: [],
    elasticsearch: {
      cluster: [],
      indices: [
        {
          names: [control, keys, parkedKeys, ofGenerations([...answered, 'parked'])],
          privileges: ['read', 'view_index_metadata', 'monitor', 'maintenance'],
          reason: 'reads a period as the API answers it, the positions of parked records, and keys without their texts',
        },
        compares,
      ],
    },
  },
  archive: {
    programs: '`npx commission archive`',
    kafka: [
      ...rights(events, { Read: 'copies the records. It needs no group' }),
      ...rights(apiKeys, { Read: 'copies the records. It needs no group' }),
    ],
  },
  restore: {
    programs: '`npx commission restore`',
    kafka: [
      ...rights(events, restoresTopic),
      ...rights(apiKeys, restoresTopic),
      ...rights(restoreTransactions, {
        Write: 'makes the holes of the log anew with transactions',
        Describe: 'finds the coordinator of its transactions',
      }),
    ],
  },
  'events-publisher': {
    programs: 'the calculation system',
    kafka: [
      ...rights(events, { Write: 'publishes events, also with an idempotent producer' }),
      ...rights(
        transactions,
        { Write: 'begins and ends transactions', Describe: 'finds the coordinator of its transactions' },
        'a publisher with transactions',
      ),
    ],
  },
  'keys-publisher': {
    programs: 'another system that makes API keys',
    kafka: rights(apiKeys, { Write: 'publishes keys. A publisher of events must not have it' }),
  },
} as const satisfies Readonly<Record<string, AccessIdentity>>
export type IdentityName = keyof typeof identities

/** Replaces each `${NAME}` in a name. @throws Error if a value is missing */
export const fillIn = (name: string, values: Readonly<Record<string, string>>): string =>
  name.replace(/\$\{(\w+)\}/g, (_, setting: string) => {
    const value = values[setting]
    if (value === undefined) throw new Error(`no value for ${setting} in ${name}`)
    return value
  })

/** The rights by resource: one ACL command or entry each. Rights that are not always needed are apart. */
export const byResource = (rights: readonly KafkaRight[]): KafkaRight[][] => [
  ...Map.groupBy(rights, ({ resource: { type, name }, only }) => `${type} ${name} ${only}`).values(),
]

const aclFlags = { Topic: '--topic', Group: '--group', TransactionalId: '--transactional-id', Cluster: '--cluster' }

/** Returns the command of `deploy/access/kafka-acls.sh` that allows these rights on one resource. */
export const aclCommand = (name: string, rights: readonly KafkaRight[]): string => {
  const [first] = rights
  if (first === undefined) throw new Error('no rights')
  const { type, name: resource, pattern } = first.resource
  const flag = type === 'Cluster' ? aclFlags.Cluster : `${aclFlags[type]} "${resource}"`
  const prefixed = pattern === 'prefixed' ? ['--resource-pattern-type prefixed'] : []
  const operations = rights.map(({ operation }) => `--operation ${operation}`)
  return [`allow commission-${name}`, flag, ...prefixed, ...operations].join(' ')
}
