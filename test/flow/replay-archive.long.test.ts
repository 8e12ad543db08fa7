/** `commission projection replay --from-archive`, without Kafka, beside replays from Kafka and the live documents. */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, inject, test } from 'vitest'
import { done, newDirectory, PARTITIONS, publishMixed } from '../support/archives.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { dataOf, type Outgoing, payoutCalculated, repRecorded } from '../support/events.ts'
import { startProcess, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { allStored, indicesOf, readPosition, type Stored } from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const file = fileScope()
const seed = seedOfRun()
console.log(`seed ${seed}`)
const kinds = ['reps', 'periods', 'payouts', 'statements', 'payroll_files', 'chains', 'parked']
const bonusRules = join(import.meta.dirname, '..', 'support', 'bonus-rules.ts')

let topics: Topics
let prefix: string
let directory: string
let asKafka: Readonly<Record<string, Stored[]>>

const withKafka = (...args: string[]): Promise<Ran> =>
  runCommand(['projection', ...args], { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix })
const withoutKafka = (): Record<string, string> => ({
  ELASTICSEARCH_URL: inject('elasticsearchUrl'),
  ELASTICSEARCH_INDEX_PREFIX: prefix,
})
const projection = (...args: string[]): Promise<Ran> => runCommand(['projection', ...args], withoutKafka())
const replay = async (name: string, ...args: string[]) => {
  const ran = await projection('replay', '--name', name, '--from-archive', directory, '--json', ...args)
  expect(ran, ran.said).toMatchObject({ code: 0 })
  return jsonLines(ran)[0] as { sandbox: string; records: number; bounds: number[] }
}
const everything = async (generation: string): Promise<Readonly<Record<string, Stored[]>>> =>
  Object.fromEntries(
    await Promise.all(kinds.map(async kind => [kind, await allStored(`${prefix}-${generation}-${kind}`)] as const)),
  )
const positions = async (name: string): Promise<number[]> => {
  const found: number[] = []
  for (let partition = 0; partition < PARTITIONS; partition++) {
    found.push((await readPosition(`${prefix}-sandbox`, name, partition)).position)
  }
  return found
}
/** A copy of the archive, to damage it. */
const copyOfArchive = async (t: Scope): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await cp(directory, join(folder, 'copy'), { recursive: true })
  return join(folder, 'copy')
}
const segmentsIn = async (archive: string, partition: number): Promise<string[]> => {
  const folder = join(archive, 'events', String(partition))
  return (await readdir(folder)).sort().map(name => join(folder, name))
}

beforeAll(async () => {
  const started = await startProjection(file, [], { partitions: PARTITIONS })
  ;({ topics, prefix } = started)
  directory = await newDirectory(file)
  // Several runs: several segments of each partition.
  for (let run = 0; run < 3; run++) {
    await publishMixed(file, topics, createRandom(seed + run), 3)
    await done(['archive', '--to', directory], topics)
  }
  await untilCaughtUp(started.projector)
  const ran = await withKafka('replay', '--name', 'kafka')
  expect(ran, ran.said).toMatchObject({ code: 0 })
  asKafka = await everything('sandbox-kafka')
})

test('a replay from an archive has the documents and positions of a replay from Kafka, to the byte', async () => {
  const { bounds } = await replay('archive')
  expect(await everything('sandbox-archive')).toEqual(asKafka)
  expect(asKafka.parked?.length).toBeGreaterThan(0)
  expect(asKafka.payouts?.some(({ source }) => source.superseded_by_id !== null)).toBe(true)
  expect(await positions('archive')).toEqual(bounds)
  expect(await positions('archive')).toEqual(await positions('kafka'))
  // An archive does not say up to which time it is complete.
  expect((await readPosition(`${prefix}-sandbox`, 'archive', 0)).time).toBe(0)
  for (const other of ['sandbox:kafka', 'g1']) {
    const equal = await projection('diff', 'sandbox:archive', other)
    expect(equal, equal.said).toMatchObject({ code: 0, said: expect.stringContaining('no differences') })
  }
})

