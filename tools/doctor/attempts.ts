/** Runs checks within a time limit. An error of a check is a finding; a signal of the operator ends the command. */
import kafkajs from 'kafkajs'
import { messageOf } from '../failures.ts'
import { CHECK_TIMEOUT_MS } from '../limits.ts'
import { type Finding, failed } from './finding.ts'

export type Attempt = (
  check: string,
  attempt: (signal: AbortSignal) => Promise<readonly Finding[]>,
) => Promise<Finding[]>

/** The message of the Kafka client names brokers and topics only, and says more than its class. */
const reasonOf = (error: unknown): string =>
  error instanceof kafkajs.KafkaJSError ? `Kafka: ${error.message}` : messageOf(error)

/** @param report is called with each finding */
export const createAttempt =
  (stopping: AbortSignal, report: (finding: Finding) => void): Attempt =>
  async (check, attempt) => {
    const found = await tried(check, attempt, stopping)
    for (const finding of found) report(finding)
    return [...found]
  }

const tried = async (
  check: string,
  attempt: (signal: AbortSignal) => Promise<readonly Finding[]>,
  stopping: AbortSignal,
): Promise<readonly Finding[]> => {
  const late = AbortSignal.timeout(CHECK_TIMEOUT_MS)
  const signal = AbortSignal.any([stopping, late])
  signal.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([attempt(signal), aborted.promise])
  } catch (error) {
    stopping.throwIfAborted()
    if (late.aborted) return [failed(check, `no answer within ${CHECK_TIMEOUT_MS / 1_000} s`)]
    return [failed(check, reasonOf(error))]
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
