/**
 * The log of the API: one line a request, with the address of a refused one, and messages for operators. Never a URL, a
 * key, a record id, an amount or a message of a library.
 */
import type { Logger } from 'pino'
import { errorPlace } from '../../schemas/error-place.ts'
import type { RequestState } from './request.ts'

export type Log = {
  readonly answered: (
    state: RequestState,
    method: string,
    status: number,
    milliseconds: number,
    because?: string,
    from?: RefusedAddress,
  ) => void
  /** Logs a bug: the class of the error and its place. */
  readonly failed: (requestId: string, error: unknown) => void
  /** Logs an error without a listener: its class and place. */
  readonly unhandled: (level: 'error' | 'fatal', error: unknown) => void
  /** Logs the refusal of bytes that never became a request. */
  readonly refusedBytes: (requestId: string, because: string) => void
  readonly say: (level: 'info' | 'warn' | 'error', message: string, details?: Record<string, string | number>) => void
}

/** The address of a refused request, and how many refusals of this address got no line since its last line. */
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