test('other rules on an archive: diff ends with exit code 3, and its page names what differs', async () => {
  await replay('asis')
  await replay('bonus', '--rules', bonusRules)
  const page = join(await copyOfArchive(file), 'page.html')
  const ran = await projection('diff', 'sandbox:asis', 'sandbox:bonus', '--html', page)
  expect(ran, ran.said).toMatchObject({ code: 3 })
  const rows = jsonLines(await projection('diff', 'sandbox:asis', 'sandbox:bonus', '--json'))
  const changed = rows.find(({ row, kind }) => row === 'record' && kind === 'payouts')
  expect(changed).toMatchObject({ change: 'changed', field: 'net_amount' })
  const html = await readFile(page, 'utf8')
  expect(html).toContain(String(changed?.id))
  expect(html).toContain('line_bonus')
})

test('a replay up to an offset or a time, and of one organization, is the same from an archive and from Kafka', async () => {
  const all = await positions('kafka')
  const middle = all.flatMap((end, partition) => ['--until-offset', `${partition}:${Math.floor(end / 2)}`])
  const payouts = asKafka.payouts ?? []
  const { source } = payouts[Math.floor(payouts.length / 2)] ?? {}
  const org = String(source?.org_id)
  const latest = Math.min(...(await latestTimes()))
  const until = ['--until-time', new Date(latest - 1).toISOString()]
  for (const [name, args] of Object.entries({ middle, time: until, org: ['--org', org] })) {
    const ran = await withKafka('replay', '--name', `k${name}`, ...args)
    expect(ran, ran.said).toMatchObject({ code: 0 })
    await replay(`a${name}`, ...args)
    expect(await everything(`sandbox-a${name}`)).toEqual(await everything(`sandbox-k${name}`))
    expect(await positions(`a${name}`)).toEqual(await positions(`k${name}`))
  }
  const late = await projection('replay', '--from-archive', directory, '--until-time', new Date().toISOString())
  expect(late).toMatchObject({ code: 1, said: expect.stringContaining('the archive has no record after that time') })
})

/** The latest record time of each partition that the documents tell. */
const latestTimes = async (): Promise<number[]> => {
  const times: number[] = []
  for (let partition = 0; partition < PARTITIONS; partition++) {
    times.push((await readPosition(`${prefix}-sandbox`, 'kafka', partition)).at)
  }
  return times
}

test('a damaged archive is refused by name, and nothing is made', async t => {
  const before = await indicesOf(`${prefix}-sandbox`)
  const refused = async (archive: string, ...said: string[]): Promise<void> => {
    const ran = await projection('replay', '--name', 'damaged', '--from-archive', archive)
    expect(ran.code).toBe(1)
    for (const text of said) expect(ran.said).toContain(text)
  }
  const changed = await copyOfArchive(t)
  const [, second = ''] = await segmentsIn(changed, 1)
  const bytes = await readFile(second)
  bytes.writeUInt8((bytes[100] ?? 0) ^ 1, 100)
  await writeFile(second, bytes)
  await refused(changed, second, 'its bytes were changed')

  const lost = await copyOfArchive(t)
  const [first = ''] = await segmentsIn(lost, 2)
  await rm(first)
  await refused(lost, 'the segment that begins with offset 0 is lost')

  await refused(join(changed, 'events'), 'there is no archive in')
  expect(await indicesOf(`${prefix}-sandbox`)).toEqual(before)
})

