/**
 * Says what a signed manifest is about, in fields and in words: whose records, up to where, how many. In: a manifest.
 * Out: its moment and its size, as it says them; nothing is taken from elsewhere.
 */
import type { ArchiveManifest } from '../archive/manifest.ts'
import { printable } from '../terminal.ts'

/** `said`: one line for people. */
export type Covers = { readonly fields: Readonly<Record<string, unknown>>; readonly said: string }

export const archiveCovers = (manifest: ArchiveManifest, name: string): Covers => {
  const { stream, cluster_id, topic, topic_id = null, partitions } = manifest
  const records = partitions.reduce((sum, part) => sum + part.records, 0)
  const ranges = partitions.map(({ partition, from, end }) => ({ partition, from, end }))
  const shown = ranges.map(({ partition, from, end }) => `${partition}: ${from} to before ${end}`).join(', ')
  const where = printable(`topic ${topic}, id ${topic_id ?? 'unknown'}, of the cluster ${cluster_id}`)
  return {
    fields: { stream, cluster_id, topic, topic_id, partitions: ranges, records },
    said: `${name} covers ${where}: ${records} records, at the offsets of partition ${shown}`,
  }
}

/** Those of an export and of a close. */
const FIELDS = [
  'organization',
  'period',
  'after',
  'as_of',
  'published_at',
  'generation',
  'sandbox',
  'position',
  'rules_version',
  'opened',
  'keys_position',
  'parked_positions',
] as const
type Field = (typeof FIELDS)[number]

/** @param manifest of any form: its signature may be missing, so no field is taken for granted */
export const folderCovers = (manifest: Readonly<Partial<Record<Field | 'files', unknown>>>, name: string): Covers => {
  const {
    organization,
    period,
    as_of,
    published_at,
    generation = 'live',
    position,
    rules_version,
    opened,
    parked_positions,
    files,
  } = manifest
  const parked = Array.isArray(parked_positions) ? parked_positions.map(shownPosition).join(', ') || 'none' : undefined
  const { org, bounds, rules }: Readonly<Record<string, unknown>> = Object(manifest.sandbox)
  const { name: module, sha256 }: Readonly<Record<string, unknown>> = Object(rules)
  const described: readonly (readonly [string, { readonly records?: unknown }])[] = Object.entries(Object(files))
  const records = Object.fromEntries(described.map(([file, { records }]) => [file, records]))
  const after: Readonly<Record<string, unknown>> = Object(manifest.after)
  const keys: Readonly<Record<string, unknown>> = Object(manifest.keys_position)
  const texts: readonly (readonly [name: string, value: unknown])[] = [
    ['organization', organization],
    ['period', period],
    ['only the changes after', after.as_of],
    ['as of the change', as_of ?? 'none'],
    ['published at', published_at],
    ['generation', generation],
    ['position', position === undefined ? undefined : shownPosition(position)],
    ['rules of version', rules_version],
    ['with the module', module === undefined ? undefined : `${module} of SHA-256 ${sha256}`],
    ['of a replay of only', org],
    ['of a replay up to', bounds],
    ['sealed texts', opened === true ? 'opened' : undefined],
    ['keys before', keys.offset === undefined ? undefined : `offset ${keys.offset} of ${keys.topic}`],
    ['parked records also before', parked],
    [
      'records',
      Object.entries(records)
        .map(([file, count]) => `${file} ${count}`)
        .join(', '),
    ],
  ]
  const about = texts.flatMap(([text, value]) => (value == null ? [] : [`${text}: ${value}`])).join('; ')
  const fields = Object.fromEntries(FIELDS.flatMap(field => (field in manifest ? [[field, manifest[field]]] : [])))
  return { fields: { generation, ...fields, records }, said: printable(`${name} covers ${about}`) }
}

const shownPosition = (position: unknown): string => {
  const { topic, partition, offset }: Readonly<Record<string, unknown>> = Object(position)
  return `${topic}:${partition}:${offset}`
}
