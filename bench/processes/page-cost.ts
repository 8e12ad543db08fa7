/** The cost of a page of payouts through the API: milliseconds, and CPU of Elasticsearch. */
import type { Bench } from '../rig/bench.ts'
import { applyLoad, type LoadRequest } from '../rig/load.ts'
import { serverPids, watchCpu } from '../rig/usage.ts'
import { authorization, walkPayouts } from './api-process.ts'
import type { Served } from './read-rig.ts'

export const pageLimits = [50, 200] as const
/** Organizations whose pages are requested in turn. */
export const ORGANIZATIONS_READ = 20

/** In milliseconds. Where the CPU of Elasticsearch is not known, it is NaN. */
export type PageCost = { readonly p50: number; readonly cpu: number }

/** One connection requests full pages of several organizations in turn, for as long again before it is measured. */
export const measurePageCost = async (
  { services, signal }: Bench,
  { api: { url }, holders }: Pick<Served, 'api' | 'holders'>,
  limit: number,
  seconds: number,
): Promise<PageCost> => {
  const requests: LoadRequest[] = []
  for (const { key } of holders.slice(0, ORGANIZATIONS_READ)) {
    const pages = await walkPayouts(url, key, limit, signal)
    for (const { path } of pages.slice(0, -1)) {
      requests.push({ url: `${url}${path}`, method: 'GET', headers: authorization(key) })
    }
  }
  const load = () => applyLoad({ requests, connections: 1, milliseconds: seconds * 1000, signal })
  await load()
  const cpu = watchCpu(serverPids(services))
  const { p50, requests: count } = await load()
  return { p50, cpu: (1000 * (cpu().Elasticsearch ?? Number.NaN)) / count }
}
