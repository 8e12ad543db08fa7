/** The load tool: a number of connections, each of which sends the next request as soon as it has its answer. */
import { Agent, request } from 'node:http'
import { percentile } from './statistics.ts'

export type LoadRequest = {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

type LoadOptions = {
  /** Sent in turn. */
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
  /** Share of the time in which this tool's thread was busy. Near 1 the tool itself would be measured. */
  readonly busy: number
}

/** @throws Error if a status is not 200 */
export const applyLoad = async ({ requests, connections, milliseconds, signal }: LoadOptions): Promise<Load> => {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const times: number[] = []
  let next = 0
  const began = performance.now()
  const idleBefore = performance.eventLoopUtilization()

  const runConnection = async (): Promise<void> => {
    while (performance.now() - began < milliseconds) {
      signal.throwIfAborted()
      const sending = requests[next++ % requests.length]
      if (sending === undefined) throw new Error('there is no request to send')
      const sent = performance.now()
      await send(sending, agent)
      times.push(performance.now() - sent)
    }
  }
  try {
    await Promise.all(Array.from({ length: connections }, runConnection))
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

/** Reads the answer to its end and drops it. */
const send = ({ url, method, headers, body }: LoadRequest, agent: Agent): Promise<void> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { agent, method, headers }, answer => {
      answer.on('error', reject)
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve()
        else reject(new Error(`${answer.statusCode} was answered to ${method} ${url}`))
      })
      answer.resume()
    })
    sent.on('error', reject)
    sent.end(body)
  })
