/** The example publishers in four languages choose the partition that the projector expects. */
import { expect, test } from 'vitest'
import { dataOf, keyCreated, newKeyText, repRecorded } from '../support/events.ts'
import { startProjector, untilCaughtUp } from '../support/processes.ts'
import { goProgram, javaProgram, mavenProgram, npmProgram, pythonProgram } from '../support/programs.ts'
import { runCopy } from '../support/run-copy.ts'
import { call, createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const ORGANIZATIONS = 10_000
/** Prime: a wrong partitioner would rarely be right. */
const PARTITIONS = 7

const publishers = [
  { folder: 'typescript', programs: [npmProgram] },
  { folder: 'python', programs: [pythonProgram] },
  { folder: 'go', programs: [goProgram] },
  { folder: 'java', programs: [javaProgram, mavenProgram] },
] as const

for (const { folder, programs } of publishers) {
  test.skipIf(programs.includes(undefined))(
    `the publisher in ${folder} publishes events of ${ORGANIZATIONS} organizations; none is parked`,
    async t => {
      const topics = await createTopics(t, { partitions: PARTITIONS })
      const prefix = createPrefix(t)
      const projector = await startProjector(t, { topics, prefix })
      await topics.publish([keyCreated({ org_id: 'org_0', id: 'key_1', text: newKeyText() })])
      const { port } = (projector.lines().find(({ msg }) => msg === 'admin port')?.address ?? {}) as { port?: number }
      const events = Array.from({ length: ORGANIZATIONS }, (_, n) => {
        const data = dataOf(
          repRecorded({ org_id: `org_${(n * 2_654_435_761).toString(36)}`, id: 'rep_1', name: 'Zoë 😀' }),
        )
        return JSON.stringify({ type: 'commission.rep.recorded.v1', data })
      })
      const environment = { KAFKA_BROKERS: topics.brokers, TOPIC: topics.events, ADMIN: `http://127.0.0.1:${port}` }
      const printed = await runCopy(`../docs/examples/publish/${folder}`, environment, {}, `${events.join('\n')}\n`)
      expect(printed.map(line => JSON.parse(line))).toEqual([
        { state: 'published', topic: topics.events, partition: expect.any(Number), offset: expect.any(Number) },
      ])
      await untilCaughtUp(projector)
      await call('POST', `/${prefix}-g1-*/_refresh`)
      const countIn = async (kind: string) => JSON.parse((await call('GET', `/${prefix}-g1-${kind}/_count`)).text).count
      expect([await countIn('parked'), await countIn('reps')]).toEqual([0, 2 * ORGANIZATIONS])
    },
  )
}
