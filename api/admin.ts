/**
 * The admin port: `/livez` (this process runs), `/readyz` (it can answer; else the reasons) and `/metrics`. Never the public port.
 */
import { createServer, type Server, type ServerResponse } from 'node:http'
import { ADMIN_METHOD_REFUSED, ADMIN_NOT_FOUND, NOT_READY, OK } from './failures.ts'

type Parts = {
  /** Why the API cannot answer now; empty when it can. */
  readonly notReady: () => Promise<readonly string[]>
  readonly metrics: () => Promise<string>
  readonly metricsType: string
}

export const createAdminServer = ({ notReady, metrics, metricsType }: Parts): Server => {
  const answers: Record<string, (res: ServerResponse) => Promise<void>> = {
    '/livez': async res => sendJson(res, OK, { live: true }),
    '/readyz': async res => {
      const reasons = await notReady()
      sendJson(res, reasons.length === 0 ? OK : NOT_READY, { ready: reasons.length === 0, reasons })
    },
    '/metrics': async res => void res.writeHead(OK, { 'Content-Type': metricsType }).end(await metrics()),
  }
  return createServer((req, res) => {
    const answer = answers[(req.url ?? '').split('?')[0] ?? '']
    if (!answer) return sendJson(res, ADMIN_NOT_FOUND, { paths: Object.keys(answers) })
    if (req.method !== 'GET' && req.method !== 'HEAD') return sendJson(res, ADMIN_METHOD_REFUSED, { allow: 'GET' })
    answer(res).catch(() => res.destroy())
  })
}

const sendJson = (res: ServerResponse, status: number, value: unknown): void => {
  res.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' }).end(JSON.stringify(value))
}
