/**
 * Files of deploy/chart/ that `npm run contract` writes: the configuration of nginx in front of the API, which is that
 * of docs/examples/nginx.conf; and values.schema.json, with the settings of `core/runtime/settings.ts` that each
 * process knows.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  apiSettings,
  archiveS3Settings,
  elasticsearchSettings,
  kafkaSettings,
  projectorSettings,
  sealSettings,
  topicSettings,
} from '../../core/runtime/settings.ts'

export const CHART = join(import.meta.dirname, '../../deploy/chart')
export const VALUES_SCHEMA = join(CHART, 'values.schema.json')

export const EXPLORER_CONFIGURATION = join(CHART, 'files/explorer.conf')
const NGINX_EXAMPLE = join(import.meta.dirname, '../../docs/examples/nginx.conf')

/** In a container other addresses are needed, it may write to /tmp only, and it logs no requests. */
const inContainer: readonly (readonly [of: RegExp, text: string])[] = [
  [
    /^#.*\n#.*\n/,
    '# docs/examples/nginx.conf for the container of the explorer. Written by `npm run contract`. The chart sets the\n# address of the API.\n',
  ],
  [/^events/m, 'error_log stderr;\npid /tmp/nginx.pid;\nevents'],
  [
    /^http \{\n/m,
    `http {\n  access_log off;\n${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `  ${name}_temp_path /tmp/${name};\n`).join('')}`,
  ],
  [/server 127\.0\.0\.1:3000;/, 'server api:8080;'],
  [/listen 127\.0\.0\.1:8080;/, 'listen 8080;'],
  // The proxy in front of the pod ends TLS, and says so.
  [/X-Forwarded-Proto \$scheme;/, 'X-Forwarded-Proto $http_x_forwarded_proto;'],
]

export const explorerConfiguration = (): string =>
  inContainer.reduce(
    (text, [of, replacement]) => {
      if (!of.test(text)) throw new Error(`docs/examples/nginx.conf has nothing like ${of}`)
      // As a function: a text has dollar signs.
      return text.replace(of, () => replacement)
    },
    readFileSync(NGINX_EXAMPLE, 'utf8'),
  )

type Settings = Readonly<Record<string, { readonly expected: string; readonly secret?: true }>>

/** Settings that the chart sets itself: its ports and probes depend on them. */
const OWN = [
  'API_HOST',
  'API_PORT',
  'API_ADMIN_HOST',
  'API_ADMIN_PORT',
  'PROJECTOR_ADMIN_HOST',
  'PROJECTOR_ADMIN_PORT',
  'RECEIPTS_HOST',
  'RECEIPTS_PORT',
]

/** An object that may have these keys and no other. */
const only = (properties: Readonly<Record<string, object>>, required: readonly string[] = []): object => ({
  type: 'object',
  additionalProperties: false,
  ...(required.length > 0 && { required }),
  properties,
})
const ref = (name: string): object => ({ $ref: `#/definitions/${name}` })
const objects: object = { type: 'array', items: { type: 'object' } }
const switched: object = only({ enabled: { type: 'boolean' } })
const digest: object = { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' }
const texts: object = { type: 'object', additionalProperties: { type: 'string' } }
const atLeast = (minimum: number): object => ({ type: 'integer', minimum })

/** Settings as texts: Helm would write a large number as 1e+06. A secret is no setting: it is a file. */
const settingsOf = (settings: Settings, required: readonly string[] = []): object =>
  only(
    Object.fromEntries(
      Object.entries(settings)
        .filter(([name, { secret }]) => !secret && !OWN.includes(name))
        .map(([name, { expected }]) => [name, { type: 'string', minLength: 1, description: expected }]),
    ),
    required,
  )
const filesOf = (settings: Settings): object =>
  only(
    Object.fromEntries(
      Object.entries(settings)
        .flatMap(([name, { secret }]) => (secret ? [`${name}_FILE`] : name.endsWith('_FILE') ? [name] : []))
        .map(name => [name, ref('file')]),
    ),
  )

const processOf = (settings: Settings, more: Readonly<Record<string, object>> = {}): object =>
  podOf({ ...more, settings: settingsOf(settings), files: filesOf(settings) })
const podOf = (more: Readonly<Record<string, object>>): object =>
  only({
    ...more,
    resources: { type: 'object' },
    serviceAccount: only({ annotations: texts }),
    podAnnotations: texts,
    scheduling: only({
      nodeSelector: texts,
      tolerations: objects,
      affinity: { type: 'object' },
      priorityClassName: { type: 'string' },
    }),
    sidecars: objects,
    volumes: objects,
    volumeMounts: objects,
  })

const name: object = { type: 'string', minLength: 1 }
const enabled: object = { type: 'boolean' }
const ownImage: object = only({ repository: { type: 'string' }, digest })
const service: object = only({
  type: { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
  externalTrafficPolicy: { enum: ['Local', 'Cluster'] },
  port: atLeast(1),
  annotations: texts,
})

export const valuesSchema = (): string => {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    description: 'Written by `npm run contract` from core/runtime/settings.ts',
    ...only(
      {
        global: { type: 'object' },
        image: only(
          {
            repository: name,
            tag: { type: 'string' },
            digest,
            tools: ownImage,
            explorer: ownImage,
            pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
            pullSecrets: { type: 'array', items: name },
          },
          ['repository'],
        ),
        kafka: only({ settings: settingsOf(kafkaSettings, ['KAFKA_BROKERS']), files: filesOf(kafkaSettings) }),
        elasticsearch: only({
          settings: settingsOf(elasticsearchSettings, ['ELASTICSEARCH_URL']),
          files: filesOf(elasticsearchSettings),
        }),
        projector: processOf(projectorSettings, { enabled, replicas: atLeast(0), receipts: switched }),
        // Those of Kafka: for an audit log there.
        api: processOf(
          { ...apiSettings, ...kafkaSettings },
          {
            enabled,
            replicas: atLeast(0),
            autoscaling: only({
              enabled,
              minReplicas: atLeast(1),
              maxReplicas: atLeast(1),
              averageCpuUtilization: atLeast(1),
            }),
            preStopSeconds: atLeast(1),
            service,
          },
        ),
        explorer: podOf({ enabled, replicas: atLeast(0), preStopSeconds: atLeast(1), service }),
        topics: processOf({ ...kafkaSettings, ...topicSettings }, { enabled }),
        commands: processOf(
          { ...projectorSettings, ...topicSettings, ...sealSettings, ...archiveS3Settings },
          { rebuild: switched, shell: switched },
        ),
        networkPolicy: only({
          enabled,
          admin: objects,
          receipts: objects,
          api: objects,
          explorer: objects,
          egress: objects,
        }),
      },
      ['image', 'kafka', 'elasticsearch'],
    ),
    definitions: {
      file: {
        description: 'A key of a Secret or ConfigMap, or a token that Kubernetes issues for an audience',
        oneOf: [
          only({ secret: name, key: name }, ['secret', 'key']),
          only({ configMap: name, key: name }, ['configMap', 'key']),
          only({ audience: name, expirationSeconds: atLeast(600) }, ['audience']),
        ],
      },
    },
  }
  return `${JSON.stringify(schema, null, 2)}\n`
}
