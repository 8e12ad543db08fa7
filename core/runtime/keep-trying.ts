/** Retries what fails with `Unanswered`, with exponential backoff, until Kafka or Elasticsearch answers. */
import type { Health } from './health.ts'
import { RETRY_FIRST_MS, RETRY_LAST_MS } from './limits.ts'

/** A lost connection, a timeout, an overload, a write block. `status`: of Elasticsearch; 0: no response. */
export class Unanswered extends Error {
  override name = 'Unanswered'
  readonly of: 'kafka' | 'elasticsearch'
  readonly status: number
  /** The message without the name of the service. */
  readonly why: string
  /**
   * @param type of the error, if it is about a single document or a block; of Kafka: the partitions that it is about
   * @param which index it is about, if it is known; of Kafka: the class of the error, if the authentication failed
   */
  constructor(of: 'kafka' | 'elasticsearch', status = 0, type?: string, which?: string) {
    const answer = [status, type, which && `index ${which}`].filter(part => part !== undefined).join(', ')
    const silent = of === 'kafka' && type !== undefined ? `does not answer for ${type}` : 'does not answer'
    const unanswered = of === 'kafka' && which !== undefined ? `${silent} (${which})` : silent
    const why = status === 0 ? unanswered : `answers ${answer}`
    super(`${of === 'kafka' ? 'Kafka' : 'Elasticsearch'} ${why}`)
    this.of = of
    this.status = status
    this.why = why
  }
}

export type RetryOptions = {
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>
  readonly random: () => number
  /** Called with each failure, and with undefined after a success. */
  readonly onTrouble: (trouble: Unanswered | undefined) => void
}

/** How a caller of Kafka or Elasticsearch waits between its attempts, and where it reports that it has to wait. */
export type Retrying = { readonly retryOptions: Omit<RetryOptions, 'onTrouble'>; readonly health: Health }

/** Retries with exponential backoff. @throws the first error other than `Unanswered`, or the signal's reason */
export const keepTrying = async <Result>(
  attempt: (signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
  { sleep, random, onTrouble }: RetryOptions,
): Promise<Result> => {
  for (let retry = 0; ; retry++) {
    signal.throwIfAborted()
    try {
      const result = await attempt(signal)
      onTrouble(undefined)
      return result
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof Unanswered)) throw error
      onTrouble(error)
    }
    await sleep(pauseBefore(retry, { random }), signal)
  }
}

/** Returns the backoff in milliseconds, with jitter. */
export const pauseBefore = (retry: number, { random }: Pick<RetryOptions, 'random'>): number => {
  const longest = Math.min(RETRY_FIRST_MS * 2 ** retry, RETRY_LAST_MS)
  return longest / 2 + (random() * longest) / 2
}
