/** Checks of the Elasticsearch cluster: version, health, cluster.no_master_block, disks and clocks. Reads only. */

import { CLOCKS_APART_MS, type Request, type Send } from '../../core/store/index.ts'
import { brokenSettings, clusterSettingRules } from '../../schemas/stored/index-settings.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

export type ClusterSteps = {
  readonly send: Send
  readonly signal: AbortSignal
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The major version that this program is made and tested for. */
const MAJOR = 9

export const checkVersion = async ({ send, signal }: ClusterSteps): Promise<Finding[]> => {
  const { body } = await send<{ version?: { number?: unknown } } | undefined>({ method: 'GET', path: '/' }, signal)
  const version = String(body?.version?.number ?? 'unknown')
  const check = 'Elasticsearch: version'
  const major = Number(version.split('.')[0])
  if (major === MAJOR) return [ok(check, version)]
  const detail = `expected ${MAJOR}.x, got ${version}`
  return [major > MAJOR ? warning(check, `${detail}: not tested`) : failed(check, detail)]
}

type Health = { readonly status: string; readonly number_of_data_nodes: number; readonly unassigned_shards: number }

export const checkHealth = async ({ send, signal }: ClusterSteps): Promise<Finding[]> => {
  const { body } = await send<Health>({ method: 'GET', path: '/_cluster/health' }, signal)
  const { status, number_of_data_nodes: nodes, unassigned_shards: unassigned } = body
  const check = 'Elasticsearch: health'
  const detail = `${status}, ${nodes} data node${nodes === 1 ? '' : 's'}, ${unassigned} shards unassigned`
  const mend = 'GET /_cluster/allocation/explain says why'
  if (status === 'red') return [failed(check, detail, mend)]
  if (status !== 'green') return [warning(check, detail, mend)]
  return [nodes === 1 ? warning(check, `${detail}: no document survives the loss of the node`) : ok(check, detail)]
}

type Flat = Readonly<Record<string, unknown>>
type SettingsAnswer = Readonly<Partial<Record<'defaults' | 'persistent' | 'transient', Flat>>>
type NodeStats = {
  readonly name: string
  readonly roles: readonly string[]
  readonly timestamp: number
  readonly fs?: { readonly total?: { readonly total_in_bytes: number; readonly available_in_bytes: number } }
}
type NodesAnswer = { readonly nodes: Readonly<Record<string, NodeStats>> }

const NODES: Request = {
  method: 'GET',
  path: '/_nodes/stats/fs',
  query: { filter_path: 'nodes.*.name,nodes.*.roles,nodes.*.timestamp,nodes.*.fs.total' },
}

export const checkNodes = async ({ send, signal, now }: ClusterSteps): Promise<Finding[]> => {
  const begun = now()
  const { body } = await send<NodesAnswer>(NODES, signal)
  const ended = now()
  const { body: found } = await send<SettingsAnswer>(
    { method: 'GET', path: '/_cluster/settings', query: { include_defaults: true, flat_settings: true } },
    signal,
  )
  const settings = { ...found.defaults, ...found.persistent, ...found.transient }
  const nodes = Object.values(body.nodes)
  return [
    ...checkSettings(settings),
    checkMasterBlock(nodes, settings['cluster.no_master_block']),
    ...nodes.flatMap(node => [checkClock(node, begun, ended), ...checkDisk(node, settings)]),
  ]
}

const checkSettings = (settings: Flat): Finding[] =>
  brokenSettings(
    clusterSettingRules,
    new Map(Object.entries(settings).map(([name, value]) => [name, String(value)])),
  ).map(({ setting, expected, got, reason }) =>
    warning(`Elasticsearch: ${setting}`, `expected ${expected}, got ${got}; ${reason}`, 'PUT /_cluster/settings'),
  )

const checkMasterBlock = (nodes: readonly NodeStats[], value: unknown): Finding => {
  const check = 'Elasticsearch: cluster.no_master_block'
  const masters = nodes.filter(({ roles }) => roles.includes('master')).length
  if (value === 'all') return ok(check, 'all')
  if (masters < 2)
    return ok(check, `${value}: with one node that may be master, no node can be cut off from the others`)
  const detail = `expected all, got ${value}: a node that is cut off from the others answers with old data`
  return warning(check, detail, 'set cluster.no_master_block: all on every node (docs/scale.md)')
}

/** The node read its clock between the request and the answer: that is the accuracy. */
export const checkClock = ({ name, timestamp }: NodeStats, begun: number, ended: number): Finding => {
  const check = `clock of Elasticsearch node ${name}`
  const accuracy = Math.ceil((ended - begun) / 2)
  const ahead = Math.round(timestamp - (begun + ended) / 2)
  const detail = `${Math.abs(ahead)} ms ${ahead < 0 ? 'behind' : 'ahead of'} this machine, to ${accuracy} ms`
  if (Math.abs(ahead) - accuracy <= CLOCKS_APART_MS) return ok(check, detail)
  return warning(check, `${detail}: more than ${CLOCKS_APART_MS} ms`, 'synchronize the clocks')
}

const WATERMARK = 'cluster.routing.allocation.disk.watermark'

export const checkDisk = ({ name, fs }: NodeStats, settings: Flat): Finding[] => {
  const check = `disk of Elasticsearch node ${name}`
  const { total_in_bytes: total, available_in_bytes: free } = fs?.total ?? {}
  // A node without data has no disk that counts.
  if (total === undefined || free === undefined) return []
  const detail = `${((free / total) * 100).toFixed(0)} % of ${(total / 1024 ** 3).toFixed(0)} GiB is free`
  const below = (['flood_stage', 'high', 'low'] as const).find(level => {
    const kept = bytesToKeep(settings, `${WATERMARK}.${level}`, total)
    return kept !== undefined && free < kept
  })
  if (below === undefined) return [ok(check, detail)]
  const told = `${detail}, below the watermark ${below}`
  const mend = 'free disk space, or add a node'
  if (below === 'low') return [warning(check, `${told}: no new shard is put there`, mend)]
  if (below === 'high') return [warning(check, `${told}: shards are moved away`, mend)]
  return [failed(check, `${told}: indices become read-only`, mend)]
}

/** Returns the free bytes below which the watermark is reached. A percentage is limited by `max_headroom`. */
const bytesToKeep = (settings: Flat, watermark: string, total: number): number | undefined => {
  const value = String(settings[watermark] ?? '')
  const [, percent] = /^([\d.]+)%$/.exec(value) ?? []
  const [, ratio] = /^((?:0?\.|1\.)\d+)$/.exec(value) ?? []
  if (percent === undefined && ratio === undefined) return bytesOf(value)
  const share = total * (1 - (percent === undefined ? Number(ratio) : Number(percent) / 100))
  return Math.min(share, bytesOf(String(settings[`${watermark}.max_headroom`] ?? '')) ?? Number.POSITIVE_INFINITY)
}

const units = ['b', 'kb', 'mb', 'gb', 'tb', 'pb']
/** Returns undefined if the text is no size: `-1` means none. */
const bytesOf = (text: string): number | undefined => {
  const [, number, unit] = /^([\d.]+)([kmgtp]?b)$/i.exec(text) ?? []
  return unit === undefined ? undefined : Number(number) * 1024 ** units.indexOf(unit.toLowerCase())
}
