import { connect } from 'node:net'
import { describe, expect, inject, test } from 'vitest'
import { useStore } from '../support/api.ts'
import { startApi, startProcess } from '../support/processes.ts'
import { eventually } from '../support/scope.ts'

const settings = (more: Record<string, string> = {}) => ({
  ELASTICSEARCH_URL: inject('elasticsearchUrl'),
  API_PORT: '0',
  API_ADMIN_PORT: '0',
  ...more,
})

describe('an API process', () => {
  test('does not start with wrong settings, and lists them all in one message', async scope => {
    const api = startProcess(scope, 'api/main.ts', { API_PORT: 'eighty', RATE_LIMIT_REQUESTS: '0', LOG_LEVEL: 'loud' })
    expect(await api.exited).toEqual({ code: 1, signal: null })
    for (const name of ['ELASTICSEARCH_URL', 'API_PORT', 'RATE_LIMIT_REQUESTS', 'LOG_LEVEL']) {
      expect(api.log()).toContain(name)
    }
    expect(api.log()).not.toContain('    at ')
  })

  test('does not start without its configured certificate authority', async scope => {
    const api = startProcess(scope, 'api/main.ts', settings({ ELASTICSEARCH_CA_FILE: '/nowhere/ca.pem' }))
    expect(await api.exited).toEqual({ code: 1, signal: null })
    expect(api.log()).toContain('ELASTICSEARCH_CA_FILE')
  })

  test('does not start on a port that is in use', async scope => {
    const store = await useStore(scope)
    const first = await startApi(scope, store.prefix)
    const port = new URL(first.url).port
    const second = startProcess(scope, 'api/main.ts', settings({ API_PORT: port }))
    expect((await second.exited).code).toBe(1)
    expect(second.log()).toContain(`${port}: the port is in use`)
  })

  test('is alive but not ready while Elasticsearch is away, logs that once, and keeps running', async scope => {
    const api = startProcess(scope, 'api/main.ts', settings({ ELASTICSEARCH_URL: 'http://127.0.0.1:1' }))
    const admin = await eventually(() => {
      const line = api.lines().find(({ msg }) => msg === 'the API listens')
      expect(line).toBeDefined()
      return `http://127.0.0.1:${line?.admin_port}`
    })
    expect((await fetch(`${admin}/livez`)).status).toBe(200)
    await eventually(async () => {
      const ready = await fetch(`${admin}/readyz`)
      expect([ready.status, await ready.json()]).toEqual([503, { ready: false, reasons: ['elasticsearch_connection'] }])
    })
    await eventually(async () => {
      const looks = /api_elasticsearch_seconds_count\{[^}]*\} (\d+)/.exec(
        await (await fetch(`${admin}/metrics`)).text(),
      )
      expect(Number(looks?.[1])).toBeGreaterThan(6)
    })
    await eventually(() => expect(api.lines().filter(({ msg }) => String(msg).startsWith('not ready')).length).toBe(1))
    expect(await api.stop()).toEqual({ code: 0, signal: null })
  })

  test('is ready once a generation is live and keys are served; its admin paths are only on the admin port', async scope => {
    const store = await useStore(scope)
    const api = await startApi(scope, store.prefix)
    await eventually(async () =>
      expect(await (await fetch(`${api.adminUrl}/readyz`)).json()).toEqual({ ready: true, reasons: [] }),
    )
    await eventually(async () => {
      const metrics = await (await fetch(`${api.adminUrl}/metrics`)).text()
      expect(metrics).toContain('api_request_seconds')
      expect(metrics).toMatch(/^commission_published_until_seconds\{generation="g1",partition="0"\} 1700000000$/m)
    })
    // The reference asks the API by the admin port, which asks for a key as the API does.
    expect((await fetch(`${api.adminUrl}/api/v1/openapi.json`)).status).toBe(200)
    expect((await fetch(`${api.adminUrl}/api/v1/payouts`)).status).toBe(401)
    expect((await fetch(`${api.adminUrl}/livez`, { method: 'POST' })).status).toBe(405)
    expect((await fetch(`${api.url.replace('/api/v1', '')}/livez`)).status).toBe(404)
    await store.call('DELETE', `/${store.prefix}-control/_doc/position:g1:3`)
    expect(await (await fetch(`${api.adminUrl}/readyz`)).json()).toMatchObject({
      ready: true,
      partitions_not_served: { 3: 'no_position' },
    })
    await store.call('DELETE', `/${store.prefix}-control/_doc/live`)
    expect((await fetch(`${api.adminUrl}/readyz`)).status).toBe(503)
  })

  test('its metrics get no label and no further series from what clients send', async scope => {
    const store = await useStore(scope)
    await store.publish('org_counted', 1)
    const key = await store.key('org_counted')
    const api = await startApi(scope, store.prefix)
    const ask = async (path: string, mark: string, method = 'GET', sent = key): Promise<void> => {
      const headers = { authorization: `Bearer ${sent}`, 'x-request-id': mark, traceparent: mark }
      await eventually(async () => {
        const answer = await fetch(`${api.url}${path}`, { method, headers })
        await answer.text()
        // A busy machine may refuse one for now: without its answer a series would be missing.
        expect(answer.status).not.toBe(503)
      })
    }
    const seriesAfter = async (mark: string): Promise<string[]> => {
      const records = [`payouts/payout_${mark}`, `reps/rep_${mark}`, `periods/period_${mark}`]
      const paths = [
        ...records,
        `statements/payout_${mark}`,
        `payroll_files/payroll_${mark}`,
        mark,
        `payouts?${mark}=1`,
      ]
      for (const path of [...paths, `payouts/payout_${mark}/history`, `changes?as_of=${mark}`])
        for (const method of ['GET', 'HEAD', 'POST', 'PROPFIND']) await ask(`/${path}`, mark, method)
      await ask('/payouts', mark, 'GET', `unknown_key_${mark}`)
      const text = await (await fetch(`${api.adminUrl}/metrics`)).text()
      expect(text).not.toContain(mark)
      const lines = text.split('\n').filter(line => /^api_(?:request_seconds_count|refusals_total)/.test(line))
      return lines.flatMap(line => (line.includes('status="503"') ? [] : [line.replace(/ \S+$/, '')])).toSorted()
    }
    const series = await seriesAfter('FirstMark')
    expect(series.filter(one => one.includes('status="404"')).length).toBeGreaterThan(10)
    expect(await seriesAfter('SecondMark')).toEqual(series)
  })

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'stops on %s within 10 s with code 0, despite open connections',
    async signal => {
      const { onTestFinished } = await import('vitest')
      const store = await useStore({ onTestFinished })
      const stopOne = async (): Promise<void> => {
        const api = await startApi({ onTestFinished }, store.prefix)
        const { port } = new URL(api.url)
        const idle = connect(Number(port), '127.0.0.1')
        const half = connect(Number(port), '127.0.0.1', () => half.write('GET /api/v1/pay'))
        for (const socket of [idle, half]) socket.on('error', () => undefined)
        expect((await fetch(`${api.url}/payouts`)).status).toBe(401)
        const begun = performance.now()
        process.kill(api.pid, signal)
        expect(await api.exited).toEqual({ code: 0, signal: null })
        expect(performance.now() - begun).toBeLessThan(10_000)
        for (const socket of [idle, half]) socket.destroy()
      }
      // Half a request may hold the stop for 8 s, and after 9 s the process ends by force: a busy machine may be late.
      await eventually(stopOne)
    },
  )
})
