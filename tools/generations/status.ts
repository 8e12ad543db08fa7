/** `commission projection status`: positions of a generation, and parked records; of one organization on request. */

import { assertSameSource, connectAdmin, describeSource, endOfPartition, fetchEnds } from '../../core/log/index.ts'
import type { Coverage, Send, TermsAnswer, Total } from '../../core/store/index.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { listKinds } from '../../schemas/stored/documents.ts'
import { type GenerationLayout, layoutOf } from '../../schemas/stored/layout.ts'
import type { KafkaContext } from '../context.ts'
import { assertRefreshed, wholeAnswer } from '../documents/shards.ts'
import { type ExitCode, exitCodes } from '../failures.ts'
import { identityOf, positionDocumentsOf, readAll, rolesOf, waitOf } from './generations.ts'

export type StatusOptions = {
  readonly generation: string | undefined
  readonly org: string | undefined
  readonly json: boolean
}

export const status = async (options: StatusOptions, context: KafkaContext): Promise<ExitCode> => {
  const { send, prefix, out, now } = context
  await using stack = new AsyncDisposableStack()
  const admin = await connectAdmin(context.kafka, stack)
  const generations = await readAll(context)
  const name = options.generation ?? generations.live
  const identity = await identityOf(name, undefined, context)
  const positions = await positionDocumentsOf(identity, context)
  // The ends of another cluster, or of a recreated topic, say nothing about this projection.
  assertSameSource(identity, await describeSource(admin, identity.topic))
  const ends = await fetchEnds(admin, identity.topic)
  const parked = await countParked(layoutOf(prefix, identity).indexOf('parked'), options.org, context)

  const ours = options.org === undefined ? undefined : partitionOf(options.org, identity.partitions)
  const partitions = positions.flatMap(({ position, serve_from = 0, removing, time }, partition) => {
    if (ours !== undefined && partition !== ours) return []
    const end = endOfPartition(partition, ends)
    const included = time === 0 ? null : new Date(time).toISOString()
    const [lag, lost] = [Math.max(0, end - position), Math.max(0, position - end)]
    return [
      { partition, position, end, lag, lost, included_up_to: included, serve_from, ...(removing && { removing }) },
    ]
  })
  const code = partitions.some(({ lost }) => lost > 0) ? exitCodes.failed : exitCodes.done
  const records =
    options.org === undefined ? undefined : await countRecords(options.org, layoutOf(prefix, identity), send)
  const { topic, rules_version } = identity
  const roles = rolesOf(name, identity.topic, generations)
  if (options.json) {
    out(
      `${JSON.stringify({ generation: name, roles, topic, rules_version, partitions, parked, ...(records && { records }) })}\n`,
    )
    return code
  }
  out(`generation ${name} (${roles.join(', ')}) of ${topic}, rules version ${rules_version}\n`)
  for (const one of partitions) {
    const { partition, position, end, lag, lost, included_up_to } = one
    const notes = [lost > 0 && lostText(lost), waitOf(one, end)].filter(note => note)
    const age = included_up_to === null ? '' : `, ${((now() - Date.parse(included_up_to)) / 1_000).toFixed(1)} s ago`
    out(
      `partition ${partition}: ${position} of ${end}, ${lag} behind; included up to ${included_up_to ?? 'nothing'}${age}${notes.map(note => `; ${note}`).join('')}\n`,
    )
  }
  const codes = Object.entries(parked).map(([code, count]) => `${count} ${code}`)
  out(`parked: ${codes.length === 0 ? 'none' : codes.join(', ')}\n`)
  if (records)
    out(
      `records: ${Object.entries(records)
        .map(([kind, count]) => `${count} ${kind}`)
        .join(', ')}\n`,
    )
  return code
}

/** `adopt` does not mend this: unless indices were restored, it keeps every position. */
const lostText = (lost: number): string =>
  `its topic ends ${lost} records before this position: docs/operating.md, records_deleted, says what to do`

const countParked = async (
  index: string,
  org: string | undefined,
  { send }: KafkaContext,
): Promise<Record<string, number>> => {
  const refreshed = await send<Coverage>({ method: 'POST', path: `/${index}/_refresh` })
  assertRefreshed(index, refreshed)
  const query = org === undefined ? { match_all: {} } : { term: { org_id: org } }
  const body = { size: 0, query, aggs: { codes: { terms: { field: 'code', size: 100 } } } }
  const path = `/${index}/_search`
  const { aggregations } = wholeAnswer(index, await send<TermsAnswer<'codes', string>>({ method: 'POST', path, body }))
  return Object.fromEntries(aggregations.codes.buckets.map(({ key, doc_count }) => [key, doc_count]))
}

/** Counts documents, replaced ones included. */
const countRecords = async (org: string, { searchOf }: GenerationLayout, send: Send) => {
  const counts: Record<string, number> = {}
  for (const kind of listKinds) {
    const { index, routing, filters } = searchOf([kind], org)
    const query = { bool: { filter: [...filters, { exists: { field: 'seq' } }] } }
    // Not `_count`: its answer does not tell whether its time was up.
    const answer = await send<Coverage & Total>({
      method: 'POST',
      path: `/${index}/_search`,
      query: { ...(routing !== undefined && { routing }) },
      body: { size: 0, query, track_total_hits: true },
    })
    counts[kind] = wholeAnswer(index, answer).hits.total.value
  }
  return counts
}
