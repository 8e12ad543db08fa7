/** The small parts that start the services. */
import { createSocket } from 'node:dgram'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { elasticsearchImage, kafkaImage, kafkaVariable } from '../../services/docker.ts'
import { freePort } from '../../services/ports.ts'
import { progressBar } from '../../services/progress-bar.ts'
import { isAlive } from '../../services/run-program.ts'

const sources = join(import.meta.dirname, '..', '..', 'services', 'jvm')

test('Docker and Maven use the same versions', async () => {
  const versionIn = async (name: string) =>
    new RegExp(`<${name}.version>(.*)</`).exec(await readFile(join(sources, name, 'pom.xml'), 'utf8'))?.[1]
  expect(kafkaImage).toBe(`apache/kafka:${await versionIn('kafka')}`)
  expect(elasticsearchImage).toBe(`docker.elastic.co/elasticsearch/elasticsearch:${await versionIn('elasticsearch')}`)
})

test('a Kafka setting is mapped to the variable that the image reads', () => {
  expect(kafkaVariable('message.max.bytes')).toBe('KAFKA_MESSAGE_MAX_BYTES')
  expect(kafkaVariable('a.b-c_d')).toBe('KAFKA_A_B__C___D')
})

test('a free port can be used by a server, and is outside the range for outgoing connections', async () => {
  const port = await freePort()
  expect(port).toBeLessThan(32_768)
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve))
  server.close()
})

test('a free port is reserved: another process cannot bind it', async () => {
  const port = await freePort()
  const other = createSocket('udp4')
  const held = new Promise<void>((resolve, reject) => {
    other.once('error', reject).bind({ port, address: '127.0.0.1', exclusive: true }, resolve)
  })
  await expect(held).rejects.toMatchObject({ code: 'EADDRINUSE' })
  other.close()
})

test('without a terminal, progress is one line for each tenth', () => {
  const lines: string[] = []
  const progress = progressBar({}, line => lines.push(line))
  for (let done = 0; done <= 30; done++) progress({ what: 'packages', done, total: 30 })
  expect(lines).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100].map(percent => `packages: ${percent} %`))
})

test('a process is alive until it ends', () => {
  expect(isAlive(process.pid)).toBe(true)
  expect(isAlive(2 ** 22 + 1)).toBe(false)
})
