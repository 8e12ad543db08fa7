import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { SettingsError } from '../../../core/runtime/settings.ts'
import { type OpenTargetSteps, targetOpener } from '../../../tools/archive/open-target.ts'
import { s3Steps } from '../../support/s3.ts'

const keys = { ARCHIVE_S3_ACCESS_KEY_ID: 'id', ARCHIVE_S3_SECRET_ACCESS_KEY: 'secret' }
const readFile = (path: string): Buffer => {
  if (path === '/ca') return Buffer.from('certificates')
  throw new Error(`no file ${path}`)
}
const open = (address: string, environment: OpenTargetSteps['environment'] = keys) =>
  targetOpener({ ...s3Steps, environment, readFile })(address)

test('a directory needs no settings, and an address in S3 says its bucket and prefix', async () => {
  expect((await open('/mnt/s3:/a', {})).name).toBe('/mnt/s3:/a')
  expect((await open('s3://a-bucket')).name).toBe('s3://a-bucket')
  expect((await open('s3://a-bucket/')).name).toBe('s3://a-bucket')
  expect((await open('s3://a-bucket/some/prefix/')).name).toBe('s3://a-bucket/some/prefix')
})

test.for([
  's3:/b',
  'S3://bucket',
  's3://Bucket',
  's3://b',
  's3://bucket//a',
  's3://bucket/a/../b',
  's3://bucket/ä',
  's3://',
])('%s is refused with the form that is expected', async address => {
  await expect(open(address)).rejects.toThrow(`expected s3://BUCKET/PREFIX`)
})

test('one message lists every wrong or missing setting of S3, without a secret', async () => {
  const wrong = { ARCHIVE_S3_ENDPOINT: 'ftp://x', ARCHIVE_S3_REGION: 'A', ARCHIVE_S3_ACCESS_KEY_ID: 'two words' }
  const error = await open('s3://bucket', wrong).catch((thrown: unknown) => thrown)
  if (!(error instanceof SettingsError)) return expect.unreachable('the settings are taken')
  expect(error.problems.map(({ name }) => name)).toEqual([
    'ARCHIVE_S3_ENDPOINT',
    'ARCHIVE_S3_REGION',
    'ARCHIVE_S3_ACCESS_KEY_ID',
    'ARCHIVE_S3_SECRET_ACCESS_KEY',
  ])
  expect(error.message).not.toContain('two words')
  await open('s3://bucket', { ...keys, ARCHIVE_S3_CA_FILE: '/ca' })
  await expect(open('s3://bucket', { ...keys, ARCHIVE_S3_CA_FILE: '/none' })).rejects.toThrow('ARCHIVE_S3_CA_FILE')
})

test('the client of S3 is loaded for an address in S3 only', async () => {
  const program = `
    import module from 'node:module'
    const loaded = () => Object.keys(module._cache).filter(file => file.includes('aws4')).length > 0
    const { targetOpener } = await import('./tools/archive/open-target.ts')
    const open = targetOpener({ environment: ${JSON.stringify(keys)}, readFile: () => undefined })
    await open('/mnt/a')
    const before = loaded()
    await open('s3://bucket')
    console.log(before, loaded())`
  const cwd = join(import.meta.dirname, '../../..')
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd })
  expect(stdout).toBe('false true\n')
})
