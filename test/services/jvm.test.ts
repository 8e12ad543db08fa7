import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { findJdk, findOnPath, javaVersion } from '../../services/jvm.ts'

let machine: string
beforeAll(async () => {
  machine = await mkdtemp(join(tmpdir(), 'commission-test-'))
  await installJdk('jvm/java-17', '17.0.15')
  await installJdk('jvm/java-21', '21.0.4')
  await installJdk('elsewhere/java-25', '25')
  await mkdir(join(machine, 'jvm/not-java'), { recursive: true })
  await mkdir(join(machine, 'bin'))
  await symlink(join(machine, 'elsewhere/java-25/bin/java'), join(machine, 'bin/java'))
  return () => rm(machine, { recursive: true })
})

test.for([
  ['JAVA_VERSION="17.0.15"', 17],
  ['IMPLEMENTOR="Someone"\nJAVA_VERSION="25"\nOS_NAME="Linux"', 25],
  ['JAVA_VERSION="1.8.0_402"', 1],
  ['IMPLEMENTOR="Someone"', undefined],
  ['', undefined],
] as const)('a release file %j means Java %s', ([release, version]) => {
  expect(javaVersion(release)).toBe(version)
})

test('a JDK is found in the usual folders, and older ones are reported', async () => {
  const search = await findJdk({}, [join(machine, 'jvm/*')])
  expect(search.jdk).toEqual({ home: join(machine, 'jvm/java-21'), version: 21 })
  expect(search.tooOld).toEqual([{ home: join(machine, 'jvm/java-17'), version: 17 }])
})

test('JAVA_HOME comes first, unless it is too old', async () => {
  const found = async (home: string) =>
    (await findJdk({ JAVA_HOME: join(machine, home) }, [join(machine, 'jvm/*')])).jdk
  expect(await found('elsewhere/java-25')).toMatchObject({ version: 25 })
  expect(await found('jvm/java-17')).toMatchObject({ version: 21 })
})

test('ES_JAVA_HOME decides, even if nothing is there', async () => {
  const search = await findJdk({ ES_JAVA_HOME: '/nowhere' }, [join(machine, 'jvm/*')])
  expect(search).toEqual({ jdk: undefined, searched: ['ES_JAVA_HOME=/nowhere'], tooOld: [] })
})

test('the JDK of java on the PATH is found through symbolic links', async () => {
  const { jdk } = await findJdk({ PATH: `/nowhere:${join(machine, 'bin')}` }, [])
  expect(jdk).toEqual({ home: join(machine, 'elsewhere/java-25'), version: 25 })
})

test('a program that is not on the PATH is not found', async () => {
  expect(await findOnPath('java', { PATH: join(machine, 'bin') })).toBe(join(machine, 'bin/java'))
  expect(await findOnPath('mvn', { PATH: join(machine, 'bin') })).toBeUndefined()
  expect(await findOnPath('java', {})).toBeUndefined()
})

const installJdk = async (home: string, version: string): Promise<void> => {
  const bin = join(machine, home, 'bin')
  await mkdir(bin, { recursive: true })
  await writeFile(join(machine, home, 'release'), `JAVA_VERSION="${version}"\n`)
  for (const program of ['java', 'javac']) {
    await writeFile(join(bin, program), '')
    await chmod(join(bin, program), 0o755)
  }
}
