/** Requests to the API, and the searches and multi-gets that the API sends to Elasticsearch for them, recorded once. */

import type { Bench } from '../rig/bench.ts'
import type { LoadRequest } from '../rig/load.ts'
import { authorization, readApi, startApi, walkPayouts } from './api-process.ts'
import { type Recorded, startRecordingProxy } from './recording-proxy.ts'

/** Requests to the API in turn, each with its request to Elasticsearch. */
export type Recording = {
  readonly what: 'page of 50' | 'page of 200' | 'single read' | 'statement'
  readonly api: readonly LoadRequest[]
  readonly raw: readonly LoadRequest[]
}

const PAGES = [50, 200] as const
/** Records of single reads, from the whole list. */
const SINGLE_READS = 500

/** Reads pages and records once through a recording proxy. @param apiUrl of the measured API */
export const record = async (bench: Bench, prefix: string, apiUrl: string, key: string): Promise<Recording[]> => {
  const wanted = (path: string): boolean => /-payouts\/_search\b/.test(path) || path.startsWith('/_mget')
  await using proxy = await startRecordingProxy(bench.elasticsearch.url, wanted)
  await using api = await startApi(bench, prefix, proxy.url)
  const headers = authorization(key)
  const recordings: Recording[] = []

  /** @param sought text in path or body of the one request for the record itself */
  const recordAsked = async (what: Recording['what'], sought: string, read: () => Promise<readonly string[]>) => {
    const before = proxy.recorded.length
    const paths = await read()
    const all = proxy.recorded.slice(before)
    const asked = all.filter(({ path, body }) => path.includes(sought) || body.includes(sought)).slice(0, paths.length)
    if (paths.length === 0 || asked.length < paths.length)
      throw new Error(`${what}: a request of the API to Elasticsearch was not recorded`)
    const straight = ({ method, path, headers: sent, body }: Recorded): LoadRequest => ({
      url: `${bench.elasticsearch.url}${path}`,
      method,
      headers: { ...sent, 'content-length': String(body.length) },
      body,
    })
    const api = paths.map(path => ({ url: `${apiUrl}${path}`, method: 'GET', headers }))
    recordings.push({ what, api, raw: asked.map(straight) })
  }
  const readEach = async (paths: readonly string[]): Promise<readonly string[]> => {
    for (const path of paths) await readApi(`${api.url}${path}`, key)
    return paths
  }

  // Before its first page the API does not know the size of records, and sends two searches.
  await readApi(`${api.url}/payouts?limit=1`, key)
  const ids: string[] = []
  for (const limit of PAGES) {
    await recordAsked(`page of ${limit}`, '-payouts/_search', async () => {
      const pages = await walkPayouts(api.url, key, limit, bench.signal)
      ids.push(...pages.flatMap(page => page.ids))
      // The last page is shorter.
      return pages.slice(0, -1).map(({ path }) => path)
    })
  }
  const some = Array.from({ length: SINGLE_READS }, (_, index) => ids[Math.floor((index * ids.length) / SINGLE_READS)])
  await recordAsked('single read', '-payouts"', () => readEach(some.map(id => `/payouts/${id}`)))
  await recordAsked('statement', '-statements"', () => readEach(some.map(id => `/statements/${id}`)))
  return recordings
}
