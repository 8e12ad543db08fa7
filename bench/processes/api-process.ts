/** The real API process on a projection. */
import type { Bench } from '../rig/bench.ts'
import { type Running, startBenchProcess } from '../rig/process.ts'

export type RunningApi = { readonly url: string; readonly process: Running; [Symbol.asyncDispose](): Promise<void> }

/** High enough that it never limits. */
const RATE_LIMIT = 100_000_000

/** @param elasticsearchUrl may be that of a proxy; @param more settings */
export const startApi = async (
  { signal }: Bench,
  prefix: string,
  elasticsearchUrl: string,
  more: Readonly<Record<string, string>> = {},
): Promise<RunningApi> => {
  const process = await startBenchProcess({
    script: 'api/main.ts',
    ready: 'ready',
    signal,
    settings: {
      ELASTICSEARCH_URL: elasticsearchUrl,
      ELASTICSEARCH_INDEX_PREFIX: prefix,
      API_PORT: '0',
      API_ADMIN_PORT: '0',
      RATE_LIMIT_REQUESTS: String(RATE_LIMIT),
      API_DRAIN_SECONDS: '0',
      ...more,
    },
  })
  const port = process.lines.find(line => line.port !== undefined)?.port
  const url = `http://127.0.0.1:${port}/api/v1`
  return { url, process, [Symbol.asyncDispose]: () => process.stop() }
}

/** Returns the header of a request with this key. */
export const authorization = (key: string) => ({ authorization: `Bearer ${key}` })

/** Returns the JSON of the answer, of the type that the caller names. @throws Error if the status is not 200 */
export const readApi = async <Answer>(url: string, key: string): Promise<Answer> => {
  const answer = await fetch(url, { headers: authorization(key) })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`the API answers ${answer.status} to ${url}: ${text.slice(0, 500)}`)
  return JSON.parse(text)
}

/** Returns the milliseconds of one request. */
export const timeRequest = async (api: RunningApi, key: string, path: string): Promise<number> => {
  const began = performance.now()
  await readApi(`${api.url}${path}`, key)
  return performance.now() - began
}

type WalkedPage = { readonly path: string; readonly ids: readonly string[] }

/** Reads all pages of the list of payouts, one after the other. */
export const walkPayouts = async (
  url: string,
  key: string,
  limit: number,
  signal: AbortSignal,
): Promise<WalkedPage[]> => {
  const first = `/payouts?limit=${limit}`
  const pages: WalkedPage[] = []
  for (let path = first; ; ) {
    signal.throwIfAborted()
    const page = await readApi<PayoutsPage>(`${url}${path}`, key)
    pages.push({ path, ids: page.data.map(({ id }) => id) })
    if (!page.has_more) return pages
    path = `${first}&starting_after=${page.next_cursor}`
  }
}

/** A page of the list of payouts: the fields that are used. */
export type PayoutsPage = {
  readonly data: readonly { readonly id: string; readonly line_items: readonly { readonly deal_id: string }[] }[]
  readonly has_more: boolean
  readonly next_cursor: string
}
