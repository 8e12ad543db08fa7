/** Keeps whole answers with their entity tags. An answer that has not changed is not sent again, and costs no unit. */
import type { Send } from './retry.ts'
import { WholeAnswer } from './whole-answer.ts'

type Kept = { readonly tag: string; readonly body: string; readonly headers: Headers }

/** Characters of an answer that is kept, its headers included. */
const sizeOf = (url: string, answer: Kept | undefined): number =>
  answer === undefined ? 0 : url.length + answer.body.length + HEADERS_SIZE
const HEADERS_SIZE = 1_000

const keptHeaders = ({ headers }: Response): Headers =>
  new Headers([...headers].filter(([name]) => ['content-type', 'etag', 'projection-time'].includes(name)))

/**
 * Returns a function for a `send` that returns whole answers only: their text can be read several times. All that it
 * makes share the answers.
 * @param charactersMax of all answers together; the answers that were used longest ago go first
 */
export const keepingAnswers = (charactersMax: number): ((send: Send) => Send) => {
  const kept = new Map<string, Kept>()
  let characters = 0

  const forget = (url: string): void => {
    characters -= sizeOf(url, kept.get(url))
    kept.delete(url)
  }
  const keep = (url: string, answer: Kept): void => {
    forget(url)
    kept.set(url, answer)
    characters += sizeOf(url, answer)
    for (const oldest of kept.keys()) {
      if (characters <= charactersMax) return
      forget(oldest)
    }
  }

  return send => async request => {
    const known = kept.get(request.url)
    if (known !== undefined) request.headers.set('If-None-Match', known.tag)
    const response = await send(request)
    if (response.status === 304 && known !== undefined) {
      const headers = new Headers(known.headers)
      response.headers.forEach((value, name) => {
        headers.set(name, value)
      })
      const answer = { ...known, headers }
      keep(request.url, answer)
      // Parsed anew: the reader of an earlier answer may have changed its records.
      return new WholeAnswer(answer.body, JSON.parse(answer.body), headers)
    }
    const tag = response.headers.get('ETag')
    if (response.status !== 200 || tag === null) return response
    const body = await response.text()
    // The page of a `wait` is not kept: nobody asks for it again.
    if (!request.url.includes('wait=')) keep(request.url, { tag, body, headers: keptHeaders(response) })
    return response
  }
}
