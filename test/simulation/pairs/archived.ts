/**
 * Pairs of commands that work on one archive, or that restore into the same topics, or on the same seal keys:
 * `archive` with and without `--sign`, `archive verify`, `restore` with and without `--redact`, `replay
 * --from-archive`, `subjects erase`, `keys rotate`.
 *
 * Promises: after both commands ended and were run again, the archive is whole and has every offset; the topics have
 * the archived log or the redacted one, or a command says that the topic must be made anew; keys are erased with one
 * receipt each; no command says more than it has done.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSigningKey, textOfSigningKey, textOfVerifierKey } from '../../../core/runtime/index.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { verifyEvidence } from '../../../tools/evidence/verify.ts'
import { CommandError } from '../../../tools/failures.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { sealKey } from '../../support/seal.ts'
import type { Broker } from '../broker.ts'
import { API_KEYS, type Entry, EVENTS } from '../history.ts'
import type { Running, Told } from './commands.ts'
import { createLog, sealKeysOf } from './log.ts'
import { bringToEnd } from './run.ts'
import { type Kill, type PairVerdict, runAgain, runTogether, type Started, unclear, verdictOf } from './together.ts'
import { assertLiveIs, isTrue } from './truth.ts'
import { createBases, quietContentOf, World } from './world.ts'

type Name =
  | 'archive'
  | 'archive-signed'
  | 'archive-verify'
  | 'restore'
  | 'redact'
  | 'replay-archive'
  | 'erase'
  | 'rotate'
  | 'swap'
  | 'drop'
  | 'rebuild'
  | 'upgrade-keys'
  | 'alone'

const own: readonly Name[] = ['archive', 'archive-verify', 'restore', 'redact', 'replay-archive']
export const archivedPairs: readonly (readonly [Name, Name])[] = [
  ...own.flatMap((name, at) => [[name, 'alone'] as const, ...own.slice(at).map(other => [name, other] as const)]),
  ...(['alone', 'archive', 'archive-signed'] as const).map(other => ['archive-signed', other] as const),
  // Only these meet in Elasticsearch.
  ...(['swap', 'drop', 'rebuild'] as const).map(other => ['replay-archive', other] as const),
  ...(['alone', 'erase', 'redact', 'swap', 'drop', 'rebuild', 'replay-archive'] as const).map(
    other => ['erase', other] as const,
  ),
  ...(['alone', 'rotate'] as const).map(other => ['rotate', other] as const),
]

const pairLog = createLog(createRandom(1), true)
const [org = ''] = pairLog.organizations
let bases: ReturnType<typeof createBases> | undefined

type Place = {
  readonly archive: string
  /** The file of the key that signs it. */
  readonly sign: string
  readonly keys: string
  readonly changes: string
  /** The cluster with the topics that are restored. */
  readonly target: Broker
}

export const runArchived = async (pair: readonly [string, string], seed: number, kill: Kill): Promise<PairVerdict> => {
  const random = createRandom(seed)
  const isTurned = pair[1] !== 'alone' && !kill.isFrozen && random.chance(0.5)
  const names = (isTurned ? [pair[1], pair[0]] : [...pair]) as Name[]
  bases ??= createBases(pairLog)
  const { beside } = await bases
  const world = new World(pairLog, beside, random, random.pick([1, 5, 40]))
  const folder = mkdtempSync(join(tmpdir(), 'pair-'))
  try {
    const target = world.createBroker(emptyLog, 'simulated')
    const place = {
      archive: join(folder, 'archive'),
      sign: join(folder, 'signing.key'),
      keys: join(folder, 'keys'),
      changes: join(folder, 'changes'),
      target,
    }
    await makeFiles(world, place, names, random)
    world.startProjector()
    const starts = names.map(name => tell(name, place, random))
    const [first, second] = starts
    if (first === undefined) throw new Error('a pair without its first command')
    const running = await runTogether(world, [first, second], random, kill)
    const failure =
      world.failure ??
      running.map(unclear).find(found => found !== undefined) ??
      running.map(one => isTold(one, running, place, world)).find(found => found !== undefined) ??
      (await finish(world, starts, running, names, place))
    return verdictOf(failure, running)
  } finally {
    await world.release()
    rmSync(folder, { recursive: true })
  }
}

