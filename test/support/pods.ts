/** The pods that Helm renders from the chart, as processes of this machine. */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { freePort } from '../../services/ports.ts'
import { type RunningProcess, startCommand } from './processes.ts'
import type { Scope } from './scope.ts'

type Labels = Readonly<Record<string, string>>
type Probe = { readonly httpGet: { readonly path: string; readonly port: string } }
type ProbeName = 'startupProbe' | 'readinessProbe' | 'livenessProbe'
type Container = Partial<Record<ProbeName, Probe>> & {
  readonly command: readonly string[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } }
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
}
type SecretSource = {
  readonly secret: { readonly name: string; readonly items: readonly { readonly key: string; readonly path: string }[] }
}
type PodSpec = {
  readonly terminationGracePeriodSeconds: number
  readonly containers: readonly Container[]
  readonly volumes?: readonly { readonly name: string; readonly projected: { readonly sources: SecretSource[] } }[]
}
export type Manifest = {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: {
    /** Of a Deployment or a Job. */
    readonly template?: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec }
    /** Of a Service. */
    readonly selector?: Labels
    readonly ports?: readonly { readonly targetPort: string }[]
  }
}

export const parseManifests = (rendered: string): Manifest[] =>
  [...parseAllDocuments(rendered)].flatMap(document => {
    expect(document.errors).toEqual([])
    const manifest: Manifest | null = document.toJS()
    return manifest === null ? [] : [manifest]
  })

/** The manifest of this kind and name. */
export const manifestOf = (manifests: readonly Manifest[], kind: string, name: string): Manifest => {
  const found = manifests.find(manifest => manifest.kind === kind && manifest.metadata.name === name)
  if (found === undefined) throw new Error(`the chart rendered no ${kind} ${name}`)
  return found
}

/** The variables that the image sets itself. */
const imageEnvironment = (): Record<string, string> => {
  const dockerfile = readFileSync(join(import.meta.dirname, '../../Dockerfile'), 'utf8')
  const variables = [...dockerfile.matchAll(/^ENV (.+)$/gm)].flatMap(([, line = '']) => line.split(' '))
  expect(variables.length).toBeGreaterThan(0)
  return Object.fromEntries(variables.map(variable => variable.split(/=(.*)/s)))
}

/** By the name of the Secret and its key. */
export type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Writes the files that Kubernetes would mount. Returns the folder of each mount by its path in the container. */
const mountFiles = async (scope: Scope, { volumes = [] }: PodSpec, container: Container, secrets: Secrets) => {
  const folders = new Map<string, string>()
  for (const { name, mountPath } of container.volumeMounts ?? []) {
    const volume = volumes.find(candidate => candidate.name === name)
    if (volume === undefined) throw new Error(`the pod has no volume ${name}`)
    const folder = await mkdtemp(join(tmpdir(), 'commission-mount-'))
    scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
    for (const { secret } of volume.projected.sources) {
      for (const { key, path } of secret.items) {
        const content = secrets[secret.name]?.[key]
        if (content === undefined) throw new Error(`there is no Secret ${secret.name} with the key ${key}`)
        await writeFile(join(folder, path), content, { mode: 0o440 })
      }
    }
    folders.set(mountPath, folder)
  }
  return folders
}

export type Pod = RunningProcess & {
  /** The address of a named port of the container. */
  readonly addressOf: (port: string) => string
  /** Returns the status of the answer to a probe; undefined if the connection fails. */
  readonly probe: (name: ProbeName) => Promise<number | undefined>
  /** Milliseconds that Kubernetes leaves the process after SIGTERM. */
  readonly stopWithin: number
}

/**
 * Starts the container of a Deployment or a Job with its command and environment. Three things differ: a port is a free
 * one, an address that a process listens on is 127.0.0.1, and mounted files are in a temporary folder.
 */
export const startPod = async (scope: Scope, { spec: { template } }: Manifest, secrets: Secrets = {}): Promise<Pod> => {
  const pod = template?.spec
  const [container, ...others] = pod?.containers ?? []
  if (pod === undefined || container === undefined) throw new Error('the manifest has no container')
  expect(others).toEqual([])
  const { command, env, ports = [], lifecycle } = container
  const environment: Record<string, string> = { ...imageEnvironment() }
  for (const { name, value } of env) environment[name] = value

  const listening = new Map<string, number>()
  const settings = Object.entries(environment)
  for (const { name, containerPort } of ports) {
    const setting = settings.filter(([key, value]) => key.endsWith('_PORT') && value === String(containerPort))
    expect(setting, `the settings of the port ${name}`).toHaveLength(1)
    const port = await freePort()
    listening.set(name, port)
    for (const [key] of setting) environment[key] = String(port)
  }
  expect(settings.filter(([key]) => key.endsWith('_PORT'))).toHaveLength(ports.length)
  for (const [key, value] of settings.filter(([name]) => name.endsWith('_HOST'))) {
    // Neither a probe nor a Service reaches 127.0.0.1 of a pod.
    expect([key, value]).toEqual([key, '0.0.0.0'])
    environment[key] = '127.0.0.1'
  }
  const folders = await mountFiles(scope, pod, container, secrets)
  for (const [key, value] of settings) {
    for (const [mountPath, folder] of folders) {
      if (value.startsWith(`${mountPath}/`)) environment[key] = join(folder, value.slice(mountPath.length))
    }
  }

  const [program, ...parameters] = command
  expect(program).toBe('node')
  const child = startCommand(scope, [process.execPath, ...parameters], environment)
  const addressOf = (port: string): string => {
    const number = listening.get(port)
    if (number === undefined) throw new Error(`the container has no port ${port}`)
    return `127.0.0.1:${number}`
  }
  return {
    ...child,
    addressOf,
    probe: async name => {
      const { path, port } = container[name]?.httpGet ?? { path: '', port: `of a ${name}` }
      const address = `http://${addressOf(port)}${path}`
      return fetch(address).then(
        ({ status }) => status,
        () => undefined,
      )
    },
    stopWithin: (pod.terminationGracePeriodSeconds - (lifecycle?.preStop.sleep.seconds ?? 0)) * 1_000,
  }
}

/** The named port to which a Service sends requests for this Deployment. */
export const servicePort = (service: Manifest, deployment: Manifest): string => {
  expect(deployment.spec.template?.metadata.labels).toMatchObject(service.spec.selector ?? {})
  const [port, ...others] = service.spec.ports ?? []
  expect(others).toEqual([])
  return port?.targetPort ?? ''
}
