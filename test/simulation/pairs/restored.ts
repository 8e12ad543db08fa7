/**
 * Pairs of commands after all indices were restored from a snapshot, while no projector runs: `adopt`, `rewind`,
 * `upgrade-keys`, and those that they meet. With `adopt-archive` the topics are on another cluster, too.
 *
 * Promises: after both commands ended and were run again, projectors start and make the documents of a projection
 * without faults. No command takes back what another one has changed: the version of the rules for keys, the source, a
 * dropped generation.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { partitionOf } from '../../../schemas/partition.ts'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  controlIndexOf,
  type GenerationDocument,
  generationId,
  positionId,
} from '../../../schemas/stored/documents.ts'
import {
  keyCreated,
  keyRevoked,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  periodRecorded,
  repRecorded,
} from '../../support/events.ts'
import { createRandom, type Random } from '../../support/random.ts'
import type { Broker } from '../broker.ts'
import { API_KEYS, EVENTS } from '../history.ts'
import { PREFIX } from '../promises.ts'
import { Index } from '../stored.ts'
import type { Running, Told } from './commands.ts'
import { createLog, entryOf, PARTITIONS, type PairLog } from './log.ts'
import { bringToEnd } from './run.ts'
import { type Kill, type PairVerdict, runAgain, runTogether, type Started, unclear, verdictOf } from './together.ts'
import { assertLiveIs, remainsOf } from './truth.ts'
import { createBases, type Indices, quietContentOf, World } from './world.ts'

const taking = ['adopt', 'rewind', 'adopt-archive', 'upgrade-keys'] as const
const others = ['swap', 'rollback', 'drop', 'rebuild', 'verify', 'replay'] as const
type Name = (typeof taking)[number] | (typeof others)[number] | 'alone'

export const restoredPairs: readonly (readonly [Name, Name])[] = taking.flatMap((name, at) => [
  [name, 'alone'] as const,
  ...[...taking.slice(at), ...others].map(other => [name, other] as const),
])

type Base = { readonly log: PairLog; readonly indices: Indices; readonly snapshotStart: number }
const bases = new Map<boolean, Promise<Base>>()
const baseOf = (isSwapped: boolean): Promise<Base> => {
  const base = bases.get(isSwapped) ?? createBase(isSwapped)
  bases.set(isSwapped, base)
  return base
}

/** A copy from a time after positions were kept; records were published and projected after it. */
const createBase = async (isSwapped: boolean): Promise<Base> => {
  const log = createLog(createRandom(1), true)
  const { beside, swapped } = await createBases(log)
  const world = new World(log, isSwapped ? swapped : beside, createRandom(1))
  world.startProjector()
  await world.untilCaughtUp()
  await world.pass(130_000)
  for (const partition of world.broker.topic(EVENTS).partitions) partition.end += 2
  await world.untilCaughtUp()
  const snapshotStart = world.clock.now()
  const copies = new Map([...world.engine.indices].map(([name, index]) => [name, copyOf(index)]))
  publishLost(world, log.organizations)
  await world.untilCaughtUp()
  // All documents of the lost records, and none of their positions.
  const indices = new Map([...world.engine.indices].map(([name, index]) => [name, copyOf(index)]))
  const control = copies.get(controlIndexOf(PREFIX))
  if (control) indices.set(control.name, control)
  if (world.failure !== undefined) throw new Error(world.failure)
  const before = (log.log[EVENTS] ?? []).map(entries => entries.length)
  return { log: { ...log, before }, indices, snapshotStart }
}

/**
 * Publishes records that no log has any more: documents of each kind are made or touched. Afterwards other records are
 * at their offsets.
 */
