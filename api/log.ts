/** What the API logs: one line a request, and what an operator must know. Never a URL, a key, an id of a record, an amount or another library's message. */
import type { Logger } from 'pino'
import type { State } from './request.ts'

export type Log = {
  readonly answered: (state: State, method: string, status: number, milliseconds: number, because?: string) => void
  /** An error that is a bug of ours: its kind and place. */
  readonly failed: (requestId: string, error: unknown) => void
  /** Bytes that never became a request. */
  readonly refusedBytes: (requestId: string, because: string) => void
  readonly say: (level: 'info' | 'warn' | 'error', message: string, details?: Record<string, string | number>) => void
}

export const createLog = (pino: Logger): Log => ({
  answered: (state, method, status, milliseconds, because) =>
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
      },
      'answered',
    ),
  failed: (requestId, error) =>
    pino.error(
      {
        request_id: requestId,
        error: error instanceof Error ? error.name : typeof error,
        // The frames without the message: it may quote what was sent or stored.
        at: error instanceof Error ? framesOf(error) : undefined,
      },
      'a request failed',
    ),
  refusedBytes: (requestId, because) => pino.info({ request_id: requestId, because }, 'refused bytes'),
  say: (level, message, details) => pino[level](details ?? {}, message),
})

const framesOf = (error: Error): string[] =>
  (error.stack ?? '')
    .split('\n')
    .filter(line => /^\s+at /.test(line))
    .map(line => line.trim().replace(/\(?file:\/\/.*\/(api|schemas|node_modules)\//, '($1/'))
    .slice(0, 8)
