/** The explorer of the chart: the rendered command and configuration as a process here, before a real API. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { buildPage } from '../../explorer/build-page.ts'
import { freePort } from '../../services/ports.ts'
import { serveApi, useStore } from '../support/api.ts'
import { BUILD_TIMEOUT_MS, exampleValues, renderChart } from '../support/helm.ts'
import { startNginx } from '../support/nginx.ts'
import { goProgram, nginxProgram } from '../support/programs.ts'
import { eventually } from '../support/scope.ts'

type Container = {
  readonly command: readonly string[]
  readonly ports: readonly { readonly containerPort: number }[]
  readonly readinessProbe: { readonly httpGet: { readonly path: string } }
}
type Rendered = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data: { readonly 'nginx.conf': string }
  readonly spec: { readonly template: { readonly spec: { readonly containers: readonly [Container] } } }
}

/** Replaces a text that is there once. */
const changed = (text: string, of: string, by: string): string => {
  expect(text.split(of), of).toHaveLength(2)
  return text.replace(of, by)
}

describe.skipIf(goProgram === undefined || nginxProgram === undefined)('the explorer of the chart', () => {
  test('serves the page, and the API of the release at the same origin', {
    timeout: BUILD_TIMEOUT_MS,
  }, async scope => {
    const store = await useStore(scope)
    store.payout('org_chart', 0, { id: 'payout_1' })
    await store.publish('org_chart', 1)
    const key = await store.key('org_chart')
    const { port: apiPort } = await serveApi(scope, store.prefix)

    const objects = parseAllDocuments(await renderChart(...exampleValues('explorer.yaml'))).map(
      document => document.toJS() as Rendered,
    )
    const named = (kind: string) =>
      objects.find(object => object?.kind === kind && object.metadata.name === 'commission-explorer')
    const [container] = named('Deployment')?.spec.template.spec.containers ?? []
    expect(container?.command.slice(0, 4)).toEqual(['nginx', '-e', 'stderr', '-g'])
    const folder = await mkdtemp(join(tmpdir(), 'commission-explorer-'))
    scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
    await buildPage(process.execPath, join(folder, 'page'), new AbortController().signal)
    await mkdir(join(folder, 'tmp'))
    const port = await freePort()
    const written = named('ConfigMap')?.data['nginx.conf'].replaceAll(' /tmp/', ` ${folder}/tmp/`) ?? ''
    const configuration = [
      [`listen ${container?.ports[0]?.containerPort};`, `listen 127.0.0.1:${port};`],
      ['server commission-api:80;', `server 127.0.0.1:${apiPort};`],
      ['/usr/share/commission-explorer/', `${folder}/page/`],
    ].reduce((text, [of = '', by = '']) => changed(text, of, by), written)
    // A worker of root would be another user, who may not read the folder.
    await startNginx(scope, folder, configuration, `${container?.command[4]} master_process off;`)

    const origin = `http://127.0.0.1:${port}`
    const probe = `${origin}${container?.readinessProbe.httpGet.path}`
    await eventually(async () => expect((await fetch(probe)).status).toBe(200))
    expect(await (await fetch(`${origin}/explorer/`)).text()).toContain('http-equiv="Content-Security-Policy"')
    const payouts = await fetch(`${origin}/api/v1/payouts`, { headers: { authorization: `Bearer ${key}` } })
    expect([payouts.status, await payouts.json()]).toMatchObject([200, { data: [{ id: 'payout_1' }] }])
    expect((await fetch(`${origin}/api/v1/payouts`)).status).toBe(401)
  })
})
