/**
 * Signed exports and archives of a real projection: checked with the public key only, without any service. Prints its
 * seed; FLOW_SEED sets it.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { cp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { type ArchiveManifest, readManifest, segmentPath, writeManifest } from '../../tools/archive/manifest.ts'
import { segmentsOf } from '../../tools/archive/read-archive.ts'
import { addEntryToDigest, encodeEntry, encodeSegment, NO_RECORDS, openSegment } from '../../tools/archive/segment.ts'
import { type ArchiveTarget, directoryTarget } from '../../tools/archive/target.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { fileScope } from '../support/scope.ts'
import { createStream, organizationsIn } from '../support/streams.ts'

const PARTITIONS = 3
const seed = seedOfRun()
const random = createRandom(seed)
const [org = '', neighbour = ''] = organizationsIn(random, [1, 1], PARTITIONS)
const file = fileScope()
const folder = mkdtempSync(join(tmpdir(), 'commission-evidence-'))
const at = (...names: string[]): string => join(folder, ...names)
let settings: Record<string, string>
let [publicKey, otherKey] = ['', '']
const stream = createStream(random, [org, neighbour], PARTITIONS, { reps: 3, periods: 3 })
let publish: (count: number) => Promise<unknown>

const run = async (...args: string[]): Promise<Ran> => {
  const ran = await runCommand(args, settings)
  expect(ran.code, ran.said).toBe(0)
  return ran
}
/** Without a setting of any service. */
const verify = async (name: string, ...keys: string[]) => {
  const options = keys.flatMap(key => ['--key', key])
  const ran = await runCommand(['verify', at(name), '--json', ...options], {})
  const [line] = jsonLines(ran) as [{ differences: string[]; signers: string[] } | undefined]
  return { code: ran.code, said: ran.said, differences: line?.differences ?? [] }
}
const makeKey = async (name: string): Promise<string> =>
  (await run('evidence', 'key', '--name', name, '--out', at(`${name}.key`))).out.toString().trim()

beforeAll(async () => {
  console.log(`seed ${seed}`)
  file.onTestFinished(async () => rmSync(folder, { recursive: true }))
  const { topics, prefix } = await startProjection(file, stream.take(300), { partitions: PARTITIONS })
  settings = commandSettings(topics, prefix)
  publish = count => topics.publish(stream.take(count))
  publicKey = await makeKey('close')
  otherKey = await makeKey('other')
  await run(
    'projection',
    'export',
    '--org',
    org,
    '--out',
    at('export'),
    '--parquet',
    '--csv',
    '--sign',
    at('close.key'),
  )
  await run('archive', '--to', at('archive'), '--sign', at('close.key'))
})

/** The files below a folder. */
const filesIn = (name: string): string[] =>
  (readdirSync(at(name), { recursive: true }) as string[]).filter(of => /\.\w+$/.test(of)).sort()

test.each(['export', 'archive'])('a signed %s is whole, with the public key only', async name => {
  expect(await verify(name, publicKey)).toMatchObject({ code: 0, differences: [] })
  expect(await verify(name, otherKey, publicKey)).toMatchObject({ code: 0 })
  expect(await verify(name, otherKey)).toMatchObject({
    code: 3,
    said: expect.stringContaining('none of the given keys'),
  })
})

test.each(['export', 'archive'])('one changed byte of each kind of file of a signed %s is named', async name => {
  await cp(at(name), at(`${name}-changed`), { recursive: true })
  const kinds = Map.groupBy(filesIn(name), of => of.replace(/\/\d+\/\d+/, '')).values()
  for (const [of = ''] of kinds) {
    const path = at(`${name}-changed`, of)
    const bytes = readFileSync(path)
    const place = bytes.length >> 1
    writeFileSync(
      path,
      Buffer.concat([bytes.subarray(0, place), Buffer.of((bytes[place] ?? 0) ^ 1), bytes.subarray(place + 1)]),
    )
    const { code, differences } = await verify(`${name}-changed`, publicKey)
    const expected = of.endsWith('manifest.note') || of.endsWith('manifest.json') ? dirname(path) : path
    expect([of, code, differences[0]]).toEqual([of, 3, expect.stringContaining(expected)])
    writeFileSync(path, bytes)
  }
  expect((await verify(`${name}-changed`, publicKey)).code).toBe(0)
})

