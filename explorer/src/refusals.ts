/**
 * Why the API refused, by its code: a proxy before it may answer with the same status, and says nothing about the key,
 * the moment or the record.
 */
import { RefusedError } from '../../client/src/index.ts'

export const isRefused = (error: unknown, ...codes: readonly string[]): error is RefusedError =>
  error instanceof RefusedError && codes.includes(error.code)

export const lacksPermission = (error: unknown): boolean => isRefused(error, 'forbidden')

/** The message of the service, without the status and code that an error of the client begins with. */
export const messageOfService = (error: RefusedError): string => error.message.replace(/^\d+ \w+: /, '')

/** One code is for all requests that are invalid. The message begins with the name of the parameter. */
export const isOfMoment = (code: string, message: string): boolean =>
  code === 'invalid_request' && message.startsWith('`as_of`')
export const refusesMoment = (error: unknown): boolean =>
  error instanceof RefusedError && isOfMoment(error.code, messageOfService(error))

/** Whether the API has decided. Otherwise it cannot answer now, or something before it has answered. */
export const isDecided = (error: unknown): boolean =>
  error instanceof RefusedError && error.code !== 'unknown' && error.status < 500 && error.status !== 429
