/** Says in words why something cannot be shown, and what to do. */
import { RefusedError } from '../../../client/src/index.ts'
import { isOfMoment, isRefused, messageOfService } from '../refusals.ts'
import type { ViewReading } from '../state/reading.ts'
import { texts } from '../texts.ts'

/** @param what names what was read: `payouts` */
export const wordsFor = (error: unknown, what: string): string => {
  const words = texts.refused
  if (!(error instanceof RefusedError)) return isOfConnection(error) ? words.connection : words.defect
  const message = messageOfService(error)
  const byCode = new Map<string, string>(
    Object.entries({
      unauthorized: words.unauthorized,
      forbidden: words.forbidden(what, /\b[a-z]+:read\b/.exec(message)?.[0]),
      not_found: words.notFound,
      invalid_request: isOfMoment(error.code, message) ? words.moment : words.invalid,
      invalid_cursor: words.invalid,
      rate_limited: words.rateLimited,
      unavailable: words.unavailable,
    }),
  )
  return byCode.get(error.code) ?? words.unknown(error.status)
}

/** The message of the service, which is for programmers, where it says more than `wordsFor`. */
const detailOf = (error: unknown): string | undefined =>
  error instanceof RefusedError && error.code.startsWith('invalid_')
    ? texts.refused.inItsWords(messageOfService(error))
    : undefined

/** `fetch` rejects with a TypeError; the time limit of the client and a closed page with the others. */
const isOfConnection = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof DOMException && ['TimeoutError', 'AbortError'].includes(error.name))

/** Whether the same request can have another answer: a record may come later. The permissions of a key never change. */
const mayHelp = (error: unknown): boolean => !isRefused(error, 'forbidden', 'invalid_request', 'invalid_cursor')

type Props = { readonly reading: ViewReading<unknown>; readonly what: string }

/** The state of a reading that has nothing to show yet: it reads, or was refused. Nothing when it has a value. */
export const ReadingState = ({ reading: { value, error, isReading, again }, what }: Props) => {
  if (error !== undefined) {
    const id = error instanceof RefusedError ? error.requestId : null
    const detail = detailOf(error)
    return (
      <div class="refused" role="alert">
        <p>{wordsFor(error, what)}</p>
        {detail !== undefined && <p class="quiet detail">{detail}</p>}
        {id !== null && <p class="quiet detail">{texts.refused.request(id)}</p>}
        {/* Never disabled: a page that reads again would take the focus away. */}
        {mayHelp(error) && (
          <button type="button" onClick={again} aria-busy={isReading}>
            {texts.tryAgain}
          </button>
        )}
      </div>
    )
  }
  return value === undefined ? <p class="quiet">{texts.reading}</p> : null
}
