import { expect, test } from 'vitest'
import type { SealKey } from '../../../../core/reading/sealed/key-store.ts'
import { reportRefusals } from '../../../../core/reading/sealed/report-refusals.ts'

/** A store that answers with the state that the test sets, and the lines that were logged. */
const setUp = (state: SealKey['state']) => {
  const lines: unknown[] = []
  const world = { state, time: 0, lines, vault: undefined as string | undefined }
  const answer = (): SealKey => {
    if (world.state === 'here') return { state: 'here', key: Buffer.alloc(32) }
    if (world.state === 'unavailable' && world.vault !== undefined) return { state: world.state, vault: world.vault }
    return { state: world.state }
  }
  const read = reportRefusals(
    async () => answer(),
    (...line) => lines.push(line),
    () => world.time,
  )
  return { world, lines, read }
}

const NOT_SET = ['warn', expect.stringContaining('SEAL_KEYS_DIR is not set'), { because: 'seal_keys_not_set' }]
const UNKNOWN = ['warn', expect.stringContaining('a key cannot be read'), { because: 'seal_key_unknown' }]

test('the first record that is refused without SEAL_KEYS_DIR has a line that names the setting', async () => {
  const { lines, read } = setUp('no_store')
  expect(await read('k1')).toEqual({ state: 'no_store' })
  expect(lines).toEqual([NOT_SET])
})

test('a reason has at most one line in ten seconds, and another reason its own', async () => {
  const { world, lines, read } = setUp('no_store')
  await read('k1')
  world.time = 9_999
  await read('k1')
  expect(lines).toEqual([NOT_SET])
  world.state = 'unknown'
  await read('k1')
  await read('k2')
  expect(lines).toEqual([NOT_SET, UNKNOWN])
  world.time = 10_000
  world.state = 'no_store'
  await read('k1')
  expect(lines).toEqual([NOT_SET, UNKNOWN, NOT_SET])
})

test('a refusal of Vault has its reason in the line, and each reason of Vault a line of its own', async () => {
  const { world, lines, read } = setUp('unavailable')
  const lineOf = (vault: string) => ['warn', UNKNOWN[1], { because: 'seal_keys_unavailable', vault }]
  world.vault = 'status 403'
  await read('k1')
  await read('k2')
  expect(lines).toEqual([lineOf('status 403')])
  world.vault = 'status 503'
  await read('k1')
  await read('k2')
  expect(lines).toEqual([lineOf('status 403'), lineOf('status 503')])
  world.time = 10_000
  await read('k1')
  expect(lines).toEqual([lineOf('status 403'), lineOf('status 503'), lineOf('status 503')])
})

test.each(['here', 'destroyed'] as const)('a key that is %s has no line', async state => {
  const { lines, read } = setUp(state)
  await read('k1')
  expect(lines).toEqual([])
})
