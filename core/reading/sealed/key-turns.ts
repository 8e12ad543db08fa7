/**
 * Shares the reads of seal keys between organizations, and between the requests of one.
 * In: a request. Out: its turns to read keys.
 * Promises: an organization reads at most as many keys at once as SEAL_KEYS_OF_ORGANIZATION permits. A few of its
 *   requests take turns, key by key, so that a small one need not wait for a large one. The others wait for one of
 *   these requests to end: if all took turns, none would end in time. A request that has ended gets no turn.
 * Can go wrong: no turn in time → `unavailable`: other requests of the same organization read keys.
 */
import {
  abortReason,
  createSemaphores,
  type Release,
  type Schedule,
  type Semaphores,
  unavailable,
} from '../../runtime/index.ts'
import type { KeyTurn } from './key-store.ts'
import { SEAL_KEY_REQUESTS_OF_ORGANIZATION, SEAL_KEYS_OF_ORGANIZATION } from './limits.ts'

/** Permits by organization: of requests that read keys, and of keys. */
export type KeyReads = Readonly<Record<'requests' | 'keys', Semaphores>>

/** Creates the permits of a process. */
export const createKeyReads = (later: Schedule): KeyReads => ({
  requests: createSemaphores(SEAL_KEY_REQUESTS_OF_ORGANIZATION, later),
  keys: createSemaphores(SEAL_KEYS_OF_ORGANIZATION, later),
})

/** Runs the work of a request with its turns. They end with the work, or with the signal. */
export const withKeyTurns = async <Result>(
  { requests, keys }: KeyReads,
  org: string,
  signal: AbortSignal,
  work: (turn: KeyTurn) => Promise<Result>,
): Promise<Result> => {
  const ending = new AbortController()
  const untilEnd = AbortSignal.any([signal, ending.signal])
  const take = async (permits: Semaphores): Promise<Release> => {
    const release = await permits.acquire(org, untilEnd)
    if (release === undefined) throw unavailable('seal_key_reads')
    return release
  }
  let request: Promise<Release> | undefined
  let last: Promise<unknown> | undefined
  const turn: KeyTurn = () => {
    request ??= take(requests)
    // One key of a request waits at a time: the next one goes behind those of the other requests.
    const taken = (last ?? request).then(() => take(keys))
    last = taken
    return taken
  }
  try {
    return await work(turn)
  } finally {
    ending.abort(abortReason('client_gone'))
    request?.then(
      release => release(),
      () => undefined,
    )
  }
}