/** The bytes of its signatures change no schedule. */
const signingKey = createSigningKey('simulation')
const isArchive = (name: Name): boolean => name === 'archive' || name === 'archive-signed'

const emptyLog = { [EVENTS]: pairLog.log[EVENTS]?.map(() => []) ?? [], [API_KEYS]: [[]] }

/** An archive of the first records; the topics have more. Of a restore, the archive is mostly whole. */
const makeFiles = async (world: World, place: Place, names: readonly Name[], random: Random): Promise<void> => {
  mkdirSync(place.keys)
  writeFileSync(place.sign, `${textOfSigningKey(signingKey)}\n`)
  for (const id of pairLog.organizations.flatMap(sealKeysOf)) writeFileSync(join(place.keys, `${id}.key`), sealKey(id))
  const isGrowing = names.some(isArchive)
  if (!isGrowing || random.chance(0.3)) world.publishAll()
  if (isGrowing && random.chance(0.3)) return
  const { code, said, error } = await world.alone({ name: 'archive', directory: place.archive })
  if (code !== 0) throw new Error(`the archive: ${said.join(' | ')} ${error}`)
  world.publishAll()
}

const tell = (
  name: Name,
  { archive: directory, sign, keys, changes, target }: Place,
  random: Random,
): Started | undefined => {
  const told = (one: Told): Started => ({ told: one })
  switch (name) {
    case 'alone':
      return undefined
    case 'restore':
      return { told: { name, directory, keys }, broker: target }
    case 'redact':
      return {
        told: { name, directory, keys, redact: { org, rep: 'rep_1', changes, also: [], keepUnclear: true } },
        broker: target,
      }
    case 'replay-archive':
      return told({ name, directory, sandbox: 's1' })
    case 'erase':
      return told({ name, org, rep: random.chance(0.7) ? 'rep_3' : 'rep_4', keys })
    case 'rotate':
      return told({ name, org, id: 'key_1' })
    case 'swap':
    case 'drop':
      return told({ name, generation: 'g2' })
    case 'rebuild':
    case 'upgrade-keys':
      return told({ name })
    case 'archive-signed':
      return told({ name: 'archive', directory, sign })
    case 'archive':
    case 'archive-verify':
      return told({ name, directory })
  }
}

/** Whether a command that said that it is done has done it, at its end. */
const isTold = (running: Running, all: readonly Running[], place: Place, world: World): string | undefined => {
  const { told, code, error } = running
  // An archive that another command writes, or that none has begun, may be none; it is never damaged.
  if (error instanceof Error && error.name === 'ArchiveDamaged') return `${told.name}: ${error.message}`
  if (code !== 0) return undefined
  if (told.name === 'erase') return areErased(place.keys, keysOf(told.rep))
  if (told.name === 'rotate') return isPublished(running, world)
  if (told.name === 'swap' || told.name === 'drop' || told.name === 'rebuild') {
    return isTrue(
      running,
      all.filter(other => other !== running),
      world,
    )
  }
  return undefined
}

const keysOf = (rep: string): readonly string[] => {
  const [a = '', b = '', c = ''] = sealKeysOf(org)
  return rep === 'rep_3' ? [a, b] : [c]
}

const areErased = (keys: string, ids: readonly string[]): string | undefined => {
  const names = readdirSync(keys)
  for (const id of ids) {
    if (names.includes(`${id}.key`)) return `the key ${id} is still there`
    if (!names.includes(`${id}.erased.json`)) return `the key ${id} has no receipt`
  }
  return undefined
}

/** Each receipt is whole, and names its key. */
const areReceiptsWhole = (keys: string): string | undefined => {
  for (const name of readdirSync(keys)) {
    if (!name.endsWith('.erased.json')) continue
    const text = readFileSync(join(keys, name), 'utf8')
    if (!text.endsWith('}\n') || !text.includes(`"key_id": "${name.replace('.erased.json', '')}"`)) {
      return `the receipt ${name} is not whole: ${text}`
    }
  }
  return undefined
}

