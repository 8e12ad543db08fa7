/** Chooses where an archive is stored: `s3://BUCKET/PREFIX`, or a directory. Settings of S3 are read only for S3. */
import {
  archiveS3Settings,
  type ReadSettingFile,
  readableFile,
  readSettings,
  SettingsError,
} from '../../core/runtime/index.ts'
import { CommandError } from '../failures.ts'
import type { S3Address } from './s3/s3-target.ts'
import type { S3Steps } from './s3/send.ts'
import { type ArchiveTarget, directoryTarget } from './target.ts'

export type OpenTarget = (address: string) => Promise<ArchiveTarget>
export type OpenTargetSteps = S3Steps & {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly readFile: ReadSettingFile
}

/** @throws SettingsError; CommandError for an address of another form */
export const targetOpener =
  (steps: OpenTargetSteps): OpenTarget =>
  async address => {
    if (!/^s3:/i.test(address)) return directoryTarget(address)
    const s3 = parseAddress(address)
    const settings = readSettings(archiveS3Settings, steps.environment, steps.readFile)
    const ca = readCa(settings.ARCHIVE_S3_CA_FILE, steps.readFile)
    // Loaded here: no other command needs them.
    const [{ createSendS3 }, { s3Target }] = await Promise.all([import('./s3/send.ts'), import('./s3/s3-target.ts')])
    const bucket = {
      bucket: s3.bucket,
      endpoint: settings.ARCHIVE_S3_ENDPOINT,
      region: settings.ARCHIVE_S3_REGION,
      ca,
      credentials: () => ({
        accessKeyId: settings.ARCHIVE_S3_ACCESS_KEY_ID,
        secretAccessKey: settings.ARCHIVE_S3_SECRET_ACCESS_KEY,
        sessionToken: settings.ARCHIVE_S3_SESSION_TOKEN,
      }),
    }
    const name = `s3://${s3.bucket}${s3.prefix === '' ? '' : `/${s3.prefix}`}`
    return s3Target(name, s3, createSendS3(bucket, steps))
  }

const parseAddress = (address: string): S3Address => {
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w.\-/]*))?$/.exec(address) ?? []
  const parts = prefix.replace(/\/$/, '').split('/')
  const isPlain = parts.length === 1 || parts.every(part => part !== '')
  if (bucket !== undefined && isPlain && !parts.includes('.') && !parts.includes('..')) {
    return { bucket, prefix: parts.join('/') }
  }
  const expected = 's3://BUCKET/PREFIX, the prefix of 0-9 a-z A-Z . _ - with single / inside'
  throw new CommandError(`expected ${expected}; got ${JSON.stringify(address)}`)
}

const readCa = (file: string | undefined, readFile: ReadSettingFile): string | undefined => {
  if (file === undefined) return undefined
  try {
    return readFile(file).toString('utf8')
  } catch {
    const got = JSON.stringify(file)
    throw new SettingsError([{ name: 'ARCHIVE_S3_CA_FILE', expected: readableFile, got }])
  }
}
