/**
 * A projector, or a rebuild, with other rules: it cannot decode records that match `parks`. It is assembled like
 * `projector/main.ts` and `tools/main.ts`. The product has no option for this.
 *
 * Its one argument is `OtherRules` as JSON; its settings are those of the projector.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { pino } from 'pino'
import type { DecisionSteps } from '../../core/ledger/decide/decide-batch.ts'
import { kafkaAccess, kafkaConfig } from '../../core/log/kafka-config.ts'
import { StopError } from '../../core/runtime/failures.ts'
import { projectorSettings, readSettings } from '../../core/runtime/settings.ts'
import { createElasticsearch } from '../../core/store/elasticsearch/client.ts'
import { elasticsearchConfig } from '../../core/store/elasticsearch-config.ts'
import { runProjector } from '../../projector/projector.ts'
import { rebuild } from '../../tools/generations/rebuild.ts'
import { registerCodecs } from './codecs.ts'
import type { OtherRules } from './other-rules-processes.ts'

const {
  runs,
  version,
  parks,
  layout,
  maxRate = Number.POSITIVE_INFINITY,
}: OtherRules = JSON.parse(process.argv[2] ?? '')
const parked = parks === undefined ? undefined : new RegExp(parks)
const settings = readSettings(projectorSettings, process.env)
const log = pino({ level: 'info', base: { process: 'projector' } })
const stopping = new AbortController()
process.once('SIGTERM', () => stopping.abort())
registerCodecs()
const noFiles = (): Buffer => {
  throw new Error('tests have no certificates')
}
const options = kafkaConfig(settings, 'commission-projector', noFiles, Date.now)
const access = kafkaAccess(options, config => new kafkajs.Kafka(config))
const elasticsearch = createElasticsearch(new Client(elasticsearchConfig(settings, noFiles)))

const wrapSteps = (steps: DecisionSteps): DecisionSteps => ({
  ...steps,
  decode: record => (parked?.test(String(record.value)) ? 'record_undecodable' : steps.decode(record)),
})
const common = {
  ...access,
  now: Date.now,
  elapsed: () => performance.now(),
  retryOptions: {
    sleep: (milliseconds: number, signal: AbortSignal) => sleep(milliseconds, undefined, { signal }),
    random: Math.random,
  },
  signal: stopping.signal,
  wrapSteps,
  rulesVersion: version,
}
try {
  if (runs === 'projector') await runProjector(settings, { ...common, layout, elasticsearch, log })
  else {
    process.exitCode = await rebuild(
      { maxRate, json: false },
      {
        ...common,
        testHooks: { wrapSteps },
        out: text => void process.stdout.write(text),
        say: line => void process.stdout.write(`${line}\n`),
        send: elasticsearch.send,
        prefix: settings.ELASTICSEARCH_INDEX_PREFIX,
        shards: 1,
        groupId: settings.KAFKA_GROUP_ID,
        topics: { events: settings.KAFKA_EVENTS_TOPIC, 'api-keys': settings.KAFKA_API_KEYS_TOPIC },
        sleep: milliseconds => sleep(milliseconds),
        draw: undefined,
      },
    )
  }
} catch (error) {
  process.exitCode = 1
  if (error instanceof StopError) log.fatal({ code: error.code, ...error.where }, error.message)
  else log.fatal({ code: 'defect', frames: error instanceof Error ? error.stack : '' }, 'stopped by a defect')
}
process.exit()
