/** `npm run parked` and `npm run keys`: reads the command line and the settings, builds the clients, carries one command out, chooses the exit code. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { elasticsearchConfig, kafkaConfig } from '../projector/config.ts'
import { createElasticsearch } from '../projector/elasticsearch.ts'
import { elasticsearchSettings, kafkaSettings, type Read, readSettings } from '../schemas/settings.ts'
import type { CommandContext, KafkaContext } from './context.ts'
import { exitCodes, messageOf } from './failures.ts'
import { createKey, listKeys, revokeKey } from './keys/keys.ts'
import * as parked from './parked/parked.ts'
import { runProgram } from './program.ts'

const out = (text: string | Buffer): void => void process.stdout.write(text)
const say = (line: string): void => void process.stderr.write(`${line}\n`)

const main = async (args: readonly string[]): Promise<number> => {
  await using stack = new AsyncDisposableStack()
  // The clients are built by the command that needs them: help needs no setting.
  const reading = (settings = readSettings(elasticsearchSettings, process.env)): CommandContext => {
    const client = new Client(elasticsearchConfig(settings, readFileSync))
    stack.defer(() => client.close())
    return { out, say, send: createElasticsearch(client).send, prefix: settings.ELASTICSEARCH_INDEX_PREFIX }
  }
  const publishing = (settings = readSettings({ ...elasticsearchSettings, ...kafkaSettings }, process.env)) => ({
    ...reading(settings),
    kafka: new kafkajs.Kafka(kafkaConfig(settings, 'commission-commands', readFileSync)),
    topics: topicsOf(settings),
    sleep: (milliseconds: number) => sleep(milliseconds),
    now: Date.now,
  })
  // Awaited here: what returns before it ends closes the clients under it.
  return await runProgram(
    args,
    {
      list: async options => parked.list(options, reading()),
      count: async options => parked.count(options, reading()),
      show: async options => parked.show(options, reading()),
      again: async options => parked.again(options, publishing()),
      createKey: async options => createKey(options, publishing()),
      listKeys: async options => listKeys(options, reading()),
      revokeKey: async options => revokeKey(options, publishing()),
    },
    { out, error: text => void process.stderr.write(text) },
  )
}

const topicsOf = (settings: Read<typeof kafkaSettings>): KafkaContext['topics'] => ({
  events: settings.KAFKA_EVENTS_TOPIC,
  'api-keys': settings.KAFKA_API_KEYS_TOPIC,
})

// Whoever reads it has read enough (`| head`).
process.stdout.on('error', error => {
  process.exit('code' in error && error.code === 'EPIPE' ? exitCodes.done : exitCodes.failed)
})
const code = await main(process.argv.slice(2)).catch((error: unknown) => {
  say(messageOf(error))
  return exitCodes.failed
})
// What is left of connections must not keep it alive; what was written is let through first.
process.stdout.write('', () => process.exit(code))
