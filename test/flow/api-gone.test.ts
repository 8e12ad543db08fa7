/** Clients that disconnect while the API reads for them and others in one request. Uses real processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { API_KEY_LENGTH_MIN } from '../../schemas/limits.ts'
import { useStore } from '../support/api.ts'
import { type Gate, type HeldMultiGet, startGate } from '../support/gate.ts'
import { fetchInTime } from '../support/in-time.ts'
import { type Api, startApi } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope } from '../support/scope.ts'

const scope = fileScope()
const ORG = 'org_gone'
const PAYOUTS = 8
const shared = (async () => {
  const store = await useStore(scope)
  for (let n = 0; n < PAYOUTS; n++) store.payout(ORG, n, { id: `payout_${n}`, period: `period_${n}` })
  await store.publish(ORG, PAYOUTS)
  const gate = await startGate(scope, inject('elasticsearchUrl'))
  const api = await startApi(scope, store.prefix, {
    settings: { ELASTICSEARCH_URL: gate.url, API_TRUSTED_PROXIES: '127.0.0.1' },
  })
  return { key: await store.key(ORG), gate, api }
})()

/** Each request comes from another address: the log limits the lines of one. */
let address = 0
const ask = (api: Api, path: string, key: string, signal: AbortSignal | null = null): Promise<Response> => {
  const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': `10.0.${address >> 8}.${address++ & 255}` }
  return fetch(`${api.url}${path}`, { headers, signal })
}

const goneLogged = (api: Api): number => api.lines().filter(({ because }) => because === 'client_gone').length

/**
 * Holds the read of one request, and then those that five others share. Three of them leave.
 * Returns undefined if a request ended first, because its time was up.
 */
const arrange = async (gate: Gate, api: Api, keyOf: (n: number) => string, concerns?: (index: string) => boolean) => {
  let ended = 0
  const request = (n: number) => ask(api, `/payouts/payout_${n}`, keyOf(n)).finally(() => ended++)
  gate.hold(true, concerns)
  const first = request(0)
  await eventually(() => expect(gate.held.length + ended).toBeGreaterThan(0), { every: 5 })
  const alone = gate.held.shift()
  const logged = goneLogged(api)
  const leaving = new AbortController()
  const gone = [1, 2, 3].map(n => ask(api, `/payouts/payout_${n}`, keyOf(n), leaving.signal).catch(() => undefined))
  const stayed = [4, 5].map(request)
  // Requests sent before share one or a few multi-gets.
  const together: HeldMultiGet[] = []
  await eventually(() => {
    together.push(...gate.held.splice(0))
    const documents = together.reduce((sum, held) => sum + held.documents, 0)
    expect(ended > 0 || documents >= 6, `${documents} documents`).toBe(true)
  })
  leaving.abort()
  await Promise.all(gone)
  await eventually(() => expect(ended > 0 || goneLogged(api) === logged + 3).toBe(true))
  gate.hold(false)
  together.push(...gate.held.splice(0))
  if (alone !== undefined && ended === 0) return { first, alone, together, stayed }
  for (const held of alone === undefined ? together : [alone, ...together]) await held.pass()
  await Promise.all([first, ...stayed])
  return undefined
}

