/** Describes the machine of the measurement. */
import { execFileSync } from 'node:child_process'
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os'
import { temporaryFolder } from '../../services/folder.ts'
import { kafkaVersion } from '../../services/kafka.ts'
import type { Services } from '../../services/services.ts'
import type { BenchElasticsearch } from './elasticsearch.ts'

export type Machine = Readonly<Record<string, string>>

/** Returns a description by label. @param mode of the run, such as `quick run` */
export const describeMachine = async (
  services: Services,
  elasticsearch: BenchElasticsearch,
  mode: string,
): Promise<Machine> => {
  const { version } = await elasticsearch.call<{ version: { number: string } }>('GET', '/')
  const started = startedAs[services.from]
  return {
    run: `${mode}, ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`,
    commit: commit(),
    machine: `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), ${(totalmem() / 2 ** 30).toFixed(0)} GiB, ${platform()} ${release()} ${arch()}`,
    Node: process.version,
    Elasticsearch: `${version.number}, ${started}, one node`,
    'data of both': services.from === 'jvm' ? await dataLocation() : 'wherever they keep it',
    Kafka: services.from === 'environment' ? 'given' : `${kafkaVersion}, ${started}, one node`,
  }
}

const startedAs: Readonly<Record<Services['from'], string>> = {
  environment: 'given',
  docker: 'in Docker',
  jvm: 'as Java processes',
}

const dataLocation = async (): Promise<string> =>
  (await temporaryFolder(process.env)).startsWith('/dev/shm') ? 'in memory (/dev/shm)' : 'on a disk'

/** Files without git have no commit. */
const commit = (): string => {
  try {
    const options = { cwd: import.meta.dirname, encoding: 'utf8', stdio: 'pipe' } as const
    return execFileSync('git', ['describe', '--always', '--exclude=*', '--dirty=, with changes'], options).trim()
  } catch {
    return 'unknown'
  }
}
