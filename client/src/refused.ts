/**
 * The API refused a request. `code` is one of its documented codes, or `unknown` if something before the API answered.
 * Decide by it, not by the message or the status: a 404 of a proxy is no missing record.
 */
export class RefusedError extends Error {
  override name = 'RefusedError'
  readonly status: number
  readonly code: string
  /** For a report to the operator of the API. */
  readonly requestId: string | null

  constructor(response: Response, refusal: { readonly code: string; readonly message: string }) {
    super(`${response.status} ${refusal.code}: ${refusal.message}`)
    this.status = response.status
    this.code = refusal.code
    this.requestId = response.headers.get('X-Request-Id')
  }
}
