/**
 * The admin port, never the public one: `/` (status page), `/livez` (this process runs), `/readyz` (the API can answer,
 * and the partitions that it does not serve; else the reasons), `/readyz/process` (this process accepts requests,
 * whatever Elasticsearch does), `/metrics`, `/keys` (the day of the last use of each key), `/runbooks`
 * (docs/runbooks.md as a page), and `/reference` (the OpenAPI document as a page, which sends requests to the API by
 * this port: so both have one origin, and the public port gives nobody the 1.5 MB of the page. If the API encrypts,
 * this port has no paths of it: a key would travel in the clear).
 */
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { type ReferencePage, referencePages } from '../../core/reading/index.ts'
import {
  ADMIN_FAILED,
  ADMIN_METHOD_REFUSED,
  ADMIN_NOT_FOUND,
  type Ages,
  NOT_READY,
  OK,
  runbooksPage,
  STATUS_PAGE_POLICY,
} from '../../core/runtime/index.ts'
import type { KeyUse } from '../access/key-uses.ts'
import { BASE_PATH } from '../http/request.ts'
import type { Readiness } from './ready.ts'
import { statusPage } from './status-page.ts'

type Parts = {
  /** Whether the API can answer now, and the positions of the live generation. */
  readonly readiness: () => Promise<Readiness>
  /** The ages of what is published that were read lately. */
  readonly ages: Pick<Ages, 'list'>
  /** Whether a stop has begun. */
  readonly isStopping: () => boolean
  /** Answers requests to the API that the reference sends. Undefined if the API encrypts: this port does not. */
  readonly api: RequestListener | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly metrics: () => Promise<string>
  readonly keyUses: () => readonly KeyUse[]
  /** Since when uses of keys are counted: milliseconds since 1970. */
  readonly started: number
  readonly metricsType: string
  /** Called with the error of a page. */
  readonly onFailure: (error: unknown) => void
}

type Page = ReferencePage & { readonly status?: number; readonly policy?: string }

/** Creates the server of the admin port. It does not listen yet. */
export const createAdminServer = ({
  readiness,
  ages,
  isStopping,
  api,
  now,
  metrics,
  metricsType,
  keyUses,
  started,
  onFailure,
}: Parts): Server => {
  const pages: Readonly<Record<string, () => Promise<Page>>> = {
    '/': async () => forPeople(statusPage(await readiness(), ages.list(), now())),
    '/runbooks': async () => forPeople(await runbooksPage()),
    '/livez': async () => json({ live: true }),
    '/readyz': async () => {
      const { notReady, positions } = await readiness()
      return readyOr(notReady, positions?.notServed)
    },
    // For load balancers: with `/readyz` they would drop every process at once when Elasticsearch is away.
    '/readyz/process': async () => readyOr(isStopping() ? ['stopping'] : []),
    '/keys': async () => json({ since: new Date(started).toISOString(), keys: keyUses() }),
    '/metrics': async () => ({ type: metricsType, body: await metrics() }),
    ...referencePages(api !== undefined),
  }
  return createServer((req, res) => {
    if (api !== undefined && req.url?.startsWith(`${BASE_PATH}/`)) return api(req, res)
    const page = pages[(req.url ?? '').split('?')[0] ?? '']
    if (!page) return send(res, ADMIN_NOT_FOUND, json({ paths: Object.keys(pages) }))
    if (req.method !== 'GET' && req.method !== 'HEAD') return send(res, ADMIN_METHOD_REFUSED, json({ allow: 'GET' }))
    page()
      .catch((error: unknown) => {
        onFailure(error)
        return { ...json({}), status: ADMIN_FAILED }
      })
      .then(answer => send(res, answer.status ?? OK, answer))
  })
}

const forPeople = (body: string): Page => ({
  type: 'text/html; charset=utf-8',
  body,
  policy: STATUS_PAGE_POLICY,
})

/** @param notServed why a partition is not served; the answer names them if there are some */
const readyOr = (
  reasons: readonly string[],
  notServed: ReadonlyMap<number, string> = new Map(),
): ReferencePage & { readonly status: number } => {
  const ready = reasons.length === 0
  const waiting = notServed.size > 0 && { partitions_not_served: Object.fromEntries(notServed) }
  return { ...json({ ready, reasons, ...waiting }), status: ready ? OK : NOT_READY }
}

const json = (value: unknown): ReferencePage => ({
  type: 'application/json; charset=utf-8',
  body: JSON.stringify(value),
})

/** The other pages load nothing from other hosts. Swagger UI needs inline styles. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; connect-src 'self'; img-src 'self' data:; script-src 'self'; style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const send = (res: ServerResponse, status: number, { type, body, policy = CONTENT_SECURITY_POLICY }: Page): void => {
  res.writeHead(status, {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    'Content-Security-Policy': policy,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-cache',
  })
  res.end(body)
}
