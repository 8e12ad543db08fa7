/** Starts Kafka and Elasticsearch once for all tests of the project `flow`, which get the addresses with `inject`. */
import type { TestProject } from 'vitest/node'
import { progressBar } from '../../services/progress-bar.ts'
import { shortLived } from '../../services/service.ts'
import { startServices } from '../../services/services.ts'
import { leftOut } from './programs.ts'

declare module 'vitest' {
  interface ProvidedContext {
    kafkaBrokers: string
    elasticsearchUrl: string
  }
}

export default async (project: TestProject): Promise<() => Promise<void>> => {
  const say = (line: string): void => console.log(line)
  const missing = leftOut()
  if (missing !== undefined && process.env.LEAVE_NOTHING_OUT === 'true') throw new Error(missing)
  if (missing !== undefined) say(missing)
  const progress = progressBar({}, say)
  const services = await startServices({
    say,
    progress,
    environment: process.env,
    kafka: shortLived,
    elasticsearch: shortLived,
  })
  project.provide('kafkaBrokers', services.kafkaBrokers)
  project.provide('elasticsearchUrl', services.elasticsearchUrl)
  return services.stop
}
