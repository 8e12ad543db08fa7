/** deploy/chart/values.schema.json, with the settings of `core/runtime/settings.ts` that each process knows. */
import { join } from 'node:path'
import {
  apiSettings,
  elasticsearchSettings,
  kafkaSettings,
  projectorSettings,
  topicSettings,
} from '../../core/runtime/settings.ts'

export const CHART = join(import.meta.dirname, '../../deploy/chart')
export const VALUES_SCHEMA = join(CHART, 'values.schema.json')

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
  only({
    ...more,
    settings: settingsOf(settings),
    files: filesOf(settings),
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
            tools: only({ repository: { type: 'string' }, digest }),
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
        api: processOf(apiSettings, {
          enabled,
          replicas: atLeast(0),
          autoscaling: only({
            enabled,
            minReplicas: atLeast(1),
            maxReplicas: atLeast(1),
            averageCpuUtilization: atLeast(1),
          }),
          preStopSeconds: atLeast(1),
          service: only({
            type: { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
            port: atLeast(1),
            annotations: texts,
          }),
        }),
        topics: processOf({ ...kafkaSettings, ...topicSettings }, { enabled }),
        commands: processOf(projectorSettings, { rebuild: switched, shell: switched }),
        networkPolicy: only({ enabled, admin: objects, receipts: objects, api: objects, egress: objects }),
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
