/** The settings of a topic while it is restored, and afterwards: also if another process puts them back. */
import type { Admin } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { keepTimes, putTimesBack } from '../../../tools/archive/record-times.ts'

const TYPE = 'message.timestamp.type'
const AFTER = 'message.timestamp.after.max.ms'
const BEFORE = 'message.timestamp.before.max.ms'
const HIGHEST = String(2n ** 63n - 1n)

/** A broker with the settings of one topic, and its own defaults. */
const brokerWith = (own: Record<string, string>, defaults: Record<string, string>) => {
  let settings = own
  let altered = 0
  const admin = {
    describeConfigs: async () => {
      const all = Object.entries({ ...defaults, ...settings })
      const entries = all.map(([configName, configValue]) => {
        return { configName, configValue, configSource: configName in settings ? 1 : 5 }
      })
      return { resources: [{ configEntries: entries }] }
    },
    alterConfigs: async ({ resources }: Parameters<Admin['alterConfigs']>[0]) => {
      altered++
      settings = Object.fromEntries(resources[0]?.configEntries?.map(({ name, value }) => [name, value]) ?? [])
    },
  } as unknown as Admin
  return { admin, settings: () => settings, altered: () => altered }
}

const own = { [TYPE]: 'LogAppendTime', 'retention.ms': '-1' }
const kafka4 = { [AFTER]: '3600000', [BEFORE]: HIGHEST }

describe('while a topic is restored', () => {
  test('its records keep their times, and any time is taken; other settings stay', async () => {
    const { admin, settings } = brokerWith(own, kafka4)
    await keepTimes(admin, 't')
    expect(settings()).toMatchObject({ ...own, [TYPE]: 'CreateTime' })
    expect(BigInt(settings()[AFTER] ?? 0)).toBeGreaterThan(2n ** 62n)
    expect(settings()).not.toHaveProperty([BEFORE])
  })

  test('no setting is sent that the broker does not know, or that has no limit', async () => {
    const { admin, settings } = brokerWith(own, { 'message.timestamp.difference.max.ms': HIGHEST })
    await keepTimes(admin, 't')
    expect(settings()).toEqual({ ...own, [TYPE]: 'CreateTime' })
  })
})

describe('after a restore', () => {
  test.each([
    ['no limits of its own', {}, kafka4],
    ['a limit of its own', { [AFTER]: '60000' }, kafka4],
    ['two limits of its own, one of them 0', { [AFTER]: '0', [BEFORE]: '86400000' }, kafka4],
    ['no limit, as it says itself', { [AFTER]: HIGHEST }, kafka4],
    ['the limit of an older Kafka', { 'message.timestamp.difference.max.ms': '5000' }, {}],
  ])(
    'a topic with %s has its settings again, also if a run was killed and the next one puts them back',
    async (_, limits, defaults) => {
      const { admin, settings, altered } = brokerWith({ ...own, ...limits }, defaults)
      for (let run = 0; run < 3; run++) await keepTimes(admin, 't')
      expect(altered()).toBe(1)
      await putTimesBack(admin, 't')
      expect(settings()).toEqual({ ...own, ...limits })
      await putTimesBack(admin, 't')
      expect(altered()).toBe(2)
    },
  )
})