const publishLost = ({ broker, clock }: World, organizations: readonly string[]): void => {
  const publish = (topic: string, partition: number, records: readonly Outgoing[]): void => {
    const lost = broker.topic(topic).partitions[partition]
    if (lost === undefined) return
    lost.entries.splice(lost.end)
    for (const record of records) lost.append(offset => entryOf(record, offset, clock.now()))
  }
  for (const org_id of organizations) {
    publish(EVENTS, partitionOf(org_id, PARTITIONS), [
      repRecorded({ org_id, id: 'rep_1', name: LOST }),
      repRecorded({ org_id, id: `rep_${LOST}` }),
      periodRecorded({ org_id, name: LOST }),
      payoutCalculated({ org_id, id: `payout_${LOST}`, supersedes_id: 'payout_1x4' }),
      payoutCalculated({ org_id, id: `payout_${LOST}2`, rep_id: `rep_${LOST}` }),
      payrollRecorded({ org_id, id: `payroll_${LOST}`, rep_id: `rep_${LOST}`, payout_id: `payout_${LOST}2` }),
      payoutCalculated({ org_id, id: `payout_${LOST}3`, rep_id: 'rep_unknown' }),
    ])
  }
  const [org_id = ''] = organizations
  publish(API_KEYS, 0, [
    keyRevoked({ org_id, id: 'key_1' }),
    keyCreated({ org_id, id: `key_${LOST}`, text: `ck_pair_${LOST}_0000000000` }),
  ])
}
const LOST = 'lost'

/** A restored index has another id. */
const copyOf = (index: Index): Index => {
  const copy = new Index(index.name, index.definition, `uuid-of-the-copy-of-${index.name}`)
  for (let shard = 0; shard < index.shards; shard++) index.copyShardTo(shard, copy)
  return copy
}

export const runRestored = async (pair: readonly [string, string], seed: number, kill: Kill): Promise<PairVerdict> => {
  const random = createRandom(seed)
  const isTurned = pair[1] !== 'alone' && !kill.isFrozen && random.chance(0.5)
  const [a, b] = (isTurned ? [pair[1], pair[0]] : pair) as readonly [Name, Name]
  const names: readonly Name[] = [a, b]
  const isSwapped = names.includes('rollback')
  const { log, indices, snapshotStart } = await baseOf(isSwapped)
  const world = new World(log, indices, random, random.pick([1, 5, 40]))
  await passUntil(world, snapshotStart + 90_000)
  const directory = mkdtempSync(join(tmpdir(), 'pair-'))
  try {
    const archive = join(directory, 'archive')
    let other: Broker | undefined
    if (names.includes('adopt-archive')) {
      const archived = await world.alone({ name: 'archive', directory: archive })
      if (archived.code !== 0) return verdictOf(`the archive: ${archived.said.join(' | ')} ${archived.error}`, [])
      other = world.createBroker(log.log, 'another')
    }
    if (names.includes('upgrade-keys')) useFirstKeyRules(world)
    const start = (name: Name): Started | undefined => {
      const told = tell(name, isSwapped, snapshotStart, archive, random)
      return told && { told, ...(other && { broker: other }) }
    }
    const starts = [start(a), start(b)] as const
    if (starts[0] === undefined) throw new Error('a pair without its first command')
    const running = await runTogether(world, [starts[0], starts[1]], random, kill, 0.4)
    const failure =
      world.failure ??
      running.map(unclear).find(found => found !== undefined) ??
      (await finish(world, starts, running, names, other))
    return verdictOf(failure, running)
  } finally {
    await world.release()
    rmSync(directory, { recursive: true })
  }
}

/** The clock moves only to an event. */
const passUntil = async ({ clock }: World, time: number): Promise<void> => {
  const milliseconds = time - clock.now()
  clock.after(milliseconds, () => undefined)
  await clock.runUntil(() => false, milliseconds)
}

/**
 * Freezes the first command at each of its requests until the second is over. Returns the first failure, and how often
 * a command was refused because the other one had changed what it had read.
 */
export const runFrozen = async (pair: readonly [string, string], seed: number) => {
  const [steps] = (await runRestored(pair, seed, { who: 'first', at: 0 })).steps
  let refused = 0
  for (let at = 1; at <= steps; at++) {
    const { failure, outcomes } = await runRestored(pair, seed, { who: 'first', at, isFrozen: true })
    if (failure !== undefined) return { failure: `request ${at}: ${failure}`, refused }
    if (/changed by another command|somebody drops|changed meanwhile/.test(outcomes.join())) refused++
  }
  return { failure: undefined, refused }
}

const tell = (
  name: Name,
  isSwapped: boolean,
  snapshotStart: number,
  archive: string,
  random: Random,
): Told | undefined => {
  const [live, spare] = isSwapped ? ['g2', 'g1'] : ['g1', 'g2']
  switch (name) {
    case 'alone':
      return undefined
    case 'rewind':
      return { name, snapshotStart }
    case 'adopt-archive':
      return { name, directory: archive }
    case 'swap':
      return { name, generation: spare, ...(random.chance(0.3) && { force: 'simulated' }) }
    case 'drop':
      return { name, generation: spare }
    case 'verify':
      return { name, a: live, b: spare }
    case 'replay':
      return { name, sandbox: 's1' }
    case 'adopt':
    case 'upgrade-keys':
    case 'rollback':
    case 'rebuild':
      return { name }
  }
}

