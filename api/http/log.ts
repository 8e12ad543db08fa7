/**
 * The log of the API: a line for each request, and messages for operators. Requests without a valid key and those over
 * a limit may be a flood: answer/log-refusals.ts limits their lines, which have the address of the client. Never a URL,
 * a key, a record id, an amount or a message of a library.
 */
import type { Logger } from 'pino'
import { errorLocation } from '../../core/runtime/index.ts'
import type { Arrived, KnownSoFar } from './request.ts'

export type Log = {
  readonly answer: (
    state: Arrived & KnownSoFar,
    method: string,
    status: number,
    milliseconds: number,
    reason?: string,
    from?: LimitedAddress,
  ) => void
  /** Logs a bug: the class of the error and its location. */
  readonly failure: (requestId: string, error: unknown) => void
  /** Logs an error without a listener: its class and location. */
  readonly unhandledError: (level: 'error' | 'fatal', error: unknown) => void
  /** Logs the refusal of bytes that never became a request. */
  readonly refusedBytes: (requestId: string, reason: string, from: LimitedAddress) => void
  readonly say: (level: 'info' | 'warn' | 'error', message: string, details?: Details) => void
}

type Details = Record<string, string | number | readonly string[]>

/** The address of a request whose lines are limited, and how many of its requests got no line since its last line. */
type LimitedAddress = { readonly address: string | undefined; readonly unlogged: number }

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
  refusedBytes: (requestId, reason, { address, unlogged }) =>
    pino.info({ request_id: requestId, because: reason, address, unlogged: unlogged || undefined }, 'refused bytes'),
  say: (level, message, details) => pino[level](details ?? {}, message),
})