test('a replay that was stopped or killed continues, also from Kafka, and an archive that is too short does not continue it', async t => {
  const begin = async (name: string) => {
    const parameters = ['projection', 'replay', '--name', name, '--from-archive', directory, '--max-rate', '10']
    const running = startProcess(file, 'tools/main.ts', withoutKafka(), { parameters })
    await eventually(async () => {
      const reached = await positions(name).catch(() => [0])
      expect(Math.max(...reached), running.log()).toBeGreaterThan(20)
    })
    return running
  }
  await (await begin('killed')).kill()
  const short = await newDirectory(t)
  const empty = await createTopics(t, { partitions: PARTITIONS })
  await done(['archive', '--to', short], empty)
  const other = await projection('replay', '--name', 'killed', '--from-archive', short)
  expect(other).toMatchObject({ code: 1 })
  await replay('killed')
  expect(await everything('sandbox-killed')).toEqual(asKafka)

  const stopped = await begin('stopped')
  expect(await stopped.stop(), stopped.log()).toEqual({ code: 1, signal: null })
  expect(stopped.log()).toContain('--name stopped continues')
  const again = await withKafka('replay', '--name', 'stopped')
  expect(again, again.said).toMatchObject({ code: 0, said: expect.stringContaining('continuing with sandbox:stopped') })
  expect(await everything('sandbox-stopped')).toEqual(asKafka)
})

test('an export, totals and a forecast of a sandbox are those of the live generation; a sandbox is dropped without Kafka', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-export-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const org = String(asKafka.payouts?.[0]?.source.org_id)
  await replay('whole')
  const exported = async (out: string, ...args: string[]): Promise<Record<string, unknown>> => {
    const ran = await projection('export', '--org', org, '--out', join(folder, out), '--json', ...args)
    expect(ran, ran.said).toMatchObject({ code: 0 })
    return JSON.parse(ran.out.toString('utf8'))
  }
  const live = await exported('live')
  const ofSandbox = await exported('sandbox', '--generation', 'sandbox:whole')
  const sandbox = { org: null, until: null, bounds: expect.any(Array), rules: null }
  expect(ofSandbox).toEqual({ ...live, generation: 'sandbox:whole', sandbox })
  const mixed = await projection('export', '--org', org, '--out', join(folder, 'live'), '--generation', 'sandbox:whole')
  expect(mixed).toMatchObject({ code: 1, said: expect.stringContaining('an export of the live generation') })
  const [totals] = jsonLines(await projection('totals', '--org', org, '--json'))
  const [same] = jsonLines(await projection('totals', '--org', org, '--json', '--generation', 'sandbox:whole'))
  expect(same).toEqual({ ...totals, generation: 'sandbox:whole', rules_version: live.rules_version, sandbox })
  expect(await projection('totals', '--org', org, '--generation', 'sandbox:none')).toMatchObject({
    code: 1,
    said: expect.stringContaining('there is no sandbox:none'),
  })

  const [payout] = asKafka.payouts ?? []
  const records = join(folder, 'records.ndjson')
  const events = [
    repRecorded({ org_id: org, id: 'rep_tomorrow' }),
    payoutCalculated({ org_id: org, id: 'payout_tomorrow', supersedes_id: 'payout_unknown' }),
    // The id of another payout, whatever that one has.
    payoutCalculated({ org_id: org, id: String(payout?.id.split(':')[1]), rep_id: 'rep_tomorrow' }),
  ]
  await writeFile(records, events.map(event => `${JSON.stringify(lineOf(event))}\n`).join(''))
  const validate = async (...args: string[]) => {
    const ran = await runCommand(['validate', records, '--json', ...args], withoutKafka())
    expect(ran.code, ran.said).toBe(3)
    return jsonLines(ran)
  }
  const foreseen = await validate('--live')
  expect(foreseen.map(({ outcome }) => outcome)).toEqual(['applied', 'parked', 'parked'])
  expect(await validate('--generation', 'sandbox:whole')).toEqual(foreseen)

  const dropped = await projection('drop', 'sandbox:whole')
  expect(dropped, dropped.said).toMatchObject({ code: 0, said: 'sandbox:whole is dropped\n' })
  expect(await indicesOf(`${prefix}-sandbox-whole`)).toEqual([])
})

const lineOf = (event: Outgoing): object => ({ type: String(event.headers.ce_type), data: dataOf(event) })