/** Runs the commands again, like an operator, takes the indices over, and lets projectors catch up. */
const finish = async (
  world: World,
  starts: readonly (Started | undefined)[],
  together: readonly Running[],
  names: readonly Name[],
  other: Broker | undefined,
): Promise<string | undefined> => {
  const takenBack = (all: readonly Running[]) => all.map(one => isTakenBack(one, world)).find(Boolean)
  const lost = takenBack(together)
  if (lost !== undefined) return lost
  const again = await runAgain(world, starts)
  if (again.failure !== undefined) return `run again: ${again.failure}`
  const all = [...together, ...again.running]
  const has = (name: Name): boolean => all.some(({ told, code }) => told.name === name && code === 0)
  for (const name of ['adopt-archive', 'upgrade-keys'] as const) {
    if (names.includes(name) && !has(name)) return `${name} could not be done: ${describe(again.running)}`
  }
  if (other) world.broker = other
  const adopting = await world.alone({ name: 'adopt' })
  if (adopting.code !== 0) return `adopt could not be done: ${describe([adopting])}`
  const later = takenBack(all)
  if (later !== undefined) return later
  world.startProjector()
  await world.untilCaughtUp()
  const left = keysOf(world).filter(source => source.includes(LOST) || source.includes('"revoked":true'))
  if (left.length > 0) return `keys that no log has: ${left.join(', ')}`
  const quiet = await quietContentOf(world)
  return world.failure ?? assertLiveIs(world, quiet) ?? (await bringToEnd(world, quiet))
}

const keysOf = ({ engine }: World): string[] =>
  [...(engine.indices.get(apiKeysIndexOf(PREFIX))?.documents.values() ?? [])].map(({ source }) => source)

/** Whether another command has taken back what this one has done. */
const isTakenBack = ({ told, code }: Running, world: World): string | undefined => {
  if (code !== 0) return undefined
  const [live, keys] = [world.live()?.generation ?? '', API_KEYS_GENERATION].map(name => generationOf(world, name))
  if (told.name === 'upgrade-keys' && keys?.rules_version !== 2) {
    return `the keys have version ${keys?.rules_version} of the rules after ${told.name}`
  }
  if (told.name === 'adopt-archive') {
    const clusters = [live?.cluster_id, keys?.cluster_id]
    return clusters.every(id => id === 'another') ? undefined : `${told.name} made ${clusters} the source`
  }
  if (told.name !== 'drop') return undefined
  const left = remainsOf(PREFIX, told.generation, world)
  return left.length > 0 ? `${told.generation} was dropped, but ${left.join(', ')} exists` : undefined
}

const describe = (running: readonly Running[]): string =>
  running.map(({ told, said, error }) => `${told.name}: ${said.join(' | ')} ${error}`).join('; ')

const generationOf = ({ engine }: World, name: string): GenerationDocument['body'] | undefined => {
  const stored = engine.indices.get(controlIndexOf(PREFIX))?.documents.get(generationId(name))
  return stored && (stored.fields as GenerationDocument).body
}

/** An older program made the projection of the keys, and has read none yet. */
const useFirstKeyRules = ({ engine }: World): void => {
  const change = (id: string, changes: object): void => {
    const control = engine.indices.get(controlIndexOf(PREFIX))
    const stored = control?.documents.get(id)
    if (stored === undefined) throw new Error(`there is no ${id}`)
    const { kind, body } = stored.fields as { kind: string; body: object }
    control?.replace({ _id: id }, stored.seqNo, JSON.stringify({ kind, body: { ...body, ...changes } }))
  }
  change(generationId(API_KEYS_GENERATION), { rules_version: 1 })
  change(positionId(API_KEYS_GENERATION, 0), { position: 0, last: null })
  for (const id of engine.indices.get(apiKeysIndexOf(PREFIX))?.documents.keys() ?? [])
    engine.indices.get(apiKeysIndexOf(PREFIX))?.delete({ _id: id })
}
