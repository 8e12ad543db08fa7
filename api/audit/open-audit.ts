/** Opens the audit log that the settings name. */
import type { Admin, Producer } from 'kafkajs'
import { assertNotCompacted } from '../../core/log/index.ts'
import { type Schedule, SettingsError, StopError } from '../../core/runtime/index.ts'
import { type Audit, type AuditLog, createAuditWriter, type OnLines } from './audit-reads.ts'
import { createFileLog, requireWritable } from './file-log.ts'
import { createOutputLog, type OutputStream } from './output-log.ts'
import { createTopicLog, reasonOfKafka } from './topic-log.ts'

type Parts = {
  /** `stdout`, a path, or `kafka:` and a topic. */
  readonly target: string
  readonly isStrict: boolean
  readonly stdout: OutputStream
  /** Reads the settings of Kafka. @throws SettingsError if they are wrong */
  readonly openKafka: () => AuditKafka
  /** Called if the settings of the topic cannot be read. */
  readonly onUnchecked: (reason: string) => void
  readonly onLines: OnLines
  readonly elapsed: () => number
  readonly later: Schedule
}

type AuditKafka = {
  readonly admin: () => Pick<Admin, 'connect' | 'disconnect' | 'describeConfigs'>
  readonly producer: () => Pick<Producer, 'connect' | 'disconnect' | 'send'>
}

const TOPIC = 'kafka:'

/**
 * @throws SettingsError if the file cannot be written, or settings of Kafka are wrong
 * @throws StopError if the topic is compacted: of the lines with the same key, it would keep only the last one
 */
export const openAudit = async ({ target, isStrict, onLines, elapsed, later, ...parts }: Parts): Promise<Audit> => {
  const auditLog = await openLog(target, later, parts)
  return { isStrict, writer: createAuditWriter({ auditLog, isStrict, onLines, elapsed, later }) }
}

const openLog = async (
  target: string,
  later: Schedule,
  { stdout, openKafka, onUnchecked }: Pick<Parts, 'stdout' | 'openKafka' | 'onUnchecked'>,
): Promise<AuditLog> => {
  if (target === 'stdout') return createOutputLog(stdout)
  if (target.startsWith(TOPIC)) {
    const topic = target.slice(TOPIC.length)
    const kafka = openKafka()
    await checkTopic(topic, kafka.admin(), onUnchecked)
    return createTopicLog(topic, kafka.producer, later)
  }
  try {
    await requireWritable(target)
  } catch {
    const expected = 'a file that can be written, in a directory that exists'
    throw new SettingsError([{ name: 'AUDIT_LOG', expected, got: JSON.stringify(target) }])
  }
  return createFileLog(target)
}

/** An API without the right, or without Kafka, starts: its answers do not depend on either. */
const checkTopic = async (
  topic: string,
  admin: ReturnType<AuditKafka['admin']>,
  onUnchecked: Parts['onUnchecked'],
): Promise<void> => {
  try {
    await admin.connect()
    await assertNotCompacted(admin, topic)
  } catch (error) {
    if (error instanceof StopError && error.code === 'topic_unsuitable') throw error
    onUnchecked(error instanceof StopError ? error.message : reasonOfKafka(error, topic))
  } finally {
    // Nobody waits: a client of a silent broker takes long to disconnect.
    void admin.disconnect().catch(() => undefined)
  }
}
