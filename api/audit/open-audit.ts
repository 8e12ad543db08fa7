/** Opens the audit log that the settings name. */
import type { Producer } from 'kafkajs'
import { type Schedule, SettingsError } from '../../core/runtime/index.ts'
import type { Audit } from './audit-reads.ts'
import { createFileLog, requireWritable } from './file-log.ts'
import { createOutputLog, type OutputStream } from './output-log.ts'
import { createTopicLog } from './topic-log.ts'
import { type AuditLog, createAuditWriter, type OnLines } from './write-lines.ts'

type Parts = {
  /** `stdout`, a path, or `kafka:` and a topic. */
  readonly target: string
  readonly isStrict: boolean
  readonly stdout: OutputStream
  /** Returns the function that creates producers. @throws SettingsError if settings of Kafka are wrong */
  readonly createProducers: () => Promise<() => Pick<Producer, 'connect' | 'disconnect' | 'send'>>
  readonly onLines: OnLines
  readonly elapsed: () => number
  readonly later: Schedule
}

const TOPIC = 'kafka:'

/** @throws SettingsError if the file cannot be written, or settings of Kafka are wrong */
export const openAudit = async ({ target, isStrict, onLines, elapsed, later, ...parts }: Parts): Promise<Audit> => {
  const auditLog = await openLog(target, parts)
  return { isStrict, writer: createAuditWriter({ auditLog, isStrict, onLines, elapsed, later }) }
}

const openLog = async (
  target: string,
  { stdout, createProducers }: Pick<Parts, 'stdout' | 'createProducers'>,
): Promise<AuditLog> => {
  if (target === 'stdout') return createOutputLog(stdout)
  if (target.startsWith(TOPIC)) return createTopicLog(target.slice(TOPIC.length), await createProducers())
  try {
    await requireWritable(target)
  } catch {
    const expected = 'a file that can be written, in a directory that exists'
    throw new SettingsError([{ name: 'AUDIT_LOG', expected, got: JSON.stringify(target) }])
  }
  return createFileLog(target)
}
