/**
 * A good client among others: its pages while very many connections are idle and others send slowly. Also whether the
 * time of an answer distinguishes another organization's record from an unknown one.
 */
import { connect, type Socket } from 'node:net'
import { authorization, type PayoutsPage, type RunningApi, readApi } from '../processes/api-process.ts'
import { serve } from '../processes/read-rig.ts'
import type { Bench, Figure, FigureRow, Measure } from '../rig/bench.ts'
import { applyLoad, type Load } from '../rig/load.ts'
import { percentile, spreadOf } from '../rig/statistics.ts'

/** Connections that send nothing, and connections that send a byte of their headers every SLOW_BYTE_MS. */
const IDLE = 1_000
const SLOW = 300
const SLOW_BYTE_MS = 1_000

export const measureConnectionLoad: Measure = async bench => {
  const { say, sizes, signal } = bench
  const { data, rounds, warmUpSeconds, secondsPerRound, connections, probes } = sizes.connectionLoad
  await using served = await serve(bench, data)
  const [ours, theirs] = served.holders
  if (ours === undefined || theirs === undefined) throw new Error('there are not two organizations')
  await served.projection.projector.stop()
  const { api } = served

  const requests = [{ url: `${api.url}/payouts?limit=50`, method: 'GET', headers: authorization(ours.key) }]
  const pages = (seconds: number) => applyLoad({ requests, connections, milliseconds: seconds * 1_000, signal })
  await pages(warmUpSeconds)
  const pairs: { baseline: Load; loaded: Load }[] = []
  for (let round = 1; round <= rounds; round++) {
    const baseline = await pages(secondsPerRound)
    await using _ = await openConnections(api)
    pairs.push({ baseline, loaded: await pages(secondsPerRound) })
    say(`among others, round ${round} of ${rounds}: measured`)
  }
  return figureOf(bench, pairs, await probe(api, ours.key, theirs.key, probes, signal))
}

/** Opens the connections, and opens closed ones again until it is disposed of. */
const openConnections = async ({ url }: RunningApi): Promise<AsyncDisposable> => {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let over = false
  const open = (slow: boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, resolve)
      sockets.add(socket)
      const byte = slow ? setInterval(() => socket.write('x'), SLOW_BYTE_MS) : undefined
      if (slow) socket.once('connect', () => socket.write('GET /api/v1/payouts HTTP/1.1\r\nX-Slow: '))
      socket.resume()
      socket.on('error', reject)
      socket.on('close', () => {
        clearInterval(byte)
        sockets.delete(socket)
        if (!over) void open(slow).catch(() => undefined)
      })
    })
  await Promise.all(Array.from({ length: IDLE + SLOW }, (_, index) => open(index < SLOW)))
  return {
    [Symbol.asyncDispose]: async () => {
      over = true
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Milliseconds of single reads. The kinds alternate, so that other load meets all alike. */
type Times = { readonly foreign: number[]; readonly unknown: number[]; readonly unknownToo: number[] }

const probe = async (
  api: RunningApi,
  key: string,
  foreignKey: string,
  probes: number,
  signal: AbortSignal,
): Promise<Times> => {
  const page = await readApi<PayoutsPage>(`${api.url}/payouts?limit=200`, foreignKey)
  const foreign = page.data.map(({ id }) => id)
  const reversed = foreign.map(id => `payout_${[...id.slice('payout_'.length)].reverse().join('')}`)
  const unknown = reversed.filter(id => !foreign.includes(id))
  if (foreign.length === 0 || unknown.length === 0) throw new Error('the other organization has no payouts to ask for')
  const times: Times = { foreign: [], unknown: [], unknownToo: [] }
  const headers = authorization(key)
  const timeOf = async (id: string): Promise<number> => {
    const began = performance.now()
    const answer = await fetch(`${api.url}/payouts/${id}`, { headers, signal })
    await answer.arrayBuffer()
    if (answer.status !== 404) throw new Error(`the API answers ${answer.status} to an id that is not ours`)
    return performance.now() - began
  }
  for (let time = 0; time < probes; time++) {
    const at = (ids: readonly string[], shift: number) => ids[(time + shift) % ids.length] ?? ''
    times.foreign.push(await timeOf(at(foreign, 0)))
    times.unknown.push(await timeOf(at(unknown, 0)))
    times.unknownToo.push(await timeOf(at(unknown, 1)))
  }
  return times
}

/** How often a value of the first list exceeds one of the second: 0.5 if they do not differ (Mann–Whitney). */
const slowerShare = (first: readonly number[], second: readonly number[]): number => {
  const all = [...first.map(time => ({ time, of: 0 })), ...second.map(time => ({ time, of: 1 }))]
  all.sort((a, b) => a.time - b.time)
  let ranks = 0
  for (const [index, { of }] of all.entries()) if (of === 0) ranks += index + 1
  return (ranks - (first.length * (first.length + 1)) / 2) / (first.length * second.length)
}

/** The distance from 0.5 that chance exceeds once in a thousand times. */
const byChance = (first: number, second: number): number =>
  3.29 * Math.sqrt((first + second + 1) / (12 * first * second))

const figureOf = (
  { sizes: { connectionLoad } }: Bench,
  pairs: readonly { readonly baseline: Load; readonly loaded: Load }[],
  { foreign, unknown, unknownToo }: Times,
): Figure => {
  const of = (pick: (pair: (typeof pairs)[number]) => number) => spreadOf(pairs.map(pick))
  const distance = (other: readonly number[]) => Math.abs(slowerShare(other, unknown) - 0.5)
  const rows: FigureRow[] = [
    { what: 'page of 50 alone, p99', unit: 'ms', ...of(({ baseline }) => baseline.p99) },
    { what: `page of 50 among ${IDLE} idle and ${SLOW} slow, p99`, unit: 'ms', ...of(({ loaded }) => loaded.p99) },
    {
      what: 'p99 among them / alone',
      unit: '',
      ...of(({ baseline, loaded }) => loaded.p99 / baseline.p99),
      isRatio: true,
      atMost: 2,
    },
    {
      what: 'requests among them / alone',
      unit: '',
      ...of(({ baseline, loaded }) => loaded.perSecond / baseline.perSecond),
      isRatio: true,
    },
    { what: 'another’s record, p50', unit: 'ms', value: percentile(foreign, 50) },
    { what: 'nobody’s record, p50', unit: 'ms', value: percentile(unknown, 50) },
    {
      what: 'another’s slower than nobody’s: distance from a half',
      unit: '',
      value: distance(foreign),
      atMost: byChance(foreign.length, unknown.length),
    },
    { what: 'nobody’s slower than nobody’s: distance from a half', unit: '', value: distance(unknownToo) },
  ]
  return {
    name: 'crowd',
    title: 'A good client among idle, slow and curious clients',
    rows,
    notes: [
      [
        `A good client has ${connectionLoad.connections} connections.`,
        `Rounds of ${connectionLoad.secondsPerRound} s without and with the others alternate.`,
        `A slow client sends a byte of its headers every ${SLOW_BYTE_MS / 1000} s, is closed with 408,`,
        'and connects again.',
      ].join(' '),
      [
        `${foreign.length} reads of records of another organization, and twice as many of records that nobody has,`,
        'alternate.',
        'The compared value is how often one takes longer than the other:',
        'chance exceeds the bound once in a thousand times.',
      ].join(' '),
    ],
  }
}
