/**
 * The load tool: the same requests over and over, a number of connections, each asking again as soon as it is answered.
 */
import { Agent, request } from 'node:http'
import { percentile } from './statistics.ts'

export type LoadRequest = {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

export type LoadOptions = {
  /** Asked in turn. */
  readonly requests: readonly LoadRequest[]
  readonly connections: number
  readonly milliseconds: number
  readonly signal: AbortSignal
}

export type Load = {
  readonly requests: number
  readonly seconds: number
  readonly perSecond: number
  /** Milliseconds from sending a request to the end of its answer. */
  readonly p50: number
  readonly p99: number
  /** The share of the time in which this tool's own thread was busy: near 1, it would be what is measured. */
  readonly busy: number
}

/** @throws when an answer is not 200 */
export const load = async ({ requests, connections, milliseconds, signal }: LoadOptions): Promise<Load> => {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const times: number[] = []
  let next = 0
  const began = performance.now()
  const idleBefore = performance.eventLoopUtilization()

  const askOn = async (): Promise<void> => {
    while (performance.now() - began < milliseconds) {
      signal.throwIfAborted()
      const asked = requests[next++ % requests.length]
      if (asked === undefined) throw new Error('there is nothing to ask')
      const sent = performance.now()
      await ask(asked, agent)
      times.push(performance.now() - sent)
    }
  }
  try {
    await Promise.all(Array.from({ length: connections }, askOn))
  } finally {
    agent.destroy()
  }
  const seconds = (performance.now() - began) / 1000
  const { utilization } = performance.eventLoopUtilization(idleBefore)
  return {
    requests: times.length,
    seconds,
    perSecond: times.length / seconds,
    p50: percentile(times, 50),
    p99: percentile(times, 99),
    busy: utilization,
  }
}

/** The answer is read to its end and dropped. */
const ask = ({ url, method, headers, body }: LoadRequest, agent: Agent): Promise<void> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { agent, method, headers }, answer => {
      answer.on('error', reject)
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve()
        else reject(new Error(`${answer.statusCode} is answered to ${method} ${url}`))
      })
      answer.resume()
    })
    sent.on('error', reject)
    sent.end(body)
  })
