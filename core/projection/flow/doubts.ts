/**
 * Reads whose answers need a check before a decision rests on them. A shard without a primary answers no read. The
 * shard that comes in its place can be empty (`allocate_empty_primary`): it answers that no document is there.
 * In: the reads of a stream. Out: their answers.
 * Promises: a read is in doubt once an attempt was not answered, and once it takes DOUBTED_READ_MS, since Elasticsearch
 *   holds a request while a shard has no primary. While a read of the stream is in doubt, the check follows each answer
 *   before the caller gets it. Other reads cost no request.
 * Can go wrong: as the check. Nobody reads while the shard has no primary: then only `watchIndices` finds the new one.
 */
import { DOUBTED_READ_MS } from '../limits.ts'

type Read = { readonly began: number; isUnanswered: boolean }

export class Doubts {
  readonly #elapsed: () => number
  /** The reads under way, and those whose answers are checked now. */
  readonly #reads = new Set<Read>()

  /** @param elapsed milliseconds on a monotonic clock */
  constructor(elapsed: () => number) {
    this.#elapsed = elapsed
  }

  /** @param read calls `doubt` after each attempt that was not answered */
  async resolve<Result>(read: (doubt: () => void) => Promise<Result>, check: () => Promise<unknown>): Promise<Result> {
    const own: Read = { began: this.#elapsed(), isUnanswered: false }
    this.#reads.add(own)
    try {
      const result = await read(() => {
        own.isUnanswered = true
      })
      if (this.#isOneInDoubt()) await check()
      return result
    } finally {
      this.#reads.delete(own)
    }
  }

  #isOneInDoubt(): boolean {
    const before = this.#elapsed() - DOUBTED_READ_MS
    return [...this.#reads].some(({ began, isUnanswered }) => isUnanswered || began <= before)
  }
}
