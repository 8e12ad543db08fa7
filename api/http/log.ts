/**
 * The log of the API: one line a request, with the address of a refused one, and messages for operators. Never a URL, a
 * key, a record id, an amount or a message of a library.
 */
import type { Logger } from 'pino'
import { errorLocation } from '../../schemas/error-location.ts'
import type { RequestState } from './request.ts'

export type Log = {
  readonly answer: (
    state: RequestState,
    method: string,
    status: number,
    milliseconds: number,
    reason?: string,
    from?: RefusedAddress,
  ) => void
  /** Logs a bug: the class of the error and its location. */
  readonly failure: (requestId: string, error: unknown) => void
  /** Logs an error without a listener: its class and location. */
  readonly unhandledError: (level: 'error' | 'fatal', error: unknown) => void
  /** Logs the refusal of bytes that never became a request. */
  readonly refusedBytes: (requestId: string, reason: string) => void
  readonly say: (level: 'info' | 'warn' | 'error', message: string, details?: Details) => void
}

type Details = Record<string, string | number | readonly string[]>

/** The address of a refused request, and how many refusals of this address got no line since its last line. */
type RefusedAddress = { readonly address: string | undefined; readonly unlogged: number }

/** Creates the log of the API on a logger. Times are in milliseconds. */
export const createLog = (pino: Logger): Log => ({
  answer: (state, method, status, milliseconds, reason, from) =>
    pino.info(
      {
        request_id: state.requestId,
        method,
        route: state.route,
        status,
        ms: Math.round(milliseconds * 100) / 100,
        key_id: state.key?.id,
        organization_hash: state.key?.orgHash,
        because: reason,
        address: from?.address,
        unlogged: from?.unlogged || undefined,
      },
      'answered',
    ),
  failure: (requestId, error) =>
    pino.error(
      {
        request_id: requestId,
        ...errorLocation(error),
      },
      'a request failed',
    ),
  unhandledError: (level, error) => pino[level](errorLocation(error), 'an error that nobody listened for'),
  refusedBytes: (requestId, reason) => pino.info({ request_id: requestId, because: reason }, 'refused bytes'),
  say: (level, message, details) => pino[level](details ?? {}, message),
})
