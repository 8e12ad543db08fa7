/**
 * Archives in a bucket, with a real Kafka and a real S3 server (versitygw): the promises of the directory, and those of
 * requests. Failures that this server does not give are in `tools/archive/s3/send.test.ts`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { openObjects, type S3Objects } from '../../tools/archive/s3/objects.ts'
import { lockArchive } from '../../tools/archive/s3/s3-lock.ts'
import { createSendS3 } from '../../tools/archive/s3/send.ts'
import { compareTopics, done, newDirectory, PARTITIONS, publishMixed, settingsOf } from '../support/archives.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { untilCaughtUp } from '../support/processes.ts'
import { goProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { bucketOf, killAtRequest, openS3, S3_BUILD_TIMEOUT_MS, type S3Server, s3Steps, startS3 } from '../support/s3.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { allStored } from '../support/stored.ts'
import { createTopics, type Topics } from '../support/topics.ts'

const file = fileScope()
const seed = seedOfRun()
console.log(`seed ${seed}`)
const address = (prefix: string): string => `s3://archives/${prefix}`

describe.skipIf(goProgram === undefined)('an archive in S3', () => {
  let s3: S3Server
  beforeAll(async () => {
    s3 = await startS3(file)
  }, S3_BUILD_TIMEOUT_MS)

  const run = (args: readonly string[], topics: Topics, other: Readonly<Record<string, string>> = {}): Promise<Ran> =>
    runCommand(args, { ...settingsOf(topics), ...s3.settings, ...other })
  const runDone = async (args: readonly string[], topics: Topics): Promise<Ran> => {
    const ran = await run(args, topics)
    expect(ran.code, ran.said).toBe(0)
    return ran
  }
  const verify = (prefix: string, other: Readonly<Record<string, string | undefined>> = {}): Promise<Ran> =>
    runCommand(['archive', 'verify', address(prefix)], { ...s3.settings, ...other })
  const filesIn = async (folder: string): Promise<Record<string, string>> => {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    const names = entries.filter(entry => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
    const wanted = names.filter(name => !name.endsWith('.lock')).sort()
    return Object.fromEntries(
      await Promise.all(
        wanted.map(async name => [name.slice(folder.length), (await readFile(name)).toString('base64')]),
      ),
    )
  }

  test('has the files of a directory, to the byte; it continues, is verified, and restores every record', async t => {
    const random = createRandom(seed)
    const topics = await createTopics(t, { partitions: PARTITIONS })
    const directory = await newDirectory(t)
    for (const groups of [4, 2]) {
      await publishMixed(t, topics, random, groups)
      await runDone(['archive', '--to', directory, '--to', address('whole')], topics)
    }
    expect(await filesIn(s3.fileOf('whole'))).toEqual(await filesIn(directory))
    const [{ records }] = jsonLines(await runDone(['archive', 'verify', address('whole'), '--json'], topics)) as [
      { records: number },
    ]
    const restored = await createTopics(t, { partitions: PARTITIONS })
    await runDone(['restore', '--from', address('whole')], restored)
    expect((await compareTopics(t, topics, restored)).records).toBe(records)
  })

  test('a replay from it has the documents of a replay from the directory; adopt reads it', async t => {
    const { topics, prefix, projector } = await startProjection(t, [], { partitions: PARTITIONS })
    const directory = await newDirectory(t)
    await publishMixed(t, topics, createRandom(seed + 1), 3)
    await untilCaughtUp(projector)
    await runDone(['archive', '--to', directory, '--to', address('replayed')], topics)
    const settings = { ...commandSettings(topics, prefix), ...s3.settings, KAFKA_GROUP_ID: prefix }
    const replay = (name: string, from: string): Promise<Ran> =>
      runCommand(['projection', 'replay', '--name', name, '--from-archive', from], settings)
    const replayed = [replay('directory', directory), replay('bucket', address('replayed'))]
    for (const ran of await Promise.all(replayed)) expect(ran, ran.said).toMatchObject({ code: 0 })
    for (const kind of ['reps', 'periods', 'payouts', 'statements', 'payroll_files', 'chains', 'parked']) {
      const stored = await allStored(`${prefix}-sandbox-bucket-${kind}`)
      expect(stored).toEqual(await allStored(`${prefix}-sandbox-directory-${kind}`))
    }
    expect((await allStored(`${prefix}-sandbox-bucket-payouts`)).length).toBeGreaterThan(0)
    const adopted = await runCommand(['projection', 'adopt', '--archive', address('replayed')], settings)
    expect(adopted, adopted.said).toMatchObject({ code: 0, said: expect.stringContaining('has this source already') })
  })

  test('a run that is killed before or after any of its requests leaves a whole archive, and the next one continues', async () => {
    const { requests } = await killAtRequest(s3, 'all', Number.POSITIVE_INFINITY, 'before')
    expect(requests).toBeGreaterThan(20)
    for (let at = 0; at < requests; at++) {
      for (const when of ['before', 'after'] as const) {
        const { target, append, verified } = await killAtRequest(s3, `killed-${at}-${when}`, at, when)
        await append(target)
        expect(await verified(target)).toBe(12)
      }
    }
  })

  test('a command that is killed continues, and nothing is missing', async t => {
    const random = createRandom(seed + 2)
    const topics = await createTopics(t, { partitions: PARTITIONS })
    await publishMixed(t, topics, random, 6)
    const env = { ...settingsOf(topics), ...s3.settings }
    const count = async () => (await readdir(s3.fileOf('killed'), { recursive: true }).catch(() => [])).length
    for (const files of [1, 4, 7]) {
      const args = ['tools/main.ts', 'archive', '--to', address('killed')]
      const child = spawn(process.execPath, args, { cwd: join(import.meta.dirname, '../..'), env, stdio: 'ignore' })
      const closed = once(child, 'close')
      await eventually(async () => expect(child.exitCode !== null || (await count()) >= files).toBe(true), { every: 5 })
      child.kill('SIGKILL')
      await closed
    }
    const directory = await newDirectory(t)
    await runDone(['archive', '--to', address('killed')], topics)
    await runDone(['archive', 'verify', address('killed')], topics)
    await done(['archive', '--to', directory], topics)
    const digests = async (name: string) => {
      const [{ topics: manifests }] = jsonLines(await runDone(['archive', 'verify', name, '--json'], topics)) as [
        { topics: { partitions: { end: number; digest: string }[] }[] },
      ]
      return manifests.flatMap(({ partitions }) => partitions).map(({ end, digest }) => ({ end, digest }))
    }
    expect(await digests(address('killed'))).toEqual(await digests(directory))
  })

  test('a second run is refused while one follows; after it has ended, or was killed, the next one writes', async t => {
    const topics = await createTopics(t, { partitions: PARTITIONS })
    const follow = async (prefix: string) => {
      const args = ['tools/main.ts', 'archive', '--follow', '--to', address(prefix)]
      const env = { ...settingsOf(topics), ...s3.settings }
      const options = { cwd: join(import.meta.dirname, '../..'), env, stdio: 'ignore' } as const
      const child = spawn(process.execPath, args, options)
      t.onTestFinished(async () => void child.kill('SIGKILL'))
      const folders = () => readdir(s3.fileOf(prefix)).catch(() => [])
      await eventually(async () =>
        expect([await folders(), child.exitCode]).toEqual([expect.arrayContaining(['api-keys']), null]),
      )
      return child
    }
    const ended = await follow('ended')
    const second = await run(['archive', '--to', address('ended')], topics)
    expect(second.code).toBe(1)
    expect(second.said).toContain(`another archive writes into ${address('ended')} (process ${ended.pid} on `)
    const killed = await follow('was-killed')
    ended.kill('SIGINT')
    killed.kill('SIGKILL')
    await Promise.all([once(ended, 'close'), once(killed, 'close')])
    expect(ended.exitCode).toBe(0)
    await runDone(['archive', '--to', address('ended'), '--to', address('was-killed')], topics)
  })

  test('verify names an object that is flipped, cut or missing', async t => {
    const topics = await createTopics(t, { partitions: PARTITIONS })
    await publishMixed(t, topics, createRandom(seed + 3), 1)
    await runDone(['archive', ...['flipped', 'cut', 'missing'].flatMap(name => ['--to', address(name)])], topics)
    const firstOf = async (name: string): Promise<string> => {
      const [first = ''] = (await readdir(s3.fileOf(`${name}/events/1`))).sort()
      return `${name}/events/1/${first}`
    }
    const flipped = await firstOf('flipped')
    const bytes = await readFile(s3.fileOf(flipped))
    bytes.writeUInt8((bytes[30] ?? 0) ^ 1, 30)
    await writeFile(s3.fileOf(flipped), bytes)
    const cut = await firstOf('cut')
    await truncate(s3.fileOf(cut), 40)
    await rm(s3.fileOf(await firstOf('missing')))
    const restored = await createTopics(t, { partitions: PARTITIONS })
    const ran = [
      verify('flipped'),
      verify('cut'),
      verify('missing'),
      run(['restore', '--from', address('cut')], restored),
    ]
    const isCut = `${address(cut)}: it is cut off after 40 bytes`
    expect((await Promise.all(ran)).map(({ code, said }) => [code, said])).toEqual([
      [1, expect.stringContaining(`${address(flipped)}: its bytes were changed`)],
      [1, expect.stringContaining(isCut)],
      [1, expect.stringContaining(`${address('missing')}/events/1: the segment that begins with offset 0 is lost`)],
      [1, expect.stringContaining(isCut)],
    ])
  })

  test('a signed archive has the notes of a directory, goes on, and is checked with the public key: each damage is named', async t => {
    const topics = await createTopics(t, { partitions: PARTITIONS })
    const directory = await newDirectory(t)
    const sign = join(dirname(directory), 'signing.key')
    const made = await runCommand(['evidence', 'key', '--name', 'archive.example', '--out', sign], {})
    const check = async (prefix: string) => {
      const args = ['verify', address(prefix), '--json', '--key', made.out.toString().trim()]
      const ran = await runCommand(args, s3.settings)
      const [told] = jsonLines(ran) as [{ differences: string[]; signed: object[] } | undefined]
      return { code: ran.code, differences: told?.differences, signed: told?.signed.length }
    }
    const whole = { code: 0, differences: [], signed: 2 }
    const random = createRandom(seed + 4)
    for (const prefix of ['signed', 'signed', 'unsigned']) {
      await publishMixed(t, topics, random, 2)
      await runDone(['archive', '--to', directory, '--to', address('signed'), '--sign', sign], topics)
      if (prefix === 'signed') expect(await check(prefix)).toEqual(whole)
    }
    expect(await filesIn(s3.fileOf('signed'))).toEqual(await filesIn(directory))
    // Signed after it was written: each record is compared with Kafka.
    await runDone(['archive', '--to', address('unsigned')], topics)
    expect(await check('unsigned')).toMatchObject({ code: 3, differences: [expect.stringContaining('is not signed')] })
    await runDone(['archive', '--to', address('unsigned'), '--sign', sign], topics)
    expect(await check('unsigned')).toEqual(whole)

    await writeFile(s3.fileOf('unsigned/more.txt'), 'x')
    await writeFile(s3.fileOf('unsigned/api-keys/more'), 'x')
    expect(await check('unsigned')).toMatchObject({
      code: 3,
      differences: ['api-keys/more', 'more.txt'].map(
        name => `${address('unsigned')}/${name}: no archive has such a file`,
      ),
    })
    const note = await readFile(s3.fileOf('signed/events/manifest.note'))
    note.writeUInt8((note[300] ?? 0) ^ 1, 300)
    await writeFile(s3.fileOf('signed/events/manifest.note'), note)
    const changed = await check('signed')
    expect([changed.code, changed.differences?.[0]]).toEqual([
      3,
      expect.stringContaining(`${address('signed')}/events`),
    ])
  })

  test('a folder with more than 1,000 objects is listed whole', async () => {
    const target = await openS3(s3, 'many')
    const names = Array.from({ length: 2_005 }, (_, index) => `${String(index).padStart(20, '0')}.zst`)
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      for (let at = writer; at < names.length; at += 8) await target.create(`events/0/${names[at]}`, Buffer.from('x'))
    })
    await Promise.all(writers)
    expect((await target.list('events/0')).toSorted()).toEqual(names)
    expect(await target.list('events/1')).toEqual([])
  })

  test('of two runs that begin together one writes, and a run whose lock was taken changes nothing', async () => {
    const objects = openObjects(address('together'), 'together', createSendS3(bucketOf(s3.endpoint), s3Steps))
    const target = await openS3(s3, 'together')
    // Each has looked for a lock before one of them writes it.
    const all = Promise.withResolvers<void>()
    let waiting = 0
    const put: S3Objects['put'] = async (...words) => {
      if (++waiting === 4) all.resolve()
      await all.promise
      return objects.put(...words)
    }
    const steps = { say: () => undefined, sleep: async () => undefined, now: Date.now }
    const processes = { self: async () => ({ host: 'h', place: 'p', pid: 1, started: '1' }), startOf: async () => '1' }
    const begin = () => lockArchive(target.name, { ...objects, put }, { ...steps, processes })
    const locks = await Promise.allSettled([begin(), begin(), begin(), begin()])
    const [held, ...others] = locks.filter(({ status }) => status === 'fulfilled')
    expect(others).toEqual([])
    if (held?.status !== 'fulfilled') throw new Error('no run writes')
    const ended = { ...processes, startOf: async () => undefined }
    const taken = await target.lock({ ...steps, processes: ended })
    await taken.assertHeld()
    await expect(held.value.assertHeld()).rejects.toThrow('has taken s3://archives/together over meanwhile')

    const [one, two] = [await openS3(s3, 'stale'), await openS3(s3, 'stale')]
    await one.replace('events/manifest.json', Buffer.from('1'))
    await two.read('events/manifest.json')
    await one.replace('events/manifest.json', Buffer.from('2'))
    await expect(two.replace('events/manifest.json', Buffer.from('3'))).rejects.toThrow('another run has written it')
    expect(await one.read('events/manifest.json')).toEqual(Buffer.from('2'))
  })

  test('wrong settings, credentials, buckets and clocks are named with what to do, and no secret is shown', async () => {
    const none = await runCommand(['archive', 'verify', address('x')], {
      ARCHIVE_S3_ENDPOINT: 'nowhere',
      ARCHIVE_S3_REGION: 'no region',
    })
    expect(none.code).toBe(1)
    for (const name of ['ENDPOINT', 'REGION', 'ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'])
      expect(none.said).toContain(`ARCHIVE_S3_${name}: expected`)
    const withSecret = { ARCHIVE_S3_SECRET_ACCESS_KEY_FILE: undefined, ARCHIVE_S3_SECRET_ACCESS_KEY: 'wrong-secret' }
    const ran = {
      secret: verify('x', withSecret),
      region: verify('x', { ARCHIVE_S3_REGION: 'eu-west-9' }),
      bucket: runCommand(['archive', 'verify', 's3://no-such-bucket/x'], s3.settings),
      nothing: verify('nothing'),
      address: runCommand(['archive', 'verify', 's3://Bucket/x'], s3.settings),
    }
    const texts = Object.entries(ran).map(async ([name, command]) => [name, (await command).said] as const)
    const said = Object.fromEntries(await Promise.all(texts))
    expect(said).toEqual({
      secret: expect.stringContaining('ARCHIVE_S3_SECRET_ACCESS_KEY does not fit ARCHIVE_S3_ACCESS_KEY_ID'),
      region: expect.stringContaining('set ARCHIVE_S3_REGION to us-east-1'),
      bucket: expect.stringContaining('there is no bucket no-such-bucket at 127.0.0.1'),
      nothing: 'there is no archive in s3://archives/nothing\n',
      address: expect.stringContaining('expected s3://BUCKET/PREFIX'),
    })
    expect(Object.values(said).join()).not.toMatch(/wrong-secret|the-access-key|the-secret/)
    const skewed = await openS3(s3, 'x', { now: () => Date.now() - 3_600_000 })
    await expect(skewed.read('a')).rejects.toThrow(/the clocks differ .* Set the clock of this machine/)
  })
})
