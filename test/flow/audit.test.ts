/** The audit log of reads, by real API processes: every answer has its line, wherever the log is. */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  type AuditLine,
  createAuditedStore,
  createFolder,
  createReader,
  expectAudited,
  linesOf,
  parseLines,
  type Read,
  read,
} from '../support/audit.ts'
import { startApi, startProcess } from '../support/processes.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'

const file = fileScope()
let org: string
let key: string
let otherKey: string
let prefix: string
let noPermission: string
beforeAll(async () => {
  const made = await createAuditedStore(file)
  ;({ org, key, otherKey } = made)
  prefix = made.store.prefix
  noPermission = await made.store.key(org, { permissions: ['payroll:read'] })
})

const startAudited = async (scope: Scope, settings: Record<string, string> = {}) => {
  const path = join(createFolder(scope), 'audit.ndjson')
  const api = await startApi(scope, prefix, { settings: { AUDIT_LOG: path, ...settings } })
  return { api, path, lines: () => linesOf(path), ...createReader(api) }
}
const lineOf = (lines: readonly AuditLine[], { requestId }: Read): AuditLine | undefined =>
  lines.find(({ request_id }) => request_id === requestId)
const metric = async ({ adminUrl }: { adminUrl: string }, outcome: string): Promise<number> => {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return Number(new RegExp(`^api_audit_lines_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm').exec(text)?.[1])
}

const paths = [
  '/reps',
  '/reps?as_of=rep_1.1',
  '/periods',
  '/payouts',
  '/payouts?limit=7&starting_after=payout_9',
  '/payouts?rep_id=rep_1',
  '/payouts?ids=payout_1,payout_unknown,payout_0',
  '/payroll_files',
  '/changes?limit=200',
  '/changes?rep_id=rep_1',
  '/changes?wait=1&starting_after=payroll_1',
  '/reps/rep_1',
  '/periods/period_1',
  '/payouts/payout_0',
  '/payouts/payout_1?as_of=payout_1',
  '/payouts/payout_1/history',
  '/statements/payout_1',
  '/payroll_files/payroll_2',
  '/totals',
  '/totals?period_id=period_1',
  '/totals?rep_id=rep_1',
  '/totals?deal_id=deal_1',
]

describe('in a file', () => {
  test('each route has a line with the ids of its records, and refusals have one too', async scope => {
    const { api, lines, readInTime } = await startAudited(scope)
    const answers: Read[] = []
    for (const path of paths) answers.push(await readInTime(path, key))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    expectAudited(answers, lines())
    for (const answer of answers) {
      expect(lineOf(lines(), answer)).toMatchObject({
        audit: true,
        method: 'GET',
        org_id: org,
        key_id: expect.stringMatching(/^key_/),
        address: '127.0.0.1',
      })
    }
    const of = (path: string) => lines().find(line => line.request_id === answers.find(a => a.path === path)?.requestId)
    expect(of('/reps?as_of=rep_1.1')).toMatchObject({ route: '/api/v1/reps', as_of: 'rep_1.1', ids: ['rep_1'] })
    expect(of('/payouts?ids=payout_1,payout_unknown,payout_0')?.ids).toEqual(['payout_1', 'payout_0'])
    expect(of('/totals')).toMatchObject({ count: 59, ids: [] })
    expect(of('/totals?period_id=period_1')).toMatchObject({ count: 1, period_id: 'period_1' })
    expect(of('/totals?rep_id=rep_1')).toMatchObject({ count: 1, ids: [], rep_id: 'rep_1' })
    expect(of('/totals?deal_id=deal_1')).toMatchObject({ count: 0, ids: [], deal_id: 'deal_1' })
    expect(of('/changes?limit=200')?.ids.slice(0, 3)).toEqual(['rep_1.1', 'rep_1.2', 'rep_2.1'])

    const page = answers[3]
    const refused = [
      await readInTime('/payouts', key, { headers: { 'if-none-match': page?.etag ?? '' } }),
      await readInTime('/payouts', key, { method: 'HEAD' }),
      await readInTime('/payouts', noPermission),
      await readInTime('/payouts/payout_1', otherKey),
      await readInTime('/payouts?limit=0', key),
      await readInTime('/nowhere', key),
      await readInTime('/payouts', key, { method: 'POST' }),
      await readInTime('/payouts', 'ck_unknown_canary_0123456789'),
      await readInTime('/payouts/payout_1/history?starting_after=payout_0', key),
    ]
    expect(refused.map(({ status }) => status)).toEqual([304, 200, 403, 404, 400, 404, 405, 401, 200])
    expect(refused.map(answer => lineOf(lines(), answer)).map(line => [line?.count, line?.ids.length])).toEqual([
      [0, 50],
      [0, 50],
      [0, 0],
      [0, 1],
      [0, 0],
      [0, 0],
      [0, 0],
      [0, 0],
      [1, 2],
    ])
    expect(lineOf(lines(), refused[7] as Read)).not.toHaveProperty('key_id')
    const description = await readInTime('/openapi.json')
    expect(lineOf(lines(), description)).toBeUndefined()
    expect(await metric(api, 'lost')).toBe(0)
    expect(await metric(api, 'written')).toBe(lines().length)
  })

  test('a flood of unknown keys has few lines, and does not stop those of others', async scope => {
    const { api, lines } = await startAudited(scope)
    const flood: number[] = []
    for (let n = 0; n < 40; n++) flood.push((await read(api.url, '/payouts', `ck_unknown_0123456789_${n}`)).status)
    expect(lines().map(({ status }) => status)).toEqual(flood.slice(0, 10))
    // On a busy machine the time of a look-up may be up.
    expect(new Set(flood.filter(status => status !== 503))).toEqual(new Set([401]))
    expectAudited([await read(api.url, '/payouts', key)], lines())
  })

  test('a file that is renamed, removed or replaced under load loses no line of an answer', async scope => {
    const { api, path } = await startAudited(scope)
    const answers: Read[] = []
    let running = true
    const ask = async (): Promise<void> => {
      while (running) answers.push(await read(api.url, `/payouts?limit=${1 + (answers.length % 50)}`, key))
    }
    const asking = [1, 2, 3, 4].map(ask)
    const kept: string[] = []
    for (let n = 0; n < 10; n++) {
      const count = answers.length
      const goesOn = (): void => expect([existsSync(path), answers.length > count + 5]).toEqual([true, true])
      await eventually(goesOn, { every: 2 })
      kept.push(`${path}.${n}`)
      renameSync(path, `${path}.${n}`)
    }
    await eventually(() => expect(existsSync(path)).toBe(true), { every: 2 })
    running = false
    await Promise.all(asking)
    expectAudited(answers, linesOf(path, ...kept))
    expect(linesOf(path, ...kept).length).toBe(answers.length)

    rmSync(path)
    const after = await read(api.url, '/payouts', key)
    const next = await read(api.url, '/payouts', key)
    expectAudited([after, next], linesOf(path))
  })

  test('a killed process has left the line of every answer that a client had', async scope => {
    const { api, path } = await startAudited(scope)
    const answers: Read[] = []
    const ask = async (): Promise<void> => {
      for (;;) answers.push(await read(api.url, `/payouts?limit=${1 + (answers.length % 50)}`, key))
    }
    const asking = Array.from({ length: 8 }, ask)
    await eventually(() => expect(answers.length).toBeGreaterThan(300), { every: 1 })
    const killed = api.kill()
    await Promise.allSettled(asking)
    await killed
    expectAudited(answers, linesOf(path))
  })

  test('a line that was cut off stays, and the next one begins on a line of its own', async scope => {
    const path = join(createFolder(scope), 'audit.ndjson')
    writeFileSync(path, '{"audit":true,"cut')
    const api = await startApi(scope, prefix, { settings: { AUDIT_LOG: path } })
    const answers = [await read(api.url, '/reps', key), await read(api.url, '/reps', key)]
    expectAudited(answers, linesOf(path))
  })
})

describe('when lines cannot be written', () => {
  const away = async (scope: Scope, strict: string) => {
    const folder = createFolder(scope)
    const [inner, path] = [join(folder, 'inner'), join(folder, 'inner', 'audit.ndjson')]
    mkdirSync(inner)
    const api = await startApi(scope, prefix, { settings: { AUDIT_LOG: path, AUDIT_STRICT: strict } })
    const before = await createReader(api).readInTime('/reps', key)
    // The directory becomes a file: it works for every user, also one who may write anywhere.
    renameSync(inner, join(folder, 'old'))
    writeFileSync(inner, '')
    return { api, path, folder, inner, before, ...createReader(api) }
  }

  test('a strict audit answers 503, and answers again when the directory is back', async scope => {
    const { api, path, folder, inner, before, readInTime } = await away(scope, 'true')
    expect(before.status).toBe(200)
    const refused = [await read(api.url, '/payouts', key), await read(api.url, '/payouts', 'ck_unknown_0123456789012')]
    expect(refused.map(({ status }) => status)).toEqual([503, 503])
    expect(refused[0]?.text).not.toContain('payout_')
    expect((await read(api.url, '/openapi.json')).status).toBe(200)
    expect(await metric(api, 'lost')).toBe(2)
    rmSync(inner)
    renameSync(join(folder, 'old'), inner)
    const again = await readInTime('/payouts', key)
    expect(again.status).toBe(200)
    expectAudited([before, again], linesOf(path))
  })

  test('an audit that is not strict answers, counts the lines, and logs it once', async scope => {
    const { api, path, folder, inner, before, readInTime, sent } = await away(scope, 'false')
    for (let n = 0; n < 20; n++) expect((await readInTime('/payouts', key)).status).toBe(200)
    expect(await metric(api, 'lost')).toBe(sent())
    const logged = () => api.lines().filter(({ msg }) => msg === 'lines of the audit log are lost')
    // After 10 s, the next line counts all others.
    await eventually(() => expect(logged()[0]).toMatchObject({ lines: 1, reason: 'ENOTDIR' }))
    rmSync(inner)
    renameSync(join(folder, 'old'), inner)
    expectAudited([before, await read(api.url, '/payouts', key)], linesOf(path))
  })

  test.skipIf(!existsSync('/dev/full')).each([
    ['true', 503],
    ['false', 200],
  ])('a full disk: AUDIT_STRICT=%s answers %i', async (strict, status) => {
    const { onTestFinished } = await import('vitest')
    const settings = { AUDIT_LOG: '/dev/full', AUDIT_STRICT: strict }
    const api = await startApi({ onTestFinished }, prefix, { settings })
    const { readInTime, sent } = createReader(api)
    expect((await readInTime('/payouts', key)).status).toBe(status)
    expect(await metric(api, 'lost')).toBe(sent())
    await eventually(() => expect(api.lines()).toContainEqual(expect.objectContaining({ reason: 'ENOSPC' })))
  })

  test.each([
    ['/nowhere/at/all/audit.ndjson', 'AUDIT_LOG: expected a file that can be written'],
    ['audit.ndjson', 'AUDIT_LOG: expected stdout'],
    ['kafka:audit', 'KAFKA_BROKERS: expected'],
  ])('AUDIT_LOG=%s stops the start: %s', async (place, message) => {
    const { onTestFinished } = await import('vitest')
    const api = startProcess({ onTestFinished }, 'api/main.ts', {
      ELASTICSEARCH_URL: 'http://127.0.0.1:1',
      API_PORT: '0',
      API_ADMIN_PORT: '0',
      AUDIT_LOG: place,
    })
    expect((await api.exited).code).toBe(1)
    expect(api.log()).toContain(message)
  })
})

test('on the standard output, lines stand between those of the log, and each is there before its answer', async scope => {
  const api = await startApi(scope, prefix, { settings: { AUDIT_LOG: 'stdout' } })
  const answers = await Promise.all(paths.map(path => read(api.url, path, key)))
  await eventually(() => expectAudited(answers, parseLines(api.log())))
  // The lines of the log are written later.
  await eventually(() => expect(api.lines().map(({ msg }) => msg)).toContain('answered'))
})

test('the admin port has the day on which each key was last used', async scope => {
  const api = await startApi(scope, prefix)
  const uses = async () => (await (await fetch(`${api.adminUrl}/keys`)).json()) as { keys: unknown[] }
  expect((await uses()).keys).toEqual([])
  const { readInTime } = createReader(api)
  await readInTime('/reps', key)
  await readInTime('/reps', 'ck_unknown_0123456789012')
  const today = new Date().toISOString().slice(0, 10)
  const used = { organization_hash: expect.any(String), key_id: expect.stringMatching(/^key_/), last_used_on: today }
  expect((await uses()).keys).toEqual([used])
})
