/** What there is: generations by name, each with what it is to readers and how far it is. */
import type { Admin } from 'kafkajs'
import { multiGet } from '../../projector/elasticsearch.ts'
import { type Generations, readGenerations } from '../../projector/generations.ts'
import { readGeneration } from '../../projector/prepare.ts'
import type { Identity } from '../../projector/source.ts'
import {
  controlIndexOf,
  generationId,
  indexOf,
  kinds,
  type PositionDocument,
  positionId,
} from '../../schemas/documents.ts'
import type { CommandContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'

/** @throws CommandError where nothing was projected under this prefix */
export const readAll = async ({ send, prefix }: CommandContext): Promise<Generations> => {
  const generations = await readGenerations({ request: send, prefix })
  if (generations) return generations
  throw new CommandError(`nothing is projected under ELASTICSEARCH_INDEX_PREFIX=${prefix}`)
}

/** @throws CommandError for a name that is none */
export const identityOf = async (name: string, { send, prefix }: CommandContext): Promise<Identity> => {
  const identity = await readGeneration(name, { request: send, prefix })
  if (identity) return identity
  throw new CommandError(`there is no generation ${name} (npm run projection -- list)`)
}

/** The published position of every partition, in order. */
export const positionsOf = async (
  { generation, partitions }: Pick<Identity, 'generation' | 'partitions'>,
  { send, prefix }: CommandContext,
): Promise<PositionDocument['body'][]> => {
  const _index = controlIndexOf(prefix)
  const docs = Array.from({ length: partitions }, (_, partition) => ({
    _index,
    _id: positionId(generation, partition),
  }))
  return (await multiGet(send, docs)).map((found, partition) => {
    if (found.found) return (found._source as PositionDocument).body
    throw new CommandError(`generation ${generation} has no position for partition ${partition}`)
  })
}

/** @throws CommandError for two that nobody could compare */
export const assertOfOneSource = (a: Identity, b: Identity): void => {
  for (const field of ['topic', 'cluster_id', 'partitions'] as const) {
    if (a[field] === b[field]) continue
    throw new CommandError(`they are of different sources: ${field} is ${a[field]} and ${b[field]}`)
  }
}

/** Deletes one that nobody reads or writes any more. Its own document goes last: until then it can be dropped again. */
export const deleteGeneration = async (
  { generation, partitions }: Identity,
  group: string,
  admin: Admin,
  { send, prefix }: CommandContext,
): Promise<void> => {
  for (const kind of kinds) await send({ method: 'DELETE', path: `/${indexOf(prefix, generation, kind)}` })
  await admin.deleteGroups([group]).catch(() => undefined)
  const ids = Array.from({ length: partitions }, (_, partition) => positionId(generation, partition))
  for (const id of [...ids, generationId(generation)]) {
    await send({ method: 'DELETE', path: `/${controlIndexOf(prefix)}/_doc/${encodeURIComponent(id)}` })
  }
}

export const namesOf = ({ live, kept, building, previous }: Generations): string[] => [
  ...new Set([live, ...kept, ...(building === null ? [] : [building]), ...(previous === null ? [] : [previous])]),
]

/** What a generation is, in words. */
export const rolesOf = (name: string, { live, kept, building, previous, verified }: Generations): string[] => [
  ...(name === live ? ['live'] : []),
  ...(name === previous ? ['previous'] : []),
  ...(name === building ? ['building'] : []),
  ...(name !== live && kept.includes(name) ? ['kept up'] : []),
  ...(verified[name] === undefined ? [] : [`equal to ${verified[name]}`]),
]

export const list = async ({ json }: { readonly json: boolean }, context: CommandContext): Promise<ExitCode> => {
  const generations = await readAll(context)
  for (const name of namesOf(generations)) {
    const { rules_version, topic, partitions, follows } = await identityOf(name, context)
    const positions = await positionsOf({ generation: name, partitions }, context)
    const records = positions.reduce((sum, { position }) => sum + position, 0)
    const isFollowing = follows !== undefined && generations.alone[name] === undefined
    const roles = [...rolesOf(name, generations), ...(isFollowing ? [`follows ${follows}`] : [])]
    if (json) context.out(`${JSON.stringify({ generation: name, roles, rules_version, topic, records })}\n`)
    else context.out(`${name}  ${roles.join(', ')}; rules version ${rules_version}; ${records} records of ${topic}\n`)
  }
  return exitCodes.done
}
