/** Checks after two commands: the output of each was true, and interrupted work can be finished. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { partitionOf } from '../../../schemas/partition.ts'
import { controlIndexOf, indexOf, type Kind, kinds, parkedId } from '../../../schemas/stored/documents.ts'
import { sandboxPrefixOf } from '../../../schemas/stored/sandboxes.ts'
import { asOf } from '../../../tools/documents/as-of.ts'
import { CommandError } from '../../../tools/failures.ts'
import { EVENTS } from '../history.ts'
import { documentsOf } from '../layouts.ts'
import { PREFIX } from '../promises.ts'
import type { Running } from './commands.ts'
import { contentOf, type World } from './world.ts'

/** Returns why the output of a command was not true; undefined if it was. */
export const isTrue = (running: Running, others: readonly Running[], world: World): string | undefined => {
  const { told, code, error, said, ended } = running
  if (ended === undefined) return running.host.isDead ? undefined : `${told.name} never ended: ${said.join(' | ')}`
  if (error !== undefined) {
    if (error instanceof CommandError) return undefined
    return `${told.name} failed: ${error instanceof Error ? error.stack : String(error)}`
  }
  const dropped = others.flatMap(({ told: other }) =>
    other.name === 'drop' || other.name === 'drop sandbox' ? [other.generation] : [],
  )
  if (told.name === 'rebuild') {
    const { generation } = JSON.parse(running.out[0] ?? '{}') as { generation: string }
    if (dropped.includes(generation) || world.kept().includes(generation)) return undefined
    return `rebuild made ${generation}, but it is not kept up`
  }
  if (told.name === 'swap' || told.name === 'rollback') return saidLive(running, world)
  if (told.name === 'drop' || told.name === 'drop sandbox') {
    const prefix = told.name === 'drop' ? PREFIX : sandboxPrefixOf(PREFIX)
    const found = remainsOf(prefix, told.generation, world)
    // A replay may have created the sandbox again afterwards.
    const isAgain = others.some(other => other.told.name === 'replay')
    return found.length === 0 || isAgain ? undefined : `${told.generation} was dropped, but ${found.join(', ')} exists`
  }
  if (told.name === 'verify') return isNoted(running, [told.a, told.b], dropped, world)
  if (told.name === 'replay') return dropped.includes(told.sandbox) ? undefined : isReplayed(told.sandbox, world)
  if (told.name === 'publish-again') return isPublished(running, world)
  return code === 0 ? undefined : `${told.name} ended with ${code}: ${said.join(' | ')}`
}

const saidLive = ({ told, out, began, ended = 0 }: Running, { lives }: World): string | undefined => {
  const { live } = JSON.parse(out[0] ?? '{}') as { live: string }
  const isSeen = lives.some(({ time, live: { generation } }, place) => {
    const until = lives[place + 1]?.time ?? Number.POSITIVE_INFINITY
    return generation === live && time <= ended && until >= began
  })
  return isSeen ? undefined : `${told.name} said that ${live} is live, but it never was`
}

const isNoted = ({ code, said }: Running, names: string[], dropped: string[], world: World): string | undefined => {
  if (code !== 0) return `verify found a difference: ${said.join(' | ')}`
  if (said.some(line => line.includes('cannot use this result')) || names.some(name => dropped.includes(name)))
    return undefined
  const found = world.live()?.compared?.[names.sort().join(' ')]?.found
  return found === 'equal' ? undefined : `verify noted nothing: ${found}`
}

/** The sandbox must hold the same documents as the live generation as of its bounds. */
const isReplayed = (sandbox: string, world: World): string | undefined => {
  const prefix = sandboxPrefixOf(PREFIX)
  const control = world.engine.indices.get(controlIndexOf(prefix))
  const made = control?.documents.get(`generation:${sandbox}`)?.fields.body as
    | { sandbox: { bounds: number[] } }
    | undefined
  if (made === undefined) return `${sandbox} was made, but does not exist`
  const { bounds } = made.sandbox
  const live = world.live()?.generation ?? ''
  return allAsOf(prefix, sandbox, bounds, world) === allAsOf(PREFIX, live, bounds, world)
    ? undefined
    : `${sandbox} differs from ${live} as of ${bounds.join(', ')}`
}

const allAsOf = (prefix: string, generation: string, bounds: readonly number[], { engine }: World): string =>
  documentsOf(engine, prefix, generation)
    .flatMap(({ kind, stored: { id }, source }) => {
      const fields = JSON.parse(source)
      const then = asOf(kind, { id, source: fields }, boundOf(kind, fields, bounds))
      return then === undefined ? [] : [`${kind} ${then.id} ${JSON.stringify(then.source)}`]
    })
    .sort()
    .join('\n')

const boundOf = (kind: Kind, fields: Readonly<Record<string, unknown>>, bounds: readonly number[]): number =>
  bounds[kind === 'parked' ? Number(fields.partition) : partitionOf(String(fields.org_id), bounds.length)] ?? 0

type Result = { readonly outcome: string; readonly published: string | null }

/** Each record that was sent must have its reported outcome in the live generation. */
const isPublished = ({ out }: Running, world: World): string | undefined => {
  const parked = world.engine.indices.get(indexOf(PREFIX, world.live()?.generation ?? '', 'parked'))
  for (const line of out) {
    const { outcome, published } = JSON.parse(line) as Result
    const isParked = published !== null && parked?.documents.has(published) === true
    if (isParked !== (outcome === 'parked_again')) return `a record was reported as ${outcome}, but is not: ${line}`
  }
  return undefined
}

/** Returns the ids of documents and the names of indices that exist of a generation. */
export const remainsOf = (prefix: string, generation: string, { engine }: World): string[] => {
  const named = (id: string): boolean =>
    [`generation:${generation}`, `times:${generation}`].includes(id) ||
    (/^(?:position|past|written):/.test(id) && id.split(':')[1] === generation)
  const documents = [...(engine.indices.get(controlIndexOf(prefix))?.documents.keys() ?? [])].filter(named)
  return [
    ...documents,
    ...kinds.map(kind => indexOf(prefix, generation, kind)).filter(name => engine.indices.has(name)),
  ]
}

/** An export must hold every record once. */
export const isExported = (directory: string): string | undefined => {
  for (const file of existsSync(directory) ? readdirSync(directory).filter(name => name.endsWith('.ndjson')) : []) {
    const ids = readFileSync(join(directory, file), 'utf8')
      .trim()
      .split('\n')
      .map(line => (line === '' ? '' : String((JSON.parse(line) as { id: string }).id)))
    if (new Set(ids).size < ids.length) return `${file} has a record twice`
  }
  return undefined
}

export const assertLiveIs = (world: World, quiet: string): string | undefined => {
  for (const generation of world.kept()) {
    if (contentOf(world, generation) !== quiet) return `${generation} differs from a projection without faults`
  }
  return undefined
}

export const parkedIdOf = (partition: number, offset: number): string => parkedId(EVENTS, partition, offset)
