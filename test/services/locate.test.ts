import { expect, test } from 'vitest'
import { findServiceSource } from '../../services/locate.ts'

/** An environment without Docker, JDK and Maven, whatever the machine has. */
const nothing = { PATH: '', ES_JAVA_HOME: '/nowhere', DOCKER_HOST: 'unix:///nowhere.sock' }

test('addresses in the environment are used, whatever else is installed', async () => {
  const given = { KAFKA_BROKERS: 'a:9092,b:9092', ELASTICSEARCH_URL: 'http://c:9200', COMMISSION_SERVICES: 'jvm' }
  expect(await findServiceSource({ ...nothing, ...given })).toEqual({
    from: 'environment',
    kafkaBrokers: 'a:9092,b:9092',
    elasticsearchUrl: 'http://c:9200',
  })
})

test('one address without the other is refused, naming the other', async () => {
  await expect(findServiceSource({ KAFKA_BROKERS: 'a:9092' })).rejects.toThrow('but ELASTICSEARCH_URL is not')
  await expect(findServiceSource({ ELASTICSEARCH_URL: 'http://c:9200' })).rejects.toThrow('but KAFKA_BROKERS is not')
})

test('an unknown value of COMMISSION_SERVICES is refused', async () => {
  const finding = findServiceSource({ ...nothing, COMMISSION_SERVICES: 'podman' })
  await expect(finding).rejects.toThrow('COMMISSION_SERVICES: expected docker or jvm, got "podman"')
})

test('if nothing is found, one message lists everything that was tried', async () => {
  const message = await findServiceSource(nothing).catch(String)
  expect(message).toContain('KAFKA_BROKERS and ELASTICSEARCH_URL in the environment')
  expect(message).toContain('DOCKER_HOST=unix:///nowhere.sock')
  expect(message).toContain('a JDK of 21 or newer, and Maven: looked at ES_JAVA_HOME=/nowhere and found no JDK')
})

test.for([
  ['docker', 'JDK of 21 or newer, and Maven: not looked for'],
  ['jvm', 'Docker: not looked for'],
] as const)('COMMISSION_SERVICES=%s skips the other way', async ([way, left]) => {
  await expect(findServiceSource({ ...nothing, COMMISSION_SERVICES: way })).rejects.toThrow(left)
})
