/**
 * Symptom: a projector that was stopped during its start left a member behind in its Kafka group. The next projector
 * got no partition until the session of that member had ended, 15 s later, and projected nothing meanwhile.
 * Cause: a stop reached only streams that had started, and not a stream that was joining its group.
 */
import { expect, test } from 'vitest'
import { startProjector } from '../support/processes.ts'
import { eventually } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

test('a projector that is stopped while it joins its groups leaves no member behind', async t => {
  const topics = await createTopics(t)
  /** Stops a projector that joins. @returns its prefix, and the milliseconds that the stop took */
  const stopWhileJoining = async (part: string) => {
    const prefix = createPrefix(t)
    const projector = await startProjector(t, { topics, prefix })
    await eventually(() => expect(projector.lines().map(line => line.part)).toContain(part), { every: 1 })
    const began = performance.now()
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
    return { prefix, took: performance.now() - began }
  }
  for (const part of ['api-keys consumer', 'g1 consumer']) {
    let { prefix, took } = await stopWhileJoining(part)
    // On a busy machine the projector may end before it has left: it does not wait for longer.
    while (took > 6_000) ({ prefix, took } = await stopWhileJoining(part))

    const { groups } = await topics.admin.describeGroups([`${prefix}-g1`, `${prefix}-api-keys`])
    expect(groups.flatMap(({ members }) => members)).toEqual([])
  }
})
