/** The copy of a topic into one with more partitions, over logs in memory, with kills before and after each append. */
import { expect, test } from 'vitest'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogTransactions } from '../../../core/log/records/append-in-transactions.ts'
import type { LogEntry, LogReader } from '../../../core/log/records/read-log.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import { type Copy, openCopy } from '../../../tools/grow/copy.ts'
import { newPartitionOf, type PartitionNumbers } from '../../../tools/grow/new-partition.ts'
import { FETCHED_AT_ONCE_BYTES } from '../../../tools/limits.ts'
import { createRandom, type Random, seedOfRun } from '../../support/random.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

type Entries = LogEntry[][]

const logOf = (topic: string, entries: Entries, part = 7): LogReader => ({
  topic,
  read: async (partition, from) => {
    const all = entries[partition] ?? []
    return { entries: all.slice(from, from + part), end: all.length }
  },
})

const append = (entries: Entries, partition: number, entry: Omit<LogEntry, 'offset'>): void => {
  const log = entries[partition] ?? []
  log.push({ ...entry, offset: log.length })
}

const hole = (kind: 'aborted' | 'control'): Omit<LogEntry, 'offset'> => ({
  ...{ kind, timestamp: 1, key: null, value: null },
  headers: encodeHeaders([]),
})

const createWorld = (growth: PartitionNumbers, random: Random) => {
  const empty = (partitions: number): Entries => Array.from({ length: partitions }, () => [])
  const [before, after] = [empty(growth.before), empty(growth.after)]
  let records = 0
  /** Publishes records in the partition of their key, some elsewhere, some without a key, and holes. */
  const publish = (count: number): void => {
    for (let index = 0; index < count; index++) {
      const key = random.chance(0.1) ? null : Buffer.from(`org_${random.below(12)}`)
      const own = key === null ? 0 : partitionOf(key, growth.before)
      const partition = random.chance(0.1) ? random.below(growth.before) : own
      const value = Buffer.from(String(records++))
      const timestamp = 1_000 + random.below(50)
      append(before, partition, { kind: 'record', timestamp, key, value, headers: encodeHeaders([['n', value]]) })
      if (random.chance(0.1)) append(before, partition, hole(random.chance(0.5) ? 'aborted' : 'control'))
    }
  }
  /** The outcome of the next append. */
  let fate: 'done' | 'killed before' | 'killed after' | 'other times' = 'done'
  let epoch = 0
  /** Bytes of the values of each append. */
  const appended: number[] = []
  const transactions = (): LogTransactions => {
    let ours = 0
    return {
      takeOver: async () => {
        ours = ++epoch
      },
      append: async (batches, check) => {
        if (ours !== epoch) throw new Error('replaced')
        const all = [...batches.values()].flat()
        appended.push(all.reduce((sum, { value }) => sum + (value?.length ?? 0), 0))
        const dies = fate
        fate = 'done'
        const keptTimes = dies !== 'other times'
        const answers = [...batches.keys()].map(partition => {
          return { partition, base: after[partition]?.length ?? 0, keptTimes }
        })
        let refused: unknown
        try {
          answers.forEach(check)
        } catch (error) {
          refused = error
        }
        const kind = dies === 'killed before' || refused !== undefined ? 'aborted' : 'record'
        for (const [partition, batch] of batches) {
          for (const entry of batch) append(after, partition, { ...entry, kind, ...(!keptTimes && { timestamp: 9 }) })
          append(after, partition, hole('control'))
        }
        if (refused !== undefined) throw refused
        if (dies.startsWith('killed')) throw new Error(dies)
      },
    }
  }
  const open = (batchRecords = 3, onDone = async (): Promise<void> => undefined): Promise<Copy> =>
    openCopy({
      ...{ from: logOf('old', before), to: logOf('new', after), growth, transactions: transactions(), batchRecords },
      ...{ onDone, signal: new AbortController().signal },
    })
  return {
    ...{ before, after, publish, open, appended },
    onNextAppend: (next: typeof fate): void => {
      fate = next
    },
  }
}

const records = (entries: readonly LogEntry[]) => entries.filter(({ kind }) => kind === 'record')
const contentOf = ({ timestamp, key, value, headers }: LogEntry): string =>
  [timestamp, key, value, headers.bytes.toString('hex')].join(' ')

/** Each new partition has exactly the records of its own, and those of each old partition in their order. */
const expectWhole = ({ before, after }: { before: Entries; after: Entries }, growth: PartitionNumbers): void => {
  for (const [is, log] of after.entries()) {
    const here = records(log).map(contentOf)
    const wanted = before.map((from, was) =>
      records(from)
        .filter(record => newPartitionOf(record, was, growth) === is)
        .map(contentOf),
    )
    expect(here.toSorted()).toEqual(wanted.flat().toSorted())
    for (const one of wanted) expect(here.filter(content => one.includes(content))).toEqual(one)
  }
}

const growths: readonly PartitionNumbers[] = [
  { before: 1, after: 6 },
  { before: 6, after: 9 },
  { before: 2, after: 3 },
]