test('exchanged files, an edited manifest and a file that is lost are named', async () => {
  await cp(at('export'), at('mixed'), { recursive: true })
  renameSync(at('mixed', 'reps.csv'), at('x'))
  renameSync(at('mixed', 'periods.csv'), at('mixed', 'reps.csv'))
  renameSync(at('x'), at('mixed', 'periods.csv'))
  rmSync(at('mixed', 'statements.ndjson'))
  const manifest = readFileSync(at('mixed', 'manifest.json'), 'utf8')
  writeFileSync(at('mixed', 'manifest.json'), manifest.replace(org, neighbour))
  const { code, differences } = await verify('mixed', publicKey)
  expect([code, differences.length]).toEqual([3, 4])
  for (const of of ['manifest.json: line', 'statements.ndjson: this file is lost', 'reps.csv: ', 'periods.csv: ']) {
    expect(differences.join('\n')).toContain(at('mixed', of))
  }
})

test('an export with a signature gets no tables that are not signed, and is signed by another key when that is asked for', async () => {
  await run('projection', 'export', '--org', org, '--out', at('later'), '--sign', at('close.key'))
  const more = ['projection', 'export', '--org', org, '--out', at('later'), '--csv']
  const refused = await runCommand(more, settings)
  expect([refused.code, refused.said]).toEqual([1, expect.stringContaining('say --sign too')])
  expect((await verify('later', publicKey)).code).toBe(0)
  await run(...more, '--sign', at('other.key'))
  expect((await verify('later', otherKey)).code).toBe(0)
  expect((await verify('later', publicKey)).code).toBe(3)
  rmSync(at('later', 'manifest.note'))
  expect(await verify('later')).toMatchObject({ code: 0, said: expect.stringContaining('is not signed') })
})

test('an export that was changed, with digests that fit, is not signed again', async () => {
  const again = ['projection', 'export', '--org', org, '--out', at('edited'), '--sign']
  await run(...again, at('close.key'))
  const file = at('edited', 'payouts.ndjson')
  const before = readFileSync(file, 'utf8')
  const edited = before.replace('"net_amount":"', '"net_amount":"9')
  writeFileSync(file, edited)
  const manifest = readFileSync(at('edited', 'manifest.json'), 'utf8')
  const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')
  const described = manifest.replace(hashOf(before), hashOf(edited))
  const { bytes } = JSON.parse(manifest).files.payouts
  writeFileSync(at('edited', 'manifest.json'), described.replace(`"bytes": ${bytes}`, `"bytes": ${bytes + 1}`))
  const refused = await runCommand([...again, at('close.key')], settings)
  expect([refused.code, refused.said]).toEqual([1, expect.stringContaining('manifest.json is not the signed one')])
  // This key has signed nothing here: the sums are compared with the projection.
  const other = await runCommand([...again, at('other.key')], settings)
  expect([other.code, other.said]).toEqual([1, expect.stringContaining('do not add up to the totals')])
  expect((await verify('edited', publicKey)).code).toBe(3)
})

test('an export with a link in place of a file, or without a file, is not signed again', async () => {
  const again = ['projection', 'export', '--org', org, '--out', at('linked'), '--sign', at('close.key')]
  await run(...again)
  renameSync(at('linked', 'reps.ndjson'), at('reps.ndjson'))
  const lost = await runCommand(again, settings)
  expect([lost.code, lost.said]).toEqual([1, expect.stringContaining(`${at('linked', 'reps.ndjson')}: it is lost`)])
  symlinkSync(at('reps.ndjson'), at('linked', 'reps.ndjson'))
  const refused = await runCommand(again, settings)
  expect([refused.code, refused.said]).toEqual([1, expect.stringContaining('reps.ndjson: it is a link')])
  expect(await verify('linked', publicKey)).toMatchObject({ code: 3 })
  // A table is made anew, if it is asked for.
  rmSync(at('linked', 'reps.ndjson'))
  renameSync(at('reps.ndjson'), at('linked', 'reps.ndjson'))
  await run(...again, '--csv')
  rmSync(at('linked', 'reps.csv'))
  await run(...again, '--csv')
  expect(await verify('linked', publicKey)).toMatchObject({ code: 0 })
})

test('an archive says which key signed what, and its streams name each other', async () => {
  const ran = await runCommand(['verify', at('archive'), '--json', '--key', publicKey], {})
  const [{ signed }] = jsonLines(ran) as [{ signed: { signers: string[]; covers: { topic: string } }[] }]
  expect(signed.map(({ signers }) => signers.length)).toEqual([1, 1])
  const manifests = await Promise.all(
    (['events', 'api-keys'] as const).map(of => readManifest(directoryTarget(at('archive')), of)),
  )
  const [events, keys] = manifests
  const named = (one = events) => ({ topic: one?.topic, topic_id: one?.topic_id })
  expect([events?.beside, keys?.beside]).toEqual([named(keys), named(events)])
  expect(events?.topic_id).toBeDefined()
})

