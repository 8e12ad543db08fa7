/** The Helm chart of deploy/chart/: Helm accepts it, and Kubernetes' own schemas accept all that it renders. */
import { readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { CHART } from '../contract/chart-files.ts'
import { BUILD_TIMEOUT_MS, exampleValues, helm, renderChart, runGo } from '../support/helm.ts'
import { goProgram } from '../support/programs.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()

const examples = readdirSync(join(CHART, 'examples'))

/** The schemas of these versions of Kubernetes, with the sums of their modules. */
const versions = [['v1.36.0', 'h1:JKaAkgSzI4+ZvNWrNJg56jAkUaOiqgBaJstmi6ycyoU=']] as const
const kinds = [
  'apps.v1.Deployment',
  'autoscaling.v2.HorizontalPodAutoscaler',
  'batch.v1.Job',
  'core.v1.ConfigMap',
  'core.v1.Service',
  'core.v1.ServiceAccount',
  'networking.v1.NetworkPolicy',
  'policy.v1.PodDisruptionBudget',
]

type PodSpec = {
  readonly topologySpreadConstraints?: readonly unknown[]
  readonly securityContext: object
  readonly automountServiceAccountToken: boolean
  readonly containers: readonly {
    readonly image: string
    readonly securityContext: object
    readonly env?: readonly object[]
    readonly volumeMounts?: readonly object[]
    readonly lifecycle?: object
  }[]
  readonly initContainers?: readonly { readonly name: string; readonly restartPolicy?: string }[]
  readonly terminationGracePeriodSeconds: number
}
type Rendered = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec?: {
    readonly replicas?: number
    readonly externalTrafficPolicy?: string
    readonly minReplicas?: number
    readonly scaleTargetRef?: { readonly name: string }
    readonly template?: { readonly spec: PodSpec }
  }
}
const objectsOf = async (...values: string[]): Promise<Rendered[]> =>
  parseAllDocuments(await renderChart(...values)).flatMap(document => (document.toJS() as Rendered | null) ?? [])
const namesOf = (objects: readonly Rendered[], kind: string): string[] =>
  objects.filter(object => object.kind === kind).map(({ metadata }) => metadata.name.replace(/^.*?-(?=[a-z]+$)/, ''))

type Definition = { properties?: object; type?: string; format?: string; additionalProperties?: unknown }

/** Only these: kubeconform takes seconds for all of them. */
const reachableFrom = (root: string, definitions: Readonly<Record<string, Definition>>): Record<string, Definition> => {
  const reachable = new Set([root])
  for (const name of reachable) {
    const references = JSON.stringify(definitions[name]).matchAll(/"#\/definitions\/([^"]+)"/g)
    for (const [, referred = ''] of references) reachable.add(referred)
  }
  return Object.fromEntries([...reachable].flatMap(name => (definitions[name] ? [[name, definitions[name]]] : [])))
}

