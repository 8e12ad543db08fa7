/**
 * Runs before the tests of the project `flow`: real Kafka and Elasticsearch, once for the whole run.
 * A test gets their addresses by `inject('kafkaBrokers')` and `inject('elasticsearchUrl')`.
 */
import type { TestProject } from 'vitest/node'
import { progressBar } from '../../services/progress-bar.ts'
import { startServices } from '../../services/services.ts'

declare module 'vitest' {
  interface ProvidedContext {
    kafkaBrokers: string
    elasticsearchUrl: string
  }
}

export default async (project: TestProject): Promise<() => Promise<void>> => {
  const say = (line: string): void => console.log(line)
  const services = await startServices({ say, progress: progressBar({}, say), environment: process.env })
  project.provide('kafkaBrokers', services.kafkaBrokers)
  project.provide('elasticsearchUrl', services.elasticsearchUrl)
  return services.stop
}
