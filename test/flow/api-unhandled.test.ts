import { expect, test } from 'vitest'
import { useStore } from '../support/api.ts'
import { rejectsOnSignal, throwsOnSignal } from '../support/defects.ts'
import { fetchInTime } from '../support/in-time.ts'
import { startApi } from '../support/processes.ts'
import { eventually, type Scope } from '../support/scope.ts'

const start = async (scope: Scope, settings: Readonly<Record<string, string>>) => {
  const store = await useStore(scope)
  store.rep('org_unhandled', 'rep_1', [{ seq: 0, name: 'A' }])
  await store.publish('org_unhandled', 1)
  const key = await store.key('org_unhandled')
  const api = await startApi(scope, store.prefix, { settings })
  const ask = async () => (await fetchInTime(api, '/reps', key)).status
  return { api, ask }
}

test('an unhandled rejection is logged by place and counted, and the API keeps answering', async scope => {
  const { api, ask } = await start(scope, rejectsOnSignal)
  for (let defects = 1; defects <= 3; defects++) {
    process.kill(api.pid, 'SIGUSR2')
    const metrics = async () => (await fetch(`${api.adminUrl}/metrics`)).text()
    await eventually(async () => expect(await metrics()).toContain(`api_unhandled_rejections_total ${defects}\n`))
    expect(await ask()).toBe(200)
  }
  await eventually(() => {
    const lines = api.lines().filter(({ msg }) => msg === 'an error that nobody listened for')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatchObject({
      level: 50,
      error: 'TypeError',
      at: [expect.stringContaining('at '), expect.anything()],
    })
  })
  expect(api.log()).not.toMatch(/CANARY|org_secret|payout_1/)
  expect(api.exit()).toBeUndefined()
  expect(await api.stop()).toEqual({ code: 0, signal: null })
})

test('an uncaught exception ends the API with exit code 70, and is logged by place', async scope => {
  const { api, ask } = await start(scope, throwsOnSignal)
  expect(await ask()).toBe(200)
  // The line of the request is written beside the process. At its end it could come after the line of the error.
  await eventually(() => expect(api.lines().at(-1)?.msg).toBe('answered'))
  process.kill(api.pid, 'SIGUSR2')
  expect(await api.exited).toEqual({ code: 70, signal: null })
  expect(api.lines().at(-1)).toMatchObject({ level: 60, error: 'TypeError', msg: 'an error that nobody listened for' })
  expect(api.log()).not.toMatch(/CANARY|org_secret|payout_1/)
})
