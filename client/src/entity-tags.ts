/** Keeps answers with their entity tags. An answer that has not changed is not sent again, and costs no unit. */
import type { Send } from './retry.ts'

type Kept = { readonly tag: string; readonly body: string; readonly headers: Headers }

/** @param charactersMax of all bodies together; the answers that were used longest ago go first */
export const keepingAnswers = (send: Send, charactersMax: number): Send => {
  const kept = new Map<string, Kept>()
  let characters = 0

  const forget = (url: string): void => {
    characters -= kept.get(url)?.body.length ?? 0
    kept.delete(url)
  }
  const keep = (url: string, answer: Kept): void => {
    forget(url)
    kept.set(url, answer)
    characters += answer.body.length
    for (const oldest of kept.keys()) {
      if (characters <= charactersMax) return
      forget(oldest)
    }
  }

  return async request => {
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
      return new Response(answer.body, { headers })
    }
    const tag = response.headers.get('ETag')
    if (response.status !== 200 || tag === null) return response
    const body = await response.text()
    keep(request.url, { tag, body, headers: response.headers })
    return new Response(body, { headers: response.headers })
  }
}
