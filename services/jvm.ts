/**
 * Finds a JDK that Elasticsearch runs on, and Maven. Returns also where it searched and what it found, for an error
 * message. Starts nothing: the version of a JDK is in its `release` file.
 */
import { globSync } from 'node:fs'
import { access, constants, readFile, realpath } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import type { Environment } from './service.ts'

/** Elasticsearch 9 requires Java 21; Kafka 4 requires Java 17. */
export const oldestJava = 21

export type Jdk = { readonly home: string; readonly version: number }
export type JdkSearch = {
  readonly jdk: Jdk | undefined
  readonly searched: readonly string[]
  readonly tooOld: readonly Jdk[]
}

const installed = [
  '/usr/lib/jvm/*',
  '/Library/Java/JavaVirtualMachines/*/Contents/Home',
  '/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home',
]

/** Returns the first new enough JDK of JAVA_HOME, the usual folders and the PATH. If set, only ES_JAVA_HOME counts. */
export const findJdk = async (environment: Environment, folders: readonly string[] = installed): Promise<JdkSearch> => {
  const { ES_JAVA_HOME: decided, JAVA_HOME: home } = environment
  if (decided) return choose([decided], [`ES_JAVA_HOME=${decided}`])
  return choose(
    [
      ...(home ? [home] : []),
      ...globSync([...folders])
        .sort()
        .reverse(),
      ...(await homeOfJavaOnPath(environment)),
    ],
    [home ? `JAVA_HOME=${home}` : 'JAVA_HOME (not set)', ...folders, 'java on the PATH'],
  )
}

/** Returns the path of a program on the PATH; undefined if it is not there. */
export const findOnPath = async (program: string, environment: Environment): Promise<string | undefined> => {
  for (const folder of (environment.PATH ?? '').split(delimiter).filter(Boolean)) {
    const file = join(folder, program)
    if (await isExecutable(file)) return file
  }
  return undefined
}

/** Returns the Java version in a JDK's `release` file: 21 for `JAVA_VERSION="21.0.4"`. */
export const javaVersion = (release: string): number | undefined => {
  const version = /^JAVA_VERSION="(\d+)/m.exec(release)?.[1]
  return version === undefined ? undefined : Number(version)
}

const choose = async (homes: readonly string[], searched: readonly string[]): Promise<JdkSearch> => {
  const jdks = (await Promise.all([...new Set(homes)].map(readJdk))).filter(jdk => jdk !== undefined)
  return {
    jdk: jdks.find(({ version }) => version >= oldestJava),
    searched,
    tooOld: jdks.filter(({ version }) => version < oldestJava),
  }
}

const readJdk = async (home: string): Promise<Jdk | undefined> => {
  // The launchers are compiled here, and a JRE has no javac.
  if (!(await isExecutable(join(home, 'bin', 'javac')))) return undefined
  const release = await readFile(join(home, 'release'), 'utf8').catch(() => '')
  const version = javaVersion(release)
  return version === undefined ? undefined : { home, version }
}

const homeOfJavaOnPath = async (environment: Environment): Promise<string[]> => {
  const java = await findOnPath('java', environment)
  return java === undefined ? [] : [dirname(dirname(await realpath(java)))]
}

const isExecutable = (file: string): Promise<boolean> =>
  access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
