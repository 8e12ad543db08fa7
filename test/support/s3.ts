/**
 * A real S3 server for tests: versitygw, built by Go from `test/support/versitygw`. It keeps objects as files, so a
 * test can damage one. Their attributes are in a folder beside them: some file systems have no extended attributes.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { encodeHeaders } from '../../core/log/kafka/encoded-headers.ts'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { freePort } from '../../services/ports.ts'
import { verifyArchive } from '../../tools/archive/read-archive.ts'
import { s3Target } from '../../tools/archive/s3/s3-target.ts'
import { createSendS3, type S3Bucket, type S3Steps } from '../../tools/archive/s3/send.ts'
import type { ArchiveTarget } from '../../tools/archive/target.ts'
import { openTopicArchive } from '../../tools/archive/topic-archive.ts'
import { goProgram } from './programs.ts'
import { eventually, type Scope } from './scope.ts'

/** The first run compiles the server, for about a minute of two cores. Go keeps it for the next one. */
export const S3_BUILD_TIMEOUT_MS = 600_000

export const BUCKET = 'archives'

export type S3Server = {
  readonly endpoint: string
  /** The settings of commands; the secrets are in files. */
  readonly settings: Readonly<Record<string, string>>
  /** The file of an object. */
  readonly fileOf: (key: string) => string
  /** The folder of the bucket. */
  readonly folder: string
}

const [ACCESS_KEY_ID, SECRET_ACCESS_KEY] = ['the-access-key', 'the-secret-of-the-access-key']

/** Starts a server with one empty bucket. It ends with the scope, and with this process. */
export const startS3 = async (scope: Scope): Promise<S3Server> => {
  const module = join(import.meta.dirname, 'versitygw')
  const built = await promisify(execFile)(goProgram ?? 'go', ['tool', '-n', 'versitygw'], { cwd: module })
  const root = await mkdtemp(join(tmpdir(), 'commission-s3-'))
  const [data, attributes, secrets] = [join(root, 'data'), join(root, 'attributes'), join(root, 'secrets')]
  for (const folder of [join(data, BUCKET), attributes, secrets]) await mkdir(folder, { recursive: true })
  await writeFile(join(secrets, 'id'), `${ACCESS_KEY_ID}\n`)
  await writeFile(join(secrets, 'secret'), `${SECRET_ACCESS_KEY}\n`)
  const port = await freePort()
  const words = ['--port', `127.0.0.1:${port}`, '--quiet', '--keep-alive', 'posix', '--sidecar', attributes, data]
  const env = { ...process.env, ROOT_ACCESS_KEY: ACCESS_KEY_ID, ROOT_SECRET_KEY: SECRET_ACCESS_KEY }
  const child = spawn(built.stdout.trim(), words, { stdio: ['ignore', 'ignore', 'pipe'], env, cwd: root })
  const will = runOnExit('kill -9 "$0"; rm -rf "$1"', String(child.pid), root)
  let log = ''
  child.stderr.setEncoding('utf8').on('data', text => (log += text))
  const ended = once(child, 'close')
  scope.onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
    await rm(root, { recursive: true, force: true })
    await will.revoke()
  })
  const endpoint = `http://127.0.0.1:${port}`
  await eventually(async () => expect((await fetch(endpoint).catch(() => undefined))?.status, log).toBe(403))
  const settings = {
    ARCHIVE_S3_ENDPOINT: endpoint,
    ARCHIVE_S3_ACCESS_KEY_ID_FILE: join(secrets, 'id'),
    ARCHIVE_S3_SECRET_ACCESS_KEY_FILE: join(secrets, 'secret'),
  }
  return { endpoint, settings, folder: join(data, BUCKET), fileOf: key => join(data, BUCKET, key) }
}

const never = new AbortController().signal

export const bucketOf = (endpoint: string): S3Bucket => ({
  ...{ bucket: BUCKET, endpoint, region: 'us-east-1', ca: undefined },
  credentials: () => ({ accessKeyId: ACCESS_KEY_ID, secretAccessKey: SECRET_ACCESS_KEY }),
})
export const s3Steps: S3Steps = {
  ...{ say: () => undefined, sleep: async () => undefined, now: Date.now, elapsed: () => performance.now() },
  ...{ random: Math.random, signal: never },
}

/** Opens an archive in this process. */
export const openS3 = async (s3: S3Server, prefix: string, steps: Partial<S3Steps> = {}): Promise<ArchiveTarget> => {
  const send = createSendS3(bucketOf(s3.endpoint), { ...s3Steps, ...steps })
  return s3Target(`s3://${BUCKET}/${prefix}`, { bucket: BUCKET, prefix }, send)
}

const SOURCE = { stream: 'events', cluster_id: 'cluster', topic: 'topic' } as const
const LOG = Array.from({ length: 12 }, (_, offset) => ({
  ...({ kind: 'record', offset, timestamp: 1_000 + offset, key: null, headers: encodeHeaders([]) } as const),
  value: Buffer.from(`record ${offset}`),
}))
/** A process that has ended: its lock blocks nobody. */
const lockSteps = {
  ...{ say: () => undefined, sleep: async () => undefined, now: Date.now },
  processes: {
    self: async () => ({ host: 'host', place: 'place', pid: 1, started: '1' }),
    startOf: async () => undefined,
  },
}

/**
 * Archives twelve records in three segments, and ends as if it was killed before or after the request with this number.
 */
export const killAtRequest = async (s3: S3Server, prefix: string, at: number, when: 'before' | 'after') => {
  let requests = 0
  const send = createSendS3(bucketOf(s3.endpoint), s3Steps)
  const killed = s3Target(`s3://${BUCKET}/${prefix}`, { bucket: BUCKET, prefix }, async request => {
    const number = requests++
    if (number > at || (number === at && when === 'before')) throw new Error('killed')
    const answer = await send(request)
    if (number === at) throw new Error('killed')
    return answer
  })
  const append = async (target: ArchiveTarget): Promise<void> => {
    const lock = await target.lock(lockSteps)
    const topic = await openTopicArchive(target, SOURCE, 1, lock.assertHeld)
    await openTopicArchive(target, { ...SOURCE, stream: 'api-keys' }, 1, lock.assertHeld)
    for (let end = 4; end <= LOG.length; end += 4) {
      if ((topic.positions()[0] ?? 0) >= end) continue
      topic.add(0, LOG.slice(topic.readFrom(0), end), 0)
      await topic.cut(1)
    }
    await lock.release()
  }
  const verified = async (target: ArchiveTarget): Promise<number | undefined> =>
    (await verifyArchive(target, { report: () => undefined }, never)).manifests.events.partitions[0]?.end
  const ended = await append(killed).then(
    () => 'done',
    (error: Error) => error.message,
  )
  if (at > requests) expect(ended).toBe('done')
  const target = await openS3(s3, prefix)
  // Between the first requests there is no archive yet.
  if ((await target.read('api-keys/manifest.json')) !== undefined) await verified(target)
  return { requests, target, append, verified }
}
