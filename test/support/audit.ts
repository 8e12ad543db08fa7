/** Requests whose answers are compared with the lines of the audit log. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { useStore } from './api.ts'
import { contentIn } from './canary.ts'
import { inTime } from './in-time.ts'
import type { Api } from './processes.ts'
import type { Scope } from './scope.ts'

export type AuditLine = {
  readonly audit: true
  readonly time: string
  readonly request_id: string
  readonly method: string
  readonly route?: string
  readonly status: number
  readonly org_id?: string
  readonly key_id?: string
  readonly address: string
  readonly as_of?: string
  readonly rep_id?: string
  readonly period_id?: string
  readonly count: number
  readonly ids: readonly string[]
  readonly unlogged?: number
}

/** An answer that a client has read to its end. */
export type Read = {
  readonly path: string
  readonly status: number
  readonly requestId: string
  readonly etag: string
  readonly headers: Headers
  readonly text: string
}

export const createFolder = (scope: Scope): string => {
  const folder = mkdtempSync(join(tmpdir(), 'commission-audit-'))
  scope.onTestFinished(async () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Returns the lines of these files. A line that is not complete is none. */
export const linesOf = (...paths: readonly string[]): AuditLine[] =>
  paths.flatMap(path => (existsSync(path) ? parseLines(readFileSync(path, 'utf8')) : []))

export const parseLines = (text: string): AuditLine[] => {
  const found = text.split('\n').filter(line => line.startsWith('{"audit":true,') && line.endsWith('}'))
  expect(contentIn(found.join('\n')).filter(content => !content.startsWith('id: '))).toEqual([])
  return found.map(line => JSON.parse(line))
}

/** An organization with two reps, 60 payouts of which one is replaced, a void, and another organization. */
export const createAuditedStore = async (scope: Scope) => {
  const store = await useStore(scope)
  const [org, other] = [store.newOrg(), store.newOrg()]
  store.rep(org, 'rep_1', [
    { seq: 0, name: 'Canary One' },
    { seq: 1, name: 'Canary Uno' },
  ])
  store.rep(org, 'rep_2', [{ seq: 2, name: 'Canary Two' }])
  store.period(org, 'period_1', [{ seq: 3, name: 'January' }])
  store.payout(org, 4, { id: 'payout_0', amount: '12.50' }, { until: 5, by: 'payout_1' })
  store.payout(org, 5, { id: 'payout_1', amount: '13.50', supersedes: 'payout_0', trace: [] })
  for (let n = 2; n < 60; n++) {
    store.payout(org, 4 + n, { id: `payout_${n}`, rep: 'rep_2', period: `period_${n}`, amount: '1.25' })
  }
  store.payroll(org, 70, 'payroll_1', '12.50')
  store.payroll(org, 71, 'payroll_2', '-12.50', 'payroll_1')
  await store.publish(org, 100)
  store.rep(other, 'rep_9', [{ seq: 0, name: 'Canary Nine' }])
  await store.publish(other, 1)
  return { store, org, other, key: await store.key(org), otherKey: await store.key(other) }
}

/** Sends a request to an API and reads the answer to its end. */
export const read = async (
  url: string,
  path: string,
  key?: string,
  more: { readonly method?: string; readonly headers?: Record<string, string> } = {},
): Promise<Read> => {
  const headers = { ...(key !== undefined && { authorization: `Bearer ${key}` }), ...more.headers }
  const answer = await fetch(`${url}${path}`, { ...more, headers })
  return {
    path,
    status: answer.status,
    requestId: answer.headers.get('x-request-id') ?? '',
    etag: answer.headers.get('etag') ?? '',
    headers: answer.headers,
    text: await answer.text(),
  }
}

/** As `read`, and again while the time of each request is up. `sent` counts the requests: each has a line. */
export const createReader = (api: Pick<Api, 'url' | 'lines'>) => {
  let sent = 0
  const readInTime = (...given: [path: string, key?: string, more?: Parameters<typeof read>[3]]): Promise<Read> =>
    inTime(
      () => {
        sent++
        return read(api.url, ...given)
      },
      () => api.lines(),
    )
  return { readInTime, sent: () => sent }
}

/** The ids of the records in the body of an answer. */
export const idsIn = ({ status, text }: Read): string[] => {
  if (status !== 200 || text === '') return []
  const { data } = JSON.parse(text)
  if (Array.isArray(data)) return data.map(({ id }) => id)
  return typeof data.id === 'string' ? [data.id] : []
}

/** Every answer has one line, with the records that the client saw. */
export const expectAudited = (answers: readonly Read[], lines: readonly AuditLine[]): void => {
  const byRequest = Map.groupBy(lines, ({ request_id }) => request_id)
  for (const answer of answers) {
    const found = byRequest.get(answer.requestId) ?? []
    expect(found.length, `lines of ${answer.path}`).toBe(1)
    expect([answer.path, found[0]?.status]).toEqual([answer.path, answer.status])
    if (answer.status === 200 && !answer.path.startsWith('/totals') && answer.text !== '') {
      expect([answer.path, found[0]?.count, found[0]?.ids]).toEqual([answer.path, idsIn(answer).length, idsIn(answer)])
    }
  }
}
