/**
 * The settings of indices and of the cluster that harm this service, and what follows from each. Everything that is not
 * here does no harm, such as the number of replicas, `search.idle`, `priority`, `hidden`, merges, limits of mappings.
 * docs/access.md is written from these tables (`npm run contract`).
 * A running projector also checks them every 10 s (`core/store/generations/watch-indices.ts`). It stops on those by
 * which documents are lost, hidden or changed, and tells of the others. Its role has no right `manage`, because that
 * may delete indices.
 */

/**
 * `put back`: the projector puts it back at its start, and warns. `put back or stop`: it does not start if it may not.
 * `warn`: somebody's choice, or a state of the cluster. `stop`: documents may be lost, hidden or changed.
 */
export type Consequence = 'put back' | 'put back or stop' | 'warn' | 'stop'

export type SettingRule = {
  /** Of an index: without `index.` in front. A star at the end stands for everything below. */
  readonly setting: string
  /** If it is not set, the first of these that is set decides, and is named. */
  readonly inherits?: readonly string[]
  readonly consequence: Consequence
  readonly expected: string
  /** @param value undefined if it is not set. @param setting its whole name, below the star */
  readonly isFine: (value: string | undefined, setting: string) => boolean
  readonly reason: string
}

const is = (...values: readonly string[]) => {
  const fine = new Set(values)
  return (value: string | undefined): boolean => value === undefined || fine.has(value.toLowerCase())
}
const atLeast =
  (least: number) =>
  (value: string | undefined): boolean =>
    value === undefined || Number(value) >= least || value === '-1'
const absent = (value: string | undefined): boolean => value === undefined

/** The longest text of a field that is searched or counted: the type of a parked record (`core/ledger/decide`). */
const SEARCHED_LENGTH_MAX = 256
/** Settings below `mapping` that were tried on an index of ours: with any value, it finds and counts the same. */
const harmlessMapping =
  /\.limit$|\.ignore_dynamic_beyond_limit$|^mapping\.(?:coerce|ignore_malformed|exclude_source_vectors|use_doc_values_skipper)$/

const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** Returns undefined if the text is no time of Elasticsearch. */
const millisecondsOf = (text: string): number | undefined => {
  const [, count, unit = 'ms'] = /^([0-9]+)(ms|s|m|h|d)?$/.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * (units[unit] ?? 1)
}
const lastsAtLeast = (milliseconds: number) => (value: string | undefined) =>
  value === undefined || (millisecondsOf(value) ?? 0) >= milliseconds