/** Writes a schema for each kind that refuses unknown fields. Returns the folder. */
const writeSchemas = async (version: string, sum: string): Promise<string> => {
  const module = JSON.parse(await runGo('mod', 'download', '-json', `k8s.io/kubernetes@${version}`))
  expect(module.Sum).toBe(sum)
  const { definitions } = JSON.parse(await readFile(join(module.Dir, 'api/openapi-spec/swagger.json'), 'utf8'))
  for (const definition of Object.values<Definition>(definitions)) {
    if (definition.properties !== undefined) definition.additionalProperties = false
    if (definition.format === 'int-or-string') Object.assign(definition, { type: ['string', 'integer'] })
  }
  const folder = await mkdtemp(join(tmpdir(), 'commission-kubernetes-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const kind of kinds) {
    const root = `io.k8s.api.${kind}`
    const schema = { $ref: `#/definitions/${root}`, definitions: reachableFrom(root, definitions) }
    await writeFile(join(folder, `${kind.split('.').at(-1)?.toLowerCase()}.json`), JSON.stringify(schema))
  }
  return folder
}

describe.skipIf(goProgram === undefined)('the chart', () => {
  test.for(examples)('Helm accepts it with the values of %s', { timeout: BUILD_TIMEOUT_MS }, async example => {
    expect(await helm('lint', '--strict', CHART, ...exampleValues(example))).toContain(
      '1 chart(s) linted, 0 chart(s) failed',
    )
  })

  test.for(versions)(
    'all that it renders is valid in Kubernetes %s',
    { timeout: BUILD_TIMEOUT_MS },
    async ([version, sum]) => {
      const folder = await writeSchemas(version, sum)
      const location = join(folder, '{{ .ResourceKind }}.json')
      for (const example of examples) {
        const file = join(folder, example)
        await writeFile(file, await renderChart(...exampleValues(example)))
        const checked = JSON.parse(
          await runGo(
            'tool',
            'kubeconform',
            '-strict',
            '-summary',
            '-output',
            'json',
            '-schema-location',
            location,
            file,
          ),
        )
        expect(checked.summary, example).toEqual({ valid: expect.any(Number), invalid: 0, errors: 0, skipped: 0 })
        expect(checked.summary.valid, example).toBeGreaterThan(4)
      }
    },
  )

  test('an unknown setting, and a password as a value, are refused', { timeout: BUILD_TIMEOUT_MS }, async () => {
    for (const setting of ['FRESHNES_MS', 'KAFKA_SASL_PASSWORD', 'PROJECTOR_ADMIN_HOST']) {
      const refused = renderChart(...exampleValues('plain.yaml'), '--set-string', `projector.settings.${setting}=x`)
      await expect(refused).rejects.toThrow(`additional properties '${setting}' not allowed`)
    }
  })

  test('two projectors are spread, the API is scaled, and each keeps pods while nodes are drained', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    const objects = await objectsOf(...exampleValues('scram.yaml'))
    const projector = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('projector'))
    expect(projector?.spec?.replicas).toBe(2)
    expect(projector?.spec?.template?.spec.topologySpreadConstraints).not.toHaveLength(0)
    const [scaler] = objects.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')
    expect(scaler?.spec).toMatchObject({ minReplicas: 2, scaleTargetRef: { name: expect.stringMatching(/-api$/) } })
    expect(namesOf(objects, 'PodDisruptionBudget').sort()).toEqual(['api', 'projector'])
    expect(namesOf(objects, 'NetworkPolicy')).toEqual(expect.arrayContaining(['api', 'projector']))
    expect(namesOf(objects, 'Job')).toEqual(['topics'])
  })

  test('a second release for a change of the rules has projectors, the rebuild and a pod for commands, and no API', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    const objects = await objectsOf(...exampleValues('rules-change.yaml'))
    expect(namesOf(objects, 'Deployment').sort()).toEqual(['commands', 'projector'])
    expect(namesOf(objects, 'Job')).toEqual(['rebuild'])
    expect(namesOf(objects, 'HorizontalPodAutoscaler')).toEqual([])
  })

  test('a second release has the image and the addresses of the first one, also of one with an explorer', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'commission-values-'))
    scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const ours = join(folder, 'values.yaml')
    const given = { image: { repository: 'example.com/ours' }, kafka: { settings: { KAFKA_BROKERS: 'ours:9092' } } }
    await writeFile(ours, JSON.stringify(given))
    const [first, change] = [exampleValues('explorer.yaml'), exampleValues('rules-change.yaml').slice(-2)]
    const rendered = await renderChart(...first, '-f', ours, ...change)
    expect(rendered).toContain('image: example.com/ours-tools:')
    expect(rendered).toContain('value: "ours:9092"')
    expect(rendered).not.toContain('-explorer')
  })

  test('sidecars run beside a container until it ends: else no Job would ever be complete', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    const processes = ['projector', 'api', 'topics', 'commands']
    const sidecars = processes.flatMap(name => ['--set-json', `${name}.sidecars=[{"name":"token","image":"token"}]`])
    const rebuild = ['commands.rebuild.enabled=true', 'commands.shell.enabled=true'].flatMap(one => ['--set', one])
    const objects = await objectsOf(...exampleValues('plain.yaml'), ...sidecars, ...rebuild)
    const pods = objects.flatMap(({ spec }) => spec?.template?.spec ?? [])
    expect(pods).toHaveLength(5)
    for (const { containers, initContainers } of pods) {
      expect(containers).toHaveLength(1)
      expect(initContainers).toEqual([{ name: 'token', image: 'token', restartPolicy: 'Always' }])
    }
  })

  test('a tag beside a digest is refused: the digest would count silently', { timeout: BUILD_TIMEOUT_MS }, async () => {
    const pins = ['image.tag=2.0.0', `image.digest=sha256:${'a'.repeat(64)}`].flatMap(one => ['--set-string', one])
    await expect(renderChart(...exampleValues('plain.yaml'), ...pins)).rejects.toThrow(
      'image.digest and image.tag: give one of them',
    )
  })

  test('a pod behind a load balancer outside of the cluster continues for 30 s after its deletion, else for 5 s', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    const waitOf = async (...set: readonly string[]) => {
      const objects = await objectsOf(...exampleValues('explorer.yaml'), ...set.flatMap(one => ['--set', one]))
      const waits = objects.flatMap(({ metadata, spec }) => {
        const pod = /-(api|explorer)$/.test(metadata.name) ? spec?.template?.spec : undefined
        return pod ? [{ ...pod.containers[0]?.lifecycle, grace: pod.terminationGracePeriodSeconds }] : []
      })
      return waits
    }
    const sleeps = (seconds: number) => ({ preStop: { sleep: { seconds } }, grace: seconds + 15 })
    expect(await waitOf()).toEqual([sleeps(5), sleeps(5)])
    expect(await waitOf('api.service.type=LoadBalancer', 'explorer.service.type=NodePort')).toEqual([
      ...[sleeps(30), sleeps(30)],
    ])
    expect(await waitOf('api.service.type=LoadBalancer', 'api.preStopSeconds=60')).toContainEqual(sleeps(60))
  })

  test('where commands run, both images are pinned by their digests or none is', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    const [service, tools] = ['a', 'b'].map(letter => `sha256:${letter.repeat(64)}`)
    const pins = { service: `image.digest=${service}`, tools: `image.tools.digest=${tools}` }
    const imagesOf = async (example: string, ...pinned: readonly string[]) => {
      const rendered = await renderChart(...exampleValues(example), ...pinned.flatMap(pin => ['--set-string', pin]))
      return [...new Set([...rendered.matchAll(/image: "?([^"\n]+)/g)].map(([, image = '']) => image))].sort()
    }
    for (const pin of Object.values(pins)) {
      await expect(imagesOf('rules-change.yaml', pin)).rejects.toThrow(
        'image.digest and image.tools.digest: give both or none',
      )
    }
    const both = await imagesOf('rules-change.yaml', pins.service, pins.tools)
    expect(both.map(image => image.split('@')[1])).toEqual([tools, service])
    expect((await imagesOf('plain.yaml', pins.service)).map(image => image.split('@')[1])).toEqual([service])
  })

  test('the explorer is off by default; it needs the API of its release, without TLS', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    expect(await renderChart(...exampleValues('scram.yaml'))).not.toContain('explorer')
    const objects = await objectsOf(...exampleValues('explorer.yaml'))
    const kindsOf = objects.flatMap(({ kind, metadata }) => (metadata.name.endsWith('-explorer') ? [kind] : []))
    expect(kindsOf.sort()).toEqual([
      ...['ConfigMap', 'Deployment', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'ServiceAccount'],
    ])
    for (const [example, setting, why] of [
      ['explorer.yaml', 'api.enabled=false', 'it needs api.enabled'],
      ['scram.yaml', 'explorer.enabled=true', 'it cannot be used with API_TLS_CERT_FILE'],
    ] as const) {
      await expect(renderChart(...exampleValues(example), '--set', setting)).rejects.toThrow(why)
    }
  })

  test('the explorer may connect to the API and to DNS only, and the API lets it in', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    const objects = await objectsOf(...exampleValues('explorer.yaml'))
    const policyOf = (name: string) =>
      objects.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name.endsWith(`-${name}`))?.spec
    const labels = (component: string) => ({
      podSelector: { matchLabels: expect.objectContaining({ 'app.kubernetes.io/component': component }) },
    })
    const ports = (protocol: string, port: number | string) => ({ protocol, port })
    expect(policyOf('explorer')).toMatchObject({
      policyTypes: ['Ingress', 'Egress'],
      egress: [{ to: [labels('api')], ports: [ports('TCP', 8080)] }, { ports: [ports('UDP', 53), ports('TCP', 53)] }],
    })
    expect(policyOf('api')).toMatchObject({
      ingress: [
        { from: [{ namespaceSelector: expect.anything() }, labels('explorer')], ports: [ports('TCP', 'http')] },
      ],
    })
  })

  test('the pod of the explorer has the rights of the others, its own image, and writes to /tmp only', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    const pin = (name: string, letter: string) => ['--set-string', `image.${name}=sha256:${letter.repeat(64)}`]
    await expect(renderChart(...exampleValues('explorer.yaml'), ...pin('digest', 'a'))).rejects.toThrow(
      'image.digest and image.explorer.digest: give both or none',
    )
    const objects = await objectsOf(...exampleValues('explorer.yaml'))
    const podOf = (component: string): PodSpec | undefined =>
      objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith(`-${component}`))?.spec
        ?.template?.spec
    const [explorer, api] = [podOf('explorer'), podOf('api')]
    expect(explorer?.securityContext).toEqual(api?.securityContext)
    expect(explorer?.automountServiceAccountToken).toBe(false)
    const [container] = explorer?.containers ?? []
    expect(container?.securityContext).toEqual(api?.containers[0]?.securityContext)
    expect(container?.securityContext).toMatchObject({ readOnlyRootFilesystem: true })
    expect(container?.image).toMatch(/^registry\.example\.com\/commission-api-explorer:\d/)
    expect(container?.volumeMounts).toEqual([
      { name: 'nginx', mountPath: '/etc/nginx/nginx.conf', subPath: 'nginx.conf', readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
    ])
    expect(container?.env).toBeUndefined()
  })

  test('a Service that is open outside of the cluster keeps the addresses of its clients', {
    timeout: BUILD_TIMEOUT_MS,
  }, async () => {
    const policies = async (...types: readonly string[]) => {
      const set = types.flatMap(type => [`api.service.type=${type}`, `explorer.service.type=${type}`])
      const objects = await objectsOf(...exampleValues('explorer.yaml'), ...set.flatMap(one => ['--set', one]))
      return objects.flatMap(({ kind, spec }) => (kind === 'Service' ? [spec?.externalTrafficPolicy] : []))
    }
    expect(await policies()).toEqual([undefined, undefined])
    for (const type of ['LoadBalancer', 'NodePort']) expect(await policies(type), type).toEqual(['Local', 'Local'])
  })

  test('without peers nobody may connect to an admin port', { timeout: BUILD_TIMEOUT_MS }, async () => {
    const api = await renderChart(...exampleValues('scram.yaml'), '-s', 'templates/api.yaml')
    expect(/^ {2}ingress: (.*)$/m.exec(api)?.[1]).toBe('[{"ports":[{"port":"http","protocol":"TCP"}]}]')
    const projector = await renderChart(...exampleValues('scram.yaml'), '-s', 'templates/projector.yaml')
    expect(/^ {2}ingress: (.*)$/m.exec(projector)?.[1]).toBe('[]')
  })
})
