/** Variables of the environment that Node and packages read by themselves, and that would make a process unsafe. */
import type { Problem } from './setting-values.ts'

const readByOthers = [
  {
    name: 'DEBUG',
    isUnsafe: (value: string) => value.split(/[\s,]+/).some(matchesElasticsearch),
    expected: 'no pattern that means elasticsearch: the client of Elasticsearch would print records and credentials',
  },
  {
    name: 'NODE_TLS_REJECT_UNAUTHORIZED',
    isUnsafe: (value: string) => value === '0',
    expected: 'no value: with 0, Node accepts every certificate; …_CA_FILE names a certificate of your own',
  },
]

/** Whether a pattern of the package `debug` means the client of Elasticsearch. A minus before it switches it off. */
const matchesElasticsearch = (pattern: string): boolean =>
  !pattern.startsWith('-') &&
  new RegExp(`^${pattern.replace(/\W/g, char => (char === '*' ? '.*' : `\\${char}`))}$`).test('elasticsearch')

export const checkReadByOthers = (
  environment: Readonly<Record<string, string | undefined>>,
  problems: Problem[],
): void => {
  for (const { name, isUnsafe, expected } of readByOthers) {
    const value = environment[name] ?? ''
    if (isUnsafe(value)) problems.push({ name, expected, got: JSON.stringify(value) })
  }
}
