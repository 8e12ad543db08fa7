/**
 * What the API logs: one line a request, of refusals the address that they came from, and what an operator must know.
 * Never a URL, a key, an id of a record, an amount or another library's message.
 */
import type { Logger } from 'pino'
import { errorPlace } from '../../schemas/error-place.ts'
import type { State } from './request.ts'

export type Log = {
  readonly answered: (
    state: State,
    method: string,
    status: number,
    milliseconds: number,
    because?: string,
    from?: RefusedAddress,
  ) => void
  /** An error that is a bug of ours: its kind and place. */
  readonly failed: (requestId: string, error: unknown) => void
  /** An error that nobody listened for: its kind and place. */
  readonly unhandled: (level: 'error' | 'fatal', error: unknown) => void
  /** Bytes that never became a request. */
  readonly refusedBytes: (requestId: string, because: string) => void
  readonly say: (level: 'info' | 'warn' | 'error', message: string, details?: Record<string, string | number>) => void
}

/** Where a refused request came from, and how many refusals of there got no line since the last one that did. */
export type RefusedAddress = { readonly address: string | undefined; readonly unlogged: number }

export const createLog = (pino: Logger): Log => ({
  answered: (state, method, status, milliseconds, because, from) =>
    pino.info(
      {
        request_id: state.requestId,
        method,
        route: state.route,
        status,
        ms: Math.round(milliseconds * 100) / 100,
        key_id: state.key?.id,
        organization_hash: state.key?.orgHash,
        because,
        address: from?.address,
        unlogged: from?.unlogged || undefined,
      },
      'answered',
    ),
  failed: (requestId, error) =>
    pino.error(
      {
        request_id: requestId,
        ...errorPlace(error),
      },
      'a request failed',
    ),
  unhandled: (level, error) => pino[level](errorPlace(error), 'an error that nobody listened for'),
  refusedBytes: (requestId, because) => pino.info({ request_id: requestId, because }, 'refused bytes'),
  say: (level, message, details) => pino[level](details ?? {}, message),
})