/** Of an index, in the order of what the projector does. The sort is compared with that of the index's definition. */
export const indexSettingRules: readonly SettingRule[] = [
  {
    setting: 'default_pipeline',
    consequence: 'stop',
    expected: 'none',
    isFine: is('_none', ''),
    reason:
      'a pipeline can change or drop documents: remove it, then compare with a rebuild (`npx commission projection verify`)',
  },
  {
    setting: 'final_pipeline',
    consequence: 'stop',
    expected: 'none',
    isFine: is('_none', ''),
    reason:
      'a pipeline can change or drop documents: remove it, then compare with a rebuild (`npx commission projection verify`)',
  },
  {
    setting: 'mode',
    consequence: 'stop',
    expected: 'standard',
    isFine: is('standard'),
    reason: 'another mode stores documents in another form',
  },
  {
    setting: 'mapping.source.mode',
    consequence: 'stop',
    expected: 'stored',
    isFine: is('stored'),
    reason: 'documents would not come back as they were written',
  },
  {
    setting: 'mapping.ignore_above',
    consequence: 'stop',
    expected: `${SEARCHED_LENGTH_MAX} or more`,
    isFine: atLeast(SEARCHED_LENGTH_MAX),
    reason:
      'searches would not find records, and lists would be short or empty: the index was made so by an index template, ' +
      'so correct that, and project again',
  },
  {
    setting: 'disable_sequence_numbers',
    consequence: 'stop',
    expected: 'false',
    isFine: is('false'),
    reason: 'conditions of writes need them',
  },
  {
    setting: 'translog.durability',
    consequence: 'put back or stop',
    expected: 'request',
    isFine: is('request'),
    reason:
      'with async an acknowledged document can be lost: if a node died meanwhile, compare with a rebuild (`npx commission projection verify`)',
  },
  {
    setting: 'refresh_interval',
    consequence: 'put back',
    expected: '-1',
    isFine: value => value === '-1',
    reason: 'the projector refreshes before it publishes: a timer only adds work',
  },
  {
    setting: 'gc_deletes',
    consequence: 'put back',
    expected: '60s or more',
    isFine: lastsAtLeast(60_000),
    reason: 'a late write could bring a deleted document back',
  },
  {
    setting: 'max_result_window',
    consequence: 'put back',
    expected: '10000 or more',
    isFine: atLeast(10_000),
    reason: 'longer pages of commands and of the API would be refused',
  },
  {
    setting: 'max_terms_count',
    consequence: 'put back',
    expected: '65536 or more',
    isFine: atLeast(65_536),
    reason: 'searches for many ids would be refused',
  },
  {
    setting: 'max_docvalue_fields_search',
    consequence: 'put back',
    expected: '100 or more',
    isFine: atLeast(100),
    reason: 'searches for parked records would be refused',
  },
  {
    setting: 'blocks.write',
    consequence: 'warn',
    expected: 'false',
    isFine: is('false'),
    reason: 'nothing is written until the block is removed',
  },
  {
    setting: 'blocks.read_only',
    consequence: 'warn',
    expected: 'false',
    isFine: is('false'),
    reason: 'nothing is written until the block is removed',
  },
  {
    setting: 'blocks.read_only_allow_delete',
    consequence: 'warn',
    expected: 'false',
    isFine: is('false'),
    reason: 'the disk of a node is full: nothing is written until there is room',
  },
  {
    setting: 'blocks.read',
    consequence: 'warn',
    expected: 'false',
    isFine: is('false'),
    reason: 'the API refuses its requests until the block is removed',
  },
  {
    setting: 'verified_before_close',
    consequence: 'warn',
    expected: 'false',
    isFine: is('false'),
    reason: 'the index is closed: open it (`POST /INDEX/_open`)',
  },
  {
    setting: 'write.wait_for_active_shards',
    consequence: 'warn',
    expected: '1',
    isFine: is('1'),
    reason: 'nothing is written while a copy is away',
  },
  {
    setting: 'routing.allocation.enable',
    consequence: 'warn',
    expected: 'all',
    isFine: is('all'),
    reason: 'a shard whose node is lost stays away',
  },
  {
    setting: 'lifecycle.name',
    consequence: 'warn',
    expected: 'none',
    isFine: absent,
    reason: 'a lifecycle policy can delete the index, or make it read-only',
  },
  {
    setting: 'mapping.*',
    consequence: 'warn',
    expected: 'nothing',
    isFine: (_value, setting) => harmlessMapping.test(setting) || hasRule.has(setting),
    reason: 'this version does not know whether searches then find all records',
  },
  {
    setting: 'indexing.slowlog.threshold.*',
    consequence: 'warn',
    expected: '-1',
    isFine: is('-1'),
    reason: 'Elasticsearch logs the beginning of documents, in which names and pay are',
  },
]

/** Names with a rule of their own. */
const hasRule = new Set(indexSettingRules.map(({ setting }) => setting))