/** Every shown key is in the topic, and not parked. */
const isPublished = ({ out }: Running, { broker }: World): string | undefined => {
  const published = broker.topic(API_KEYS).partitions[0]?.entries.map(({ published: { value } }) => String(value)) ?? []
  for (const line of out) {
    const { id } = JSON.parse(line) as { id: string }
    if (!published.some(value => value.includes(`"id":"${id}"`))) return `the key ${id} was shown, but is not published`
  }
  return undefined
}

const finish = async (
  world: World,
  starts: readonly (Started | undefined)[],
  together: readonly Running[],
  names: readonly Name[],
  place: Place,
): Promise<string | undefined> => {
  const broken = areReceiptsWhole(place.keys) ?? (await areNotesWhole(names, place))
  // A receipt that a killed command left half is mended by nobody.
  if (broken !== undefined) return broken
  // As it asks for: it refuses until the projector has read all events of keys.
  if (names.includes('rotate')) await world.untilCaughtUp()
  const again = await runAgain(world, starts)
  const told = again.running.map(one => isTold(one, again.running, place, world)).find(found => found !== undefined)
  if (again.failure ?? told) return `run again: ${again.failure ?? told}`
  return (
    (await finishArchive(world, names, place)) ??
    (await finishRestore(world, starts, again.running, names, place)) ??
    finishKeys(again.running, names, place) ??
    areReceiptsWhole(place.keys) ??
    (await finishProjection(world, [...together, ...again.running]))
  )
}

/** The archive can be completed, is whole, and has every offset. */
const finishArchive = async (
  world: World,
  names: readonly Name[],
  { archive, sign }: Place,
): Promise<string | undefined> => {
  if (!names.some(name => own.includes(name) || isArchive(name))) return undefined
  for (const name of ['archive', 'archive-verify'] as const) {
    const { code, said, error, out } = await world.alone({ name, directory: archive })
    if (code !== 0) return `${name} afterwards: ${said.join(' | ')} ${error}`
    const { offsets } = JSON.parse(out[0] ?? '{}') as { offsets: number }
    const expected = [EVENTS, API_KEYS].flatMap(topic => world.broker.topic(topic).partitions)
    const wanted = expected.reduce((sum, { end }) => sum + end, 0)
    if (offsets !== wanted) return `${name} afterwards: expected ${wanted} offsets, got ${offsets}`
  }
  if (!names.includes('archive-signed')) return undefined
  const { code, said, error } = await world.alone({ name: 'archive', directory: archive, sign })
  if (code !== 0) return `archive --sign afterwards: ${said.join(' | ')} ${error}`
  const after = await differencesIn(archive)
  return after.length === 0 ? undefined : `signed to its end: ${after.join(' | ')}`
}

/** Each note that a killed run left is of a whole archive: only its end may be unsigned. */
const areNotesWhole = async (names: readonly Name[], { archive }: Place): Promise<string | undefined> => {
  if (!names.includes('archive-signed')) return undefined
  const differences = await differencesIn(archive).catch((error: unknown) => {
    // There is no archive yet, or it was only begun.
    if (error instanceof CommandError) return []
    throw error
  })
  return differences.find(one => !UNSIGNED_END.some(text => one.includes(text)))
}
const UNSIGNED_END = ['it is not the signed one', 'the manifest does not name it', 'is not signed', 'this file is lost']

const differencesIn = async (address: string): Promise<readonly string[]> => {
  const out: string[] = []
  const nothing = { say: () => undefined, draw: undefined, elapsed: () => 0, sleep: async () => undefined }
  const target = { openTarget: async () => directoryTarget(address), signal: new AbortController().signal }
  const keys = [textOfVerifierKey(signingKey.verifier)]
  await verifyEvidence({ address, keys, json: true }, { out: text => void out.push(text), ...nothing, ...target })
  return (JSON.parse(out.join('')) as { differences: string[] }).differences
}

