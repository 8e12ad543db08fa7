/** A proxy that records requests byte for byte, to repeat them later. Never used in a measured round. */
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { listen } from '../../api/http/server.ts'

export type Recorded = {
  readonly method: string
  readonly path: string
  /** Elasticsearch requires both in the same form. */
  readonly headers: { readonly accept: string; readonly 'content-type': string }
  readonly body: Buffer
}

type RecordingProxy = {
  readonly url: string
  /** In order of arrival. */
  readonly recorded: readonly Recorded[]
  [Symbol.asyncDispose](): Promise<void>
}

/** Whether a request to this path stores documents. The projector reads with bulk requests, too, which store none. */
export const isBulkWrite = (path: string): boolean => path.startsWith('/_bulk') && !path.includes('_source=')

/** @param wanted whether requests to a path are recorded */
export const startRecordingProxy = async (
  target: string,
  wanted: (path: string) => boolean,
): Promise<RecordingProxy> => {
  const recorded: Recorded[] = []
  const agent = new Agent({ keepAlive: true })
  const server = createServer((asked, answer) => {
    pass(asked, answer, target, agent)
      .then(body => {
        const { method = '', url: path = '' } = asked
        const { accept = '*/*', 'content-type': type = 'application/json' } = asked.headers
        if (wanted(path)) recorded.push({ method, path, headers: { accept, 'content-type': type }, body })
      })
      .catch(() => answer.destroy())
  })
  const port = await listen(server, '127.0.0.1', 0)
  return {
    url: `http://127.0.0.1:${port}`,
    recorded,
    [Symbol.asyncDispose]: async () => {
      agent.destroy()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Forwards a request unchanged, and its answer. @returns the body of the request */
const pass = async (asked: IncomingMessage, answer: ServerResponse, target: string, agent: Agent): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of asked) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const { host: _, connection: __, 'transfer-encoding': ___, ...headers } = asked.headers
  const passed = request(`${target}${asked.url}`, {
    agent,
    method: asked.method,
    headers: { ...headers, ...(body.length > 0 && { 'content-length': body.length }) },
  })
  passed.on('error', () => answer.destroy())
  passed.on('response', response => {
    answer.writeHead(response.statusCode ?? 502, response.headers)
    response.pipe(answer)
  })
  passed.end(body)
  return body
}
