/** A list of a redaction that is read beside an archive, and the receipt, which knows the topic without the texts. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { REDACTION_FORMAT, redactLogs } from '../../../../tools/archive/redaction/redact-log.ts'
import {
  completeRedaction,
  findRedactions,
  readRedaction,
  writeRedaction,
} from '../../../../tools/archive/redaction/redaction-files.ts'
import { CommandError, Stopped } from '../../../../tools/failures.ts'
import { periodRecorded, repRecorded } from '../../../support/events.ts'
import { archiveOf, entriesOf } from './memory-log.ts'

test('a list is doubted only if the archive cannot be redacted by it, not if the archive cannot be read or a signal comes', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-list-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'list.json')
  await writeFile(file, JSON.stringify({ format: REDACTION_FORMAT, organization: 'org_a', rep: 'rep_1' }))
  const logs = archiveOf({ events: entriesOf([periodRecorded({ org_id: 'org_a' })]), 'api-keys': [] })
  const { signal } = new AbortController()
  await expect(readRedaction(file, logs, signal)).rejects.toThrow(
    `there is nothing to redact. Is ${file} the list of this archive? Nothing is changed`,
  )
  const unread = new CommandError('s3 does not answer')
  const archived = () => ({ topic: 't', read: () => Promise.reject(unread) })
  await expect(readRedaction(file, { ...logs, archived }, signal)).rejects.toBe(unread)
  const stopped = new Stopped()
  await expect(readRedaction(file, logs, AbortSignal.abort(stopped))).rejects.toBe(stopped)
})

test('a redaction concerns each archive of the log, until it is done: then no longer that of the topic with the redacted log', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-receipts-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const logs = archiveOf({ events: entriesOf([repRecorded({ org_id: 'org_a', id: 'rep_1' })]), 'api-keys': [] })
  const passes = { onDone: async () => undefined, startAgain: () => undefined }
  const { signal } = new AbortController()
  const redaction = await redactLogs(logs, { org: 'org_a', rep: 'rep_1', also: [] }, passes, signal)
  const { cluster_id, topic } = logs.manifests.events
  const concerns = async (begun_topic_id?: string): Promise<boolean> =>
    (await findRedactions(directory, { cluster_id, topic, ...(begun_topic_id && { begun_topic_id }) })).length > 0
  await writeRedaction(redaction, { changes: join(directory, 'list.json') }, directory, 0)
  expect(await concerns('new')).toBe(true)
  await completeRedaction(redaction, directory, 0, 'new')
  expect([await concerns('new'), await concerns('old'), await concerns()]).toEqual([false, true, true])
})