/** A last restore ends with the log of the archive or the redacted one, after the topics were made anew if needed. */
const finishRestore = async (
  world: World,
  starts: readonly (Started | undefined)[],
  again: readonly Running[],
  names: readonly Name[],
  { target }: Place,
): Promise<string | undefined> => {
  const last = starts.findLast(one => one?.told.name === 'restore' || one?.told.name === 'redact')
  if (last === undefined) return undefined
  const before = again.find(({ told }) => told === last.told)
  if (before?.code === 0) {
    const wrong = isRestored(world, target, last.told.name === 'redact')
    // The archive may have grown since.
    if (wrong !== undefined && !names.includes('archive')) return `it was restored, but ${wrong}`
  }
  let restored = await world.alone(last.told, last.broker)
  if (restored.code !== 0) {
    for (const topic of [EVENTS, API_KEYS]) target.makeAnew(topic)
    restored = await world.alone(withOtherList(last.told), last.broker)
  }
  if (restored.code !== 0) return `${last.told.name} into new topics: ${restored.said.join(' | ')} ${restored.error}`
  return isRestored(world, target, last.told.name === 'redact')
}

/** If the archive has grown, the list of changes is another one, and a list is never replaced. */
const withOtherList = <Given extends Told>(told: Given): Given =>
  'redact' in told && told.redact !== undefined
    ? { ...told, redact: { ...told.redact, changes: `${told.redact.changes}-of-new-topics` } }
    : told

const isRestored = ({ broker }: World, target: Broker, isRedacted: boolean): string | undefined => {
  for (const topic of [EVENTS, API_KEYS]) {
    for (const [partition, { entries, end }] of broker.topic(topic).partitions.entries()) {
      const got = target.topic(topic).partitions[partition]
      if (got?.end !== end) return `partition ${partition} of ${topic} ends at ${got?.end}, not at ${end}`
      const texts = got.entries.map(textOf)
      const differs = entries.slice(0, end).findIndex((entry, offset) => textOf(entry) !== texts[offset])
      if (differs === -1) continue
      const isOfRep = String(entries[differs]?.message.value).includes('rep_1')
      if (!isRedacted || !isOfRep) return `partition ${partition} of ${topic} differs at offset ${differs}`
    }
    if (target.timestampTypeOf(topic) !== 'LogAppendTime') return `${topic} keeps the times of its publishers`
    if (target.settingsOf(topic).has('message.timestamp.after.max.ms')) return `${topic} takes any time`
  }
  return undefined
}

const textOf = ({ kind, message: { offset, timestamp, key, value, headers } }: Entry): string =>
  kind === 'record' ? `${offset} ${timestamp} ${key} ${value} ${headers.bytes.toString('hex')}` : 'hole'

const finishKeys = (again: readonly Running[], names: readonly Name[], { keys }: Place): string | undefined => {
  for (const { told, said, error, code } of again) {
    if (told.name !== 'erase' && told.name !== 'rotate') continue
    if (code !== 0) return `${told.name} afterwards: ${said.join(' | ')} ${error}`
  }
  const erased = again.flatMap(({ told }) => (told.name === 'erase' ? keysOf(told.rep) : []))
  const left = pairLog.organizations.flatMap(sealKeysOf).filter(id => !erased.includes(id))
  const there = readdirSync(keys)
  const lost = left.find(id => !there.includes(`${id}.key`))
  if (lost !== undefined) return `the key ${lost} of somebody else is gone`
  if (names.includes('redact') && !there.some(name => /^redacted-.*\.erased\.json$/.test(name))) {
    return 'the redaction has no receipt'
  }
  return areErased(keys, erased)
}

const finishProjection = async (world: World, all: readonly Running[]): Promise<string | undefined> => {
  if (!all.some(({ told }) => /replay-archive|swap|drop|rebuild|rotate/.test(told.name))) return world.failure
  world.publishAll()
  await world.untilCaughtUp()
  const quiet = await quietContentOf(world)
  return world.failure ?? assertLiveIs(world, quiet) ?? (await bringToEnd(world, quiet))
}