test('an archive that goes on is signed with each segment; without --sign, what was added is named', async () => {
  await cp(at('archive'), at('more'), { recursive: true })
  await publish(50)
  await run('archive', '--to', at('more'), '--sign', at('close.key'))
  expect((await verify('more', publicKey)).code).toBe(0)
  await publish(50)
  await run('archive', '--to', at('more'))
  expect(await verify('more', publicKey)).toMatchObject({
    code: 3,
    said: expect.stringContaining('not the signed one'),
  })
  await run('archive', '--to', at('more'), '--sign', at('other.key'))
  expect((await verify('more', otherKey)).code).toBe(0)
})

/** Returns a partition that has grown, and its last segment, which has several entries. Few may have come to some. */
const grownByMany = async (target: ArchiveTarget, manifest: ArchiveManifest) => {
  for (const grown of manifest.partitions) {
    const { partition, last_segment, segments } = grown
    if (segments === 1 || last_segment === null) continue
    const path = segmentPath('events', partition, last_segment)
    const { header, entries } = await openSegment((await target.read(path)) ?? Buffer.alloc(0), path)
    if (entries.length > 1) return { header, entries, path, grown, last_segment }
  }
  throw new Error('no partition has grown by several entries')
}

test('a record in the middle of a segment that no signature covers yet is compared with Kafka before it is signed', async () => {
  await cp(at('archive'), at('forged'), { recursive: true })
  await publish(60)
  await run('archive', '--to', at('forged'))
  const note = readFileSync(at('forged', 'events', 'manifest.note'))
  const target = directoryTarget(at('forged'))
  const manifest = await readManifest(target, 'events')
  if (manifest === undefined) throw new Error('no manifest')
  const { header, entries, path, grown, last_segment } = await grownByMany(target, manifest)
  // As somebody who may write into the archive does it: the first entry, and all digests fit again.
  const forged = entries.map((entry, index) => (index === 0 ? { ...entry, timestamp: entry.timestamp + 1 } : entry))
  const { bytes, sha256 } = await encodeSegment(header, forged.map(encodeEntry))
  let digest = NO_RECORDS
  const before = { ...grown, end: last_segment, segments: grown.segments - 1, last_sha256: header.previous }
  for await (const segment of segmentsOf(target, manifest, before)) {
    for (const entry of segment.entries) digest = addEntryToDigest(digest, entry)
  }
  for (const entry of forged) digest = addEntryToDigest(digest, entry)
  await target.replace(path, bytes)
  const partitions = manifest.partitions.map(one => (one === grown ? { ...one, last_sha256: sha256, digest } : one))
  await writeManifest(target, { ...manifest, partitions })
  expect((await runCommand(['archive', 'verify', at('forged')], {})).code).toBe(0)

  const refused = await runCommand(['archive', '--to', at('forged'), '--sign', at('close.key')], settings)
  const expected = `has another record at offset ${last_segment} than the archive. Nothing is signed`
  expect([refused.code, refused.said]).toEqual([1, expect.stringContaining(expected)])
  expect(readFileSync(at('forged', 'events', 'manifest.note'))).toEqual(note)
})

test('the key may come from another program, and is in no file then', async () => {
  const command = ['archive', '--to', at('piped'), '--sign', '/dev/stdin'].map(word => `'${word}'`).join(' ')
  const pipe = `cat '${at('close.key')}' | '${process.execPath}' tools/main.ts ${command}`
  const cwd = join(import.meta.dirname, '../..')
  await promisify(execFile)('sh', ['-c', pipe], { cwd, env: { ...process.env, ...settings } })
  expect(await verify('piped', publicKey)).toMatchObject({ code: 0 })
})

test('a key file is written once, only its owner may read it, and a file without a key is refused by name', async () => {
  const again = await runCommand(['evidence', 'key', '--name', 'close', '--out', at('close.key')], {})
  expect([again.code, again.said, again.out.length]).toEqual([1, expect.stringContaining('stays as it is'), 0])
  expect(statSync(at('close.key')).mode & 0o777).toBe(0o600)
  writeFileSync(at('empty.key'), 'PRIVATE+KEY+secret')
  const none = await runCommand(['archive', '--to', at('never'), '--sign', at('none.key')], settings)
  expect([none.code, none.said]).toEqual([1, expect.stringContaining(`${at('none.key')}: cannot be read (ENOENT)`)])
  const refused = await runCommand(['archive', '--to', at('never'), '--sign', at('empty.key')], settings)
  expect([refused.code, refused.said]).toEqual([1, expect.stringContaining(`${at('empty.key')}: expected a key`)])
  expect(refused.said).not.toContain('secret')
})
