/** Variables of the environment that Node and packages read by themselves, and that would make a process unsafe. */
import type { Problem } from './setting-values.ts'

type Given = {
  /** The settings of the program, by name. */
  readonly names: object
  readonly environment: Readonly<Record<string, string | undefined>>
}

const readByOthers = [
  {
    name: 'DEBUG',
    isUnsafe: (value: string) => value.split(/[\s,]+/).some(matchesElasticsearch),
    expected: 'no pattern that means elasticsearch: the client of Elasticsearch would print records and credentials',
  },
  {
    name: 'KAFKAJS_LOG_LEVEL',
    isUnsafe: (value: string, { names }: Given) => 'KAFKA_BROKERS' in names && /^(error|warn|info|debug)$/i.test(value),
    expected:
      'no value, or NOTHING: the client of Kafka would print lines of its own, and content of records with debug',
  },
  {
    name: 'NODE_TLS_REJECT_UNAUTHORIZED',
    isUnsafe: (value: string, given: Given) => value === '0' && usesTls(given),
    expected: 'no value: with 0, Node accepts every certificate; …_CA_FILE names a certificate of your own',
  },
]

/** Whether a pattern of the package `debug` means the client of Elasticsearch. A minus before it switches it off. */
const matchesElasticsearch = (pattern: string): boolean =>
  !pattern.startsWith('-') &&
  new RegExp(`^${pattern.replace(/\W/g, char => (char === '*' ? '.*' : `\\${char}`))}$`).test('elasticsearch')

/** S3 is asked by TLS unless its address says otherwise. */
const usesTls = ({ names, environment }: Given): boolean =>
  ('ARCHIVE_S3_ENDPOINT' in names && !environment.ARCHIVE_S3_ENDPOINT?.startsWith('http:')) ||
  ('KAFKA_SSL' in names && environment.KAFKA_SSL === 'true') ||
  Object.keys(names).some(name => /(^|,)\s*(https|rediss):/.test(environment[name] ?? ''))

export const checkReadByOthers = (given: Given, problems: Problem[]): void => {
  for (const { name, isUnsafe, expected } of readByOthers) {
    const value = given.environment[name] ?? ''
    if (isUnsafe(value, given)) problems.push({ name, expected, got: JSON.stringify(value) })
  }
}
