/** The errors that end a command, and their exit codes. Messages never quote a record. */
import kafkajs from 'kafkajs'
import { errorLocation, SettingsError, StopError, Unanswered } from '../core/runtime/index.ts'

export { type ExitCode, exitCodes } from './exit-codes.ts'

/** An error whose message the operator reads unchanged. */
export class CommandError extends Error {
  override name = 'CommandError'
}

/** The reason of the signal that stops a command. No CommandError: a stop is never answered like a refusal. */
export class Stopped extends Error {
  override name = 'Stopped'
  constructor() {
    super('stopped')
  }
}

/** Codes of errors of sockets. Like those of an open file, they have a system call and no path. */
const connectionErrors = /^E(?:ADDR|CONN|HOST|NET|NOTFOUND|PIPE|TIMEDOUT)/

/** The message of our own errors; the class and place of others, because their messages can quote a record. */
export const messageOf = (error: unknown): string => {
  // The first error is the cause. The second one is of a cleanup after it.
  if (error instanceof SuppressedError) return `${messageOf(error.suppressed)}; after that ${messageOf(error.error)}`
  if (error instanceof CommandError || error instanceof StopError || error instanceof Stopped) return error.message
  if (error instanceof Unanswered || error instanceof SettingsError) return error.message
  // A file error: missing, not a directory, disk full.
  if (error instanceof Error && 'syscall' in error && 'code' in error) {
    if ('path' in error) return `${error.path} cannot be used: ${error.code}`
    // The errors of an open file have no path.
    if (!connectionErrors.test(`${error.code}`)) return `a file cannot be used: ${error.code}`
  }
  if (error instanceof kafkajs.KafkaJSError) return messageOfKafka(error)
  const { error: name, at } = errorLocation(error)
  return ['a defect:', name, ...at.slice(0, 1)].join(' ')
}

/** After its last attempt, the client wraps the error of this attempt. */
const messageOfKafka = (error: kafkajs.KafkaJSError): string => {
  const { cause } = error
  if (error instanceof kafkajs.KafkaJSNumberOfRetriesExceeded && cause instanceof kafkajs.KafkaJSError)
    return messageOfKafka(cause)
  if (error instanceof kafkajs.KafkaJSProtocolError) return `Kafka answers ${error.type}`
  if (noAnswers.some(Type => error instanceof Type))
    return `Kafka does not answer (${error.name}): look at KAFKA_BROKERS and at the brokers. Then run the same again`
  return `Kafka: ${error.name}`
}
const noAnswers = [kafkajs.KafkaJSConnectionError, kafkajs.KafkaJSRequestTimeoutError]

/** Whether an error is only the end that a signal asked for. All others have another cause, also after a signal. */
export const isAbort = (error: unknown, { reason }: AbortSignal): boolean =>
  error === reason || (error instanceof Error && error.name === 'AbortError')
