/**
 * Serves the built page on this machine, and passes requests for `/api/` on to the API, so that both have one origin.
 * For the demo and for tests: a proxy such as nginx does this elsewhere.
 */
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, relative, sep } from 'node:path'
import { pipeline } from 'node:stream'
import { createGzip, gzipSync } from 'node:zlib'

export type ExplorerServer = { readonly origin: string; readonly close: () => void }

type Options = {
  /** The folder of the built page. */
  readonly folder: string
  /** The address of the API; its path does not count. */
  readonly api: string
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export const serveExplorer = async ({ folder, api }: Options): Promise<ExplorerServer> => {
  const pages = await readPages(folder)
  const policy = policyOf(pages.get('/index.html')?.toString() ?? '')
  const server = createServer((request, answer) => {
    const [asked = '/'] = (request.url ?? '/').split('?')
    if (asked.startsWith('/api/')) return passOn(request, answer, api)
    const path = asked === '/' ? '/index.html' : asked
    const content = pages.get(path)
    const isPacked = content !== undefined && acceptsGzip(request)
    answer.setHeader('Content-Security-Policy', `${policy}; frame-ancestors 'none'`)
    answer.setHeader('X-Content-Type-Options', 'nosniff')
    answer.setHeader('Referrer-Policy', 'no-referrer')
    answer.setHeader('Cross-Origin-Opener-Policy', 'same-origin')
    answer.setHeader('Cache-Control', 'no-cache')
    answer.setHeader('Content-Type', types[extname(path)] ?? 'text/plain; charset=utf-8')
    answer.setHeader('Vary', 'Accept-Encoding')
    if (isPacked) answer.setHeader('Content-Encoding', 'gzip')
    const body = isPacked ? gzipSync(content) : content
    answer.writeHead(content === undefined ? 404 : 200).end(body ?? 'There is nothing at this address.')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** All files of the folder, by their path. Others of the machine cannot be asked for. */
const readPages = async (folder: string): Promise<Map<string, Buffer>> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter(entry => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  const read = files.map(async file => {
    const path = `/${relative(folder, file).split(sep).join('/')}`
    return [path, await readFile(file)] as const
  })
  return new Map(await Promise.all(read))
}

/** @throws if the page has no policy */
const policyOf = (html: string): string => {
  const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(html)?.[1]
  if (policy === undefined) throw new Error('the built page has no Content-Security-Policy')
  return policy
}

const acceptsGzip = ({ headers }: IncomingMessage): boolean => /\bgzip\b/.test(String(headers['accept-encoding']))

const passOn = (request: IncomingMessage, answer: ServerResponse, api: string): void => {
  const { connection: _, ...headers } = request.headers
  const { hostname, port } = new URL(api)
  const options = { hostname, port, path: request.url, method: request.method, headers, agent: false }
  const passed = httpRequest(options, given => {
    const { connection, 'keep-alive': keepAlive, ...others } = given.headers
    if (given.statusCode !== 200 || !acceptsGzip(request)) {
      answer.writeHead(given.statusCode ?? 502, others)
      given.pipe(answer)
      return
    }
    // As a proxy does: the entity tag of other bytes is weak.
    const { 'content-length': length, etag, ...kept } = others
    answer.writeHead(200, { ...kept, 'content-encoding': 'gzip', ...(etag !== undefined && { etag: `W/${etag}` }) })
    pipeline(given, createGzip(), answer, () => undefined)
  })
  passed.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()))
  // A closed page ends its requests: one may wait for a change.
  answer.on('close', () => passed.destroy())
  request.pipe(passed)
}
