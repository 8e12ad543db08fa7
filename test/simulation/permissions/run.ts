/** Sends probes to an API process and compares each answer with the model. */
import { createRandom, type Random } from '../../support/random.ts'
import { Clock } from '../clock.ts'
import { CALM, Faults } from '../faults.ts'
import { startApiProcess } from '../hostile/api-process.ts'
import { type Answer, bearer, Client } from '../hostile/client.ts'
import { type Expected, expectedOf, type Probe, probes } from './model.ts'
import { addressOfClient, createProbeStore, EXPIRES_AFTER, type ProbeKey } from './store.ts'

/** Clients that ask at the same time, each one request after the other. */
const CLIENTS = 40
/** No key and no address is limited. */
const UNLIMITED = Number.MAX_SAFE_INTEGER

export type Verdict = {
  readonly wrong: readonly string[]
  /** Number of answers by status. */
  readonly statuses: ReadonlyMap<number, number>
}

/** Half of the probes are sent before keys expire, half after. */
export const sendProbes = async (seed: number, count: number): Promise<Verdict> => {
  const random = createRandom(seed)
  const clock = new Clock()
  const { indices, keys } = await createProbeStore()
  const wrong: string[] = []
  const api = startApiProcess({
    clock,
    faults: new Faults(createRandom(seed + 1), { ...CALM, latency: 0.01 }),
    elasticsearch: { indices },
    rate: { requests: UNLIMITED, windowSeconds: 60 },
    failuresPerAddress: UNLIMITED,
    fail: reason => void wrong.push(reason),
    onDeliveryTimeout: () => undefined,
  })
  const statuses = new Map<number, number>()
  const clients = Array.from(
    { length: CLIENTS },
    (_, n) => new Client(api, { address: addressOfClient(n), rate: 1e9, latency: 0 }, () => undefined),
  )

  const sendOne = async (client: number, [probe, key]: Asked): Promise<void> => {
    const { method, path } = probe
    const before = expectedOf(probe, key, client, clock.now())
    const answer = await clients[client]?.ask(method, path, [...headersOf(key, random)])
    if (answer) statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    const after = expectedOf(probe, key, client, clock.now())
    // A key may expire while its request is on the way.
    if ([before, after].some(expected => answer && isAs(answer, expected))) return
    const who = key === 'none' ? 'no key' : `${key.org} ${key.permissions.join(' ')} ends ${key.ends}`
    wrong.push(`${method} ${path} of ${who}: got ${answer?.status} ${answer?.body}, expected ${JSON.stringify(after)}`)
  }

  const sendAll = async (asked: readonly Asked[]): Promise<void> => {
    let left = CLIENTS
    let next = 0
    for (const client of clients.keys()) {
      const askAll = async (): Promise<void> => {
        for (let one = asked[next++]; one && wrong.length < 20; one = asked[next++]) await sendOne(client, one)
      }
      void askAll()
        .catch((error: unknown) => void wrong.push(String(error)))
        .finally(() => left--)
    }
    await clock.runUntil(() => left === 0)
  }

  await sendAll(Array.from({ length: count / 2 }, () => drawn(keys, random)))
  await clock.runUntil(() => false, EXPIRES_AFTER)
  await sendAll(Array.from({ length: count / 2 }, () => drawn(keys, random)))
  return { wrong, statuses }
}

type Asked = readonly [Probe, ProbeKey | 'none']

const drawn = (keys: readonly ProbeKey[], random: Random): Asked => [
  random.pick(probes),
  random.chance(0.02) ? 'none' : random.pick(keys),
]

const headersOf = (key: ProbeKey | 'none', random: Random): readonly string[] => {
  if (key !== 'none') return [bearer(key.text)]
  return random.pick([[], [bearer('ck_unknown_0123456789')], ['Authorization: Basic x'], [bearer('short')]])
}

const isAs = ({ status, body }: Answer, expected: Expected): boolean => {
  if (status !== expected.status) return false
  if (body === '') return expected.ids === undefined
  const json: unknown = JSON.parse(body)
  if (expected.message !== undefined && !JSON.stringify(json).includes(expected.message)) return false
  return JSON.stringify(idsIn(json)) === JSON.stringify(expected.ids ?? [])
}

/** The ids of the records of an answer: of a list, a record, or the rows of totals. */
const idsIn = (json: unknown): unknown[] => {
  if (typeof json !== 'object' || json === null || !('data' in json)) return []
  const { data } = json
  if (Array.isArray(data)) return data.map(({ id }) => id)
  if (typeof data !== 'object' || data === null) return []
  if ('totals' in data && Array.isArray(data.totals)) return data.totals.map(({ period_id }) => period_id)
  return 'id' in data ? [data.id] : []
}
