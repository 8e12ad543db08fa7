/**
 * What ends a command, and with which exit code. Messages are our own words: a record's content is shown on request
 * only.
 */
import kafkajs from 'kafkajs'
import { Unavailable } from '../projector/elasticsearch/client.ts'
import { nameOf, StopError } from '../projector/failures.ts'
import { UNHANDLED_EXIT_CODE } from '../schemas/error-place.ts'
import { SettingsError } from '../schemas/settings.ts'

/** Said to the operator as it is. */
export class CommandError extends Error {
  override name = 'CommandError'
}

export const exitCodes = {
  done: 0,
  /** Kafka or Elasticsearch away, a wrong setting, no such record. */
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** Done, but not everything that was asked for is, or would be, applied. */
  notAll: 3,
  /** Compared, and not the same. */
  different: 3,
  /** An error that nothing listened for: a defect. */
  unhandled: UNHANDLED_EXIT_CODE,
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** In our own words, or by its class: the message of another's error can quote a record. */
export const messageOf = (error: unknown): string => {
  const ours = [CommandError, StopError, Unavailable, SettingsError].some(known => error instanceof known)
  if (ours) return (error as Error).message
  // A file: where there is none, or one that is no directory, or no room.
  if (error instanceof Error && 'syscall' in error && 'path' in error && 'code' in error) {
    return `${error.path} cannot be used: ${error.code}`
  }
  return error instanceof kafkajs.KafkaJSError ? `Kafka: ${error.name}` : `a defect: ${nameOf(error)}`
}
