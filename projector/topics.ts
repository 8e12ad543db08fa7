/** `commission topics`: creates missing topics, configured to keep every record. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import { createMissingTopics, kafkaConfig } from '../core/log/index.ts'
import {
  endAtUnhandledErrors,
  kafkaSettings,
  nameOf,
  readSettings,
  SettingsError,
  StopError,
  topicSettings,
} from '../core/runtime/index.ts'

const main = async (): Promise<void> => {
  const settings = readSettings({ ...kafkaSettings, ...topicSettings }, process.env, readFileSync)
  const admin = new kafkajs.Kafka(kafkaConfig(settings, 'commission-topics', readFileSync, Date.now)).admin()
  await admin.connect()
  try {
    await createMissingTopics(settings, { admin, sleep, say: line => process.stdout.write(`${line}\n`) })
  } finally {
    await admin.disconnect()
  }
}

endAtUnhandledErrors(process, ({ error, at }) => {
  process.stderr.write(`a defect: ${[error, ...at].join('\n  ')}\n`)
})
try {
  await main()
} catch (error) {
  const isOurs = error instanceof SettingsError || error instanceof StopError
  // The client's message is safe: it names brokers and topics only.
  const reason = error instanceof Error ? error.message : nameOf(error)
  process.stderr.write(`${isOurs ? reason : `Kafka: ${reason}`}\n`)
  process.exitCode = 1
}