/** Of the cluster. They belong to all its users: `commission doctor` tells of them, and nothing puts them back. */
export const clusterSettingRules: readonly SettingRule[] = [
  {
    setting: 'cluster.blocks.read_only',
    consequence: 'warn',
    expected: 'false',
    isFine: is('false'),
    reason: 'nothing is written until the block is removed',
  },
  {
    setting: 'cluster.blocks.read_only_allow_delete',
    consequence: 'warn',
    expected: 'false',
    isFine: is('false'),
    reason: 'nothing is written until the block is removed',
  },
  {
    setting: 'cluster.routing.allocation.enable',
    consequence: 'warn',
    expected: 'all',
    isFine: is('all'),
    reason: 'shards of new indices, or of a lost node, stay away: no rebuild can begin',
  },
  {
    setting: 'search.default_search_timeout',
    consequence: 'warn',
    expected: '-1',
    isFine: is('-1'),
    reason: 'the API refuses each answer that a timeout cut',
  },
  {
    setting: 'action.search.shard_count.limit',
    consequence: 'warn',
    expected: '1000 or more',
    isFine: atLeast(1_000),
    reason: 'searches of all indices would be refused',
  },
  {
    setting: 'search.max_buckets',
    consequence: 'warn',
    expected: '10000 or more',
    isFine: atLeast(10_000),
    reason: 'sums of large projections would be refused',
  },
  {
    setting: 'search.max_keep_alive',
    consequence: 'warn',
    expected: '15m or more',
    isFine: lastsAtLeast(900_000),
    reason: 'commands that read or compare all documents would be refused',
  },
  {
    setting: 'xpack.security.audit.logfile.events.emit_request_body',
    consequence: 'warn',
    expected: 'false',
    isFine: is('false'),
    reason: 'the audit log of Elasticsearch can have the bodies of requests, in which names and pay are',
  },
  {
    setting: 'logger.org.elasticsearch.http.HttpBodyTracer',
    inherits: [
      'logger.org.elasticsearch.http',
      'logger.org.elasticsearch',
      'logger.org',
      'logger._root',
      'logger.level',
    ],
    consequence: 'warn',
    expected: 'no TRACE',
    isFine: value => !['trace', 'all'].includes(`${value}`.toLowerCase()),
    reason: 'nodes can log the bodies of requests and answers, in which names and pay are',
  },
]

export type FoundSetting = {
  readonly setting: string
  readonly consequence: Consequence
  readonly expected: string
  readonly got: string
  readonly reason: string
}

/** Returns the settings that are not as the rules demand. @param settings by flat names */
export const brokenSettings = (
  rules: readonly SettingRule[],
  settings: ReadonlyMap<string, string>,
): readonly FoundSetting[] =>
  rules.flatMap(({ setting, inherits = [], isFine, ...rule }) => {
    const below = setting.endsWith('*') ? setting.slice(0, -1) : undefined
    const inForce = [setting, ...inherits].find(name => settings.has(name)) ?? setting
    const named = below === undefined ? [inForce] : [...settings.keys()].filter(name => name.startsWith(below))
    return named.flatMap(name => {
      const value = settings.get(name)
      return isFine(value, name) ? [] : [{ ...rule, setting: name, got: value ?? 'nothing (the default)' }]
    })
  })

/** Returns the settings of a nested object by their flat names. */
export const flatSettings = (nested: unknown, prefix = ''): Map<string, string> => {
  if (typeof nested !== 'object' || nested === null || Array.isArray(nested)) {
    return new Map(prefix === '' ? [] : [[prefix, String(nested)]])
  }
  const all = Object.entries(nested).map(([name, value]) =>
    flatSettings(value, prefix === '' ? name : `${prefix}.${name}`),
  )
  return new Map(all.flatMap(part => [...part]))
}

/** The sort of an index decides the order of pages. It cannot be changed. */
export const brokenSort = (expected: unknown, settings: ReadonlyMap<string, string>): readonly FoundSetting[] => {
  const wanted = flatSettings(expected, 'sort')
  const names = new Set([...wanted.keys(), ...settings.keys()].filter(name => name.startsWith('sort.')))
  return [...names].flatMap(setting => {
    const [want, got] = [wanted.get(setting) ?? 'nothing', settings.get(setting) ?? 'nothing']
    const reason = 'lists would be in another order'
    return want === got ? [] : [{ setting, consequence: 'stop' as const, expected: want, got, reason }]
  })
}