test.each(growths)(
  'a copy that is killed before and after any append is continued, and has each record once and in order: %o',
  async growth => {
    const random = createRandom(seed)
    const world = createWorld(growth, random)
    world.publish(60)
    for (let kills = 0; kills < 40; kills++) {
      world.onNextAppend(random.chance(0.5) ? 'killed before' : 'killed after')
      const copying = world.open(1 + random.below(8)).then(copy => copy.run())
      await copying.catch((error: Error) => expect(error.message).toContain('killed'))
      world.publish(random.below(6))
    }
    // The last copy may have had nothing to append.
    world.onNextAppend('done')
    const copy = await world.open()
    await copy.run()
    world.publish(9)
    expect(await copy.run()).toBe(9)
    expect(await copy.run()).toBe(0)
    expectWhole(world, growth)
    const reached = { from: world.before.map(log => log.length), to: world.after.map(log => log.length) }
    expect(copy.reached()).toEqual(reached)
  },
)

test('a run ends at the end that the old topic had when it began, however fast publishers are', async () => {
  const growth = { before: 2, after: 3 }
  const world = createWorld(growth, createRandom(seed))
  world.publish(50)
  const copy = await world.open(1, async () => world.publish(3))
  expect(await copy.run()).toBe(50)
  expect(await copy.run()).toBeGreaterThan(50)
})

test('an earlier process appends nothing any more once another one copies', async () => {
  const world = createWorld({ before: 2, after: 3 }, createRandom(seed))
  world.publish(20)
  const first = await world.open()
  const second = await world.open()
  await expect(first.run()).rejects.toThrow('replaced')
  await second.run()
  expectWhole(world, { before: 2, after: 3 })
})

test('a new topic with a record too many, another record or another order is refused by name, and nothing is appended', async () => {
  const growth = { before: 2, after: 3 }
  const changes: Record<string, (log: LogEntry[]) => LogEntry[]> = {
    'another record': log => log.map((entry, at) => (at === 0 ? { ...entry, value: Buffer.from('other') } : entry)),
    'another time': log => log.map((entry, at) => (at === 0 ? { ...entry, timestamp: 5 } : entry)),
    'a record too many': log => [...log, { ...(log[0] as LogEntry), offset: log.length }],
  }
  for (const change of Object.values(changes)) {
    const world = createWorld(growth, createRandom(seed))
    world.publish(40)
    await (await world.open()).run()
    world.after[0] = change(world.after[0] ?? [])
    world.publish(40)
    const ends = world.after.map(log => log.length)
    await expect(world.open().then(copy => copy.run())).rejects.toThrow(/^partition 0 of new has /)
    expect(world.after.map(log => log.length)).toEqual(ends)
  }
})

test('two records of an organization that changed places in the new topic are found', async () => {
  const growth = { before: 1, after: 2 }
  const world = createWorld(growth, createRandom(seed))
  world.publish(40)
  await (await world.open()).run()
  const [first, second] = records(world.after[1] ?? [])
  if (first === undefined || second === undefined) throw new Error('too few records')
  const log = world.after[1] ?? []
  log[first.offset] = { ...second, offset: first.offset }
  log[second.offset] = { ...first, offset: second.offset }
  await expect(world.open()).rejects.toThrow('has other records than partition 0 of old, or in another order')
})

test('a record that somebody else publishes to the new topic meanwhile is found', async () => {
  const growth = { before: 2, after: 3 }
  const world = createWorld(growth, createRandom(seed))
  world.publish(40)
  const copy = await world.open()
  const foreign = records(world.before[0] ?? []).find(record => newPartitionOf(record, 0, growth) === 0)
  if (foreign === undefined) throw new Error('no record of the first partition')
  await copy.run()
  append(world.after, 0, foreign)
  await expect(copy.run()).rejects.toThrow(
    'has more records than old: another run copies to it, or somebody publishes to it',
  )
})

test('a copy ends if Kafka gave the records other times, and the next one has the times of the old topic', async () => {
  const growth = { before: 2, after: 3 }
  const world = createWorld(growth, createRandom(seed))
  world.publish(40)
  world.onNextAppend('other times')
  await expect(world.open().then(copy => copy.run())).rejects.toThrow(
    /^Kafka gave records of partition \d of new other times/,
  )
  await (await world.open()).run()
  expectWhole(world, growth)
})

test('one append has bounded bytes, into however many partitions they go', async () => {
  const growth = { before: 1, after: 1_000 }
  const world = createWorld(growth, createRandom(seed))
  const value = Buffer.alloc(700 * 1024)
  const count = Math.ceil((1.2 * FETCHED_AT_ONCE_BYTES) / value.length)
  // One for each partition: no batch is full.
  const keys = Array.from({ length: 1_000 }, (_, index) => Buffer.from(`org_${index}`))
  const byPartition = new Map(keys.map(key => [partitionOf(key, growth.after), key]))
  for (const key of [...byPartition.values()].slice(0, count))
    append(world.before, 0, { kind: 'record', timestamp: 1_000, key, value, headers: encodeHeaders([]) })
  expect(await (await world.open()).run()).toBe(count)
  expect(Math.max(...world.appended)).toBeLessThanOrEqual(FETCHED_AT_ONCE_BYTES)
})
