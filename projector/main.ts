/** The projector process: reads the settings, builds the clients, runs until a signal, chooses the exit code. */

import files, { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { pino } from 'pino'
import { kafkaAccess, kafkaConfig } from '../core/log/index.ts'
import { STOP_TIMEOUT_MS } from '../core/projection/index.ts'
import {
  boundLog,
  endAtUnhandledErrors,
  errorLocation,
  nameOf,
  projectorSettings,
  readSettings,
  SettingsError,
  StopError,
} from '../core/runtime/index.ts'
import { authOf, createCredentials, createElasticsearch, elasticsearchConfig } from '../core/store/index.ts'
import { runProjector } from './projector.ts'

/** Writes the last log lines, once there is a log. */
let endLog = (): void => undefined

const main = async (): Promise<number> => {
  const settings = readSettings(projectorSettings, process.env, readFileSync)
  const bounded = boundLog(process, files, () => performance.now())
  const stream = pino.destination(bounded.options)
  const log = pino({ level: settings.LOG_LEVEL, base: { process: 'projector' } }, stream)
  bounded.watch(stream, dropped =>
    log.warn({ dropped }, 'log lines were dropped: nobody read them, or the disk was full'),
  )
  endLog = () => bounded.end(stream)
  endAtUnhandledErrors(process, location => {
    log.fatal({ code: 'defect', ...location }, 'stopped by an error that nobody listened for')
    endLog()
  })
  const stopping = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    // Keep the listener: a terminal and npm send the signal twice, and without a listener the second one kills.
    process.on(signal, () => {
      if (stopping.signal.aborted) return
      log.info({ signal }, 'stopping')
      stopping.abort()
      setTimeout(() => {
        log.error('not stopped in time')
        endLog()
        process.exit(1)
      }, STOP_TIMEOUT_MS).unref()
    })
  }

  const client = new Client(elasticsearchConfig(settings, readFileSync))
  try {
    await runProjector(settings, {
      ...kafkaAccess(
        kafkaConfig(settings, 'commission-projector', readFileSync, Date.now),
        config => new kafkajs.Kafka(config),
      ),
      elasticsearch: createElasticsearch(
        client,
        createCredentials(() => authOf(settings)),
      ),
      log,
      now: Date.now,
      elapsed: () => performance.now(),
      retryOptions: {
        sleep: (milliseconds, signal) => sleep(milliseconds, undefined, { signal }),
        random: Math.random,
      },
      signal: stopping.signal,
    })
    log.info('stopped')
    return 0
  } catch (error) {
    if (error instanceof StopError) log.fatal({ code: error.code, ...error.where }, error.message)
    // The message of another library's error can quote its input. Its location cannot.
    else log.fatal({ code: 'defect', ...errorLocation(error) }, 'stopped by a defect')
    return 1
  }
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${error instanceof SettingsError ? error.message : nameOf(error)}\n`)
  process.exitCode = 1
}
endLog()
// Ends open connections. Closing the clients would wait for requests, which a silent server never answers.
process.exit()