/** Failures of Elasticsearch for a shared request whose clients have partly left. */
const failures: Readonly<Record<string, (held: HeldMultiGet) => Promise<void> | void>> = {
  'answers 429': held => held.answer(429, '{"error":{"type":"es_rejected_execution_exception"},"status":429}'),
  'cannot read the documents': held =>
    held.pass(answer => answer.replaceAll(/"_version":.*?"_source":(\{.*?\})(?=\},\{"_index|\}\]\}$)/g, '"error":$1')),
  'answers something else': held => held.pass(answer => answer.slice(0, -1)),
}

describe('a client that leaves a shared request does not end the process', () => {
  for (const [failure, fail] of Object.entries(failures)) {
    test.each(['a valid key', 'unknown keys'])(`when Elasticsearch ${failure}, with %s`, async kind => {
      const { key, gate, api } = await shared
      const isValid = kind === 'a valid key'
      const keyOf = (n: number): string => (isValid ? key : newKey(n))
      const { first, alone, together, stayed } = await eventually(async () => {
        expect((await ask(api, '/payouts/payout_0', key)).status).toBe(200)
        // A valid key is looked up again after 2 s.
        const arranged = await arrange(gate, api, keyOf, index => !isValid || !index.includes('-api-keys'))
        return arranged ?? expect.unreachable('a request ended early')
      })
      const before = gate.count()
      for (const held of together) await fail(held)
      const answers = await Promise.all(stayed)
      await alone.pass()
      // A valid key is cached for 2 s. An unknown one gets a 401 if its look-up worked after all.
      for (const { status } of answers) expect([isValid ? 200 : 401, 503]).toContain(status)
      // On a busy machine its time may be up.
      expect([200, 401, 503]).toContain((await first).status)
      // If Elasticsearch is overloaded, one response answers all.
      if (failure === 'answers 429') {
        expect(answers.map(({ status }) => status)).toEqual([503, 503])
        // The ids of the indices may be read meanwhile.
        expect(gate.count()).toBeLessThanOrEqual(before + 1)
      }
      await eventually(async () => expect((await ask(api, '/payouts/payout_0', key)).status, api.log()).toBe(200))
      expect(api.exit()).toBeUndefined()
      expect(api.log()).not.toContain('"level":50')
    })
  }
})

const newKey = (n: number): string =>
  `ck_unknown${Math.random().toString(36).slice(2)}${n}`.padEnd(API_KEY_LENGTH_MIN, '0')

test('of twelve clients that each read a payout of 8 MiB, those that stay get it whole although others leave', async t => {
  const seed = seedOfRun()
  console.log(`seed ${seed}`)
  const random = createRandom(seed)
  const store = await useStore(t)
  const org = 'org_large'
  const description = 'x'.repeat(1_000)
  const lines = Array.from({ length: 7_800 }, (_, n) => ({ id: `line_${n}`, amount: '0', description }))
  const readers = 12
  for (let n = 0; n < readers; n++) {
    store.payout(org, n, { id: `payout_${n}`, period: `period_${n}`, lines })
    await store.flush()
  }
  await store.publish(org, readers)
  const key = await store.key(org)
  // A client that leaves pays for its read, too.
  const api = await startApi(t, store.prefix, { settings: { RATE_LIMIT_REQUESTS: '100000' } })
  const length = (await (await fetchInTime(api, '/payouts/payout_0', key)).arrayBuffer()).byteLength
  expect(length).toBeGreaterThan(8_000_000)

  const read = async (id: string, signal: AbortSignal | null): Promise<void> => {
    for (;;) {
      const answer = await ask(api, `/payouts/${id}`, key, signal)
      const bytes = (await answer.arrayBuffer()).byteLength
      if (answer.status === 200) {
        // Its period has the same number, so the length counts it twice.
        expect(bytes - 2 * id.length).toBe(length - 2 * 'payout_0'.length)
        return
      }
      expect(answer.status).toBe(503)
      await sleep(Number(answer.headers.get('retry-after')) * 1_000, undefined, signal ? { signal } : {})
    }
  }
  let stayed = 0
  for (let round = 0; round < 6; round++) {
    const reads = Array.from({ length: readers }, (_, n) => {
      const leaves = random.chance(0.4)
      if (!leaves) return read(`payout_${n}`, null).then(() => stayed++)
      // It may get its payout in time.
      return read(`payout_${n}`, AbortSignal.timeout(random.below(150))).catch(() => undefined)
    })
    await Promise.all(reads)
  }
  expect(api.exit()).toBeUndefined()
  expect(stayed).toBeGreaterThan(readers)
})
