/** Swaps and rollbacks with control and parked documents that the test changes. */
import { describe, expect, test } from 'vitest'
import { copyAt } from '../../../tools/generations/compared.ts'
import { rollback, swap } from '../../../tools/generations/swap.ts'
import { SWAP_NEAR_MS, SWAP_WAIT_MS } from '../../../tools/limits.ts'
import { sending } from '../../support/answering.ts'
import { given } from './swap-world.ts'

const toG2 = { generation: 'g2', force: undefined, json: false }
const place = { position: 0, last: null, at: 0, time: 0, serve_from: 0 }
/** Of two generations that were never read again. */
const copies = ['g1', 'g2'].map(generation => copyAt({ generation }, [place, place]))
const equalAt = (positions: number[], found = 'equal', rules_versions = [1, 1]) => {
  return { compared: { 'g1 g2': { found, positions, rules_versions, copies, run: 1 } } }
}
const verified = equalAt([4, 3])
const withCopies = (of: string[] | undefined) => ({
  compared: { 'g1 g2': { ...verified.compared['g1 g2'], copies: of } },
})
const readAgain = copyAt({ generation: 'g2' }, [place, { ...place, taken_back: 1 }])
const verifiedOfOthers = equalAt([4, 3], 'equal', [1, 2])

describe('a swap', () => {
  test('from a generation with a redacted log names what was published since', async () => {
    const at = { g1: [5, 7], g2: [5, 7] }
    const none = given({ live: verified, redactedTo: [5, 7], positions: at })
    await swap(toG2, none.context)
    expect(none.said.join()).not.toContain('published after the redaction')
    const some = given({ live: verified, redactedTo: [5, 4], positions: at })
    await swap(toG2, some.context)
    expect(some.said[0]).toContain('published after the redaction, before this swap: t:1 from offset 4 to 6. g1 and g2')
    const other = given({ live: verified, positions: at })
    await swap(toG2, other.context)
    expect(other.said.join()).not.toContain('redaction')
  })

  test('waits until one look finds every position of the new generation at that of the live one', async () => {
    const { state, reached, world, time, context } = given({ live: verified, positions: { g1: [5, 7], g2: [5, 3] } })
    world.onWait = passed => {
      if (passed >= 1_000) reached.g2 = [4, 7]
      if (passed >= 2_000) reached.g2 = [5, 7]
    }
    await swap(toG2, context)
    expect(time()).toBe(2_000)
    expect(state.live).toMatchObject({ generation: 'g2', previous: 'g1', floor: [5, 7] })
  })

  test('waits until the new generation has everything that the live one had before a restore', async () => {
    const its = given({ live: verified, positions: { g1: [0, 0], g2: [5, 3] }, servedFrom: { g1: [5, 7] } })
    its.world.onWait = passed => {
      if (passed >= 1_000) its.reached.g2 = [5, 7]
    }
    await swap(toG2, its.context)
    expect(its.time()).toBe(1_000)
  })

  test('waits until the API would serve a new generation that was restored', async () => {
    const its = given({ live: verified, positions: { g1: [5, 4], g2: [5, 4] }, servedFrom: { g2: [5, 7] } })
    await expect(swap(toG2, its.context)).rejects.toThrow(
      'g2 is 3 records behind what readers have seen before a restore',
    )
    expect(its.state.live.generation).toBe('g1')
    its.reached.g2 = [5, 7]
    await swap(toG2, its.context)
    expect(its.state.live.generation).toBe('g2')
  })

  test('to other rules needs a reason while the live one reads its records again: it is not known what it parked', async () => {
    const live = { ...verifiedOfOthers, alone: { g2: [0, 0] } }
    const its = given({ live, follows: 'g1', positions: { g1: [5, 6], g2: [5, 7] }, servedFrom: { g1: [5, 7] } })
    await expect(swap(toG2, its.context)).rejects.toThrow('g1 reads 1 record again after a restore')
    expect(its.state.live.generation).toBe('g1')
    await swap({ ...toG2, force: 'g1 needs hours' }, its.context)
    expect(its.said[0]).toContain('(forced: g1 needs hours)')
    expect(its.state.live.generation).toBe('g2')
  })

  test('to other rules is not refused because the live one publishes meanwhile', async () => {
    const live = { ...verifiedOfOthers, alone: { g2: [0, 0] } }
    const its = given({ live, follows: 'g1', positions: { g1: [5, 7], g2: [5, 1_000] } })
    let position = 7
    Object.defineProperty(its.reached, 'g1', { get: () => [5, position++] })
    await swap(toG2, its.context)
    expect(its.state.live.generation).toBe('g2')
  })

  test('gives up after a minute and changes nothing', async () => {
    const { state, time, context } = given({ live: verified, positions: { g1: [5, 7], g2: [5, 3] } })
    await expect(swap(toG2, context)).rejects.toThrow('g2 is 4 records behind g1')
    expect(time()).toBeGreaterThan(SWAP_WAIT_MS)
    expect(state.live.generation).toBe('g1')
  })

  test('to a follower is made once it is less than SWAP_NEAR_MS behind: it never reaches a live one that keeps moving', async () => {
    const { state, reached, world, time, context } = given({
      live: verifiedOfOthers,
      follows: 'g1',
      positions: { g1: [5, 100], g2: [5, 3] },
    })
    // The live one never stops. The other one is seconds behind at first, and then a tenth of a second.
    world.onWait = passed => {
      reached.g1 = [5, 100 + passed]
      reached.g2 = [5, passed < 3_000 ? 3 : passed]
    }
    await swap(toG2, context)
    expect(time()).toBeGreaterThanOrEqual(3_000)
    expect(time()).toBeLessThan(3_000 + 2 * SWAP_NEAR_MS)
    expect(state.live).toMatchObject({ generation: 'g2', floor: reached.g1, alone: { g2: reached.g1 } })
  })

  test('is refused while records parked by the live one are applied in the new one; with --force it names them', async () => {
    const parked = { g1: ['t:0:1', 't:1:6'], g2: ['t:0:1'] }
    const its = given({ live: verifiedOfOthers, follows: 'g1', positions: { g1: [5, 7], g2: [5, 7] }, parked })
    await expect(swap(toG2, its.context)).rejects.toThrow('1 record that g1 parked is applied in g2: t:1:6')
    expect(its.state.live.generation).toBe('g1')
    await swap({ generation: 'g2', force: 'it was looked at', json: false }, its.context)
    expect(its.said[0]).toContain('t:1:6')
    expect(its.state.live.generation).toBe('g2')
  })

  test('checks the parked records again if the live one still had to decide some', async () => {
    const parked = { g1: [] as string[], g2: [] }
    const live = { ...verifiedOfOthers, alone: { g2: [0, 0] } }
    const its = given({ live, follows: 'g1', positions: { g1: [6, 6], g2: [5, 7] }, parked })
    its.world.onWait = () => {
      parked.g1.push('t:1:6')
      its.reached.g1[1] = 7
      its.reached.g2[0] = 6
    }
    await expect(swap(toG2, its.context)).rejects.toThrow('1 record that g1 parked is applied in g2: t:1:6')
    expect(its.state.live.generation).toBe('g1')
  })

  test('is refused if the refresh of the parked records failed on a shard', async () => {
    const its = given({ live: verifiedOfOthers, follows: 'g1', positions: { g1: [5, 7], g2: [5, 7] } })
    const send = sending(async request =>
      request.path.endsWith('/_refresh')
        ? { status: 200, body: { _shards: { failed: 1 } } }
        : its.context.send(request),
    )
    await expect(swap(toG2, { ...its.context, send })).rejects.toThrow(
      'the records that g1 parked cannot be read whole',
    )
    expect(its.state.live.generation).toBe('g1')
  })

  test('checks the parked records again while it waits', async () => {
    const parked = { g1: [] as string[], g2: [] }
    const its = given({ live: verifiedOfOthers, follows: 'g1', positions: { g1: [5, 7], g2: [5, 6] }, parked })
    its.world.onWait = () => {
      parked.g1.push('t:1:6')
      its.reached.g2 = [5, 7]
    }
    await expect(swap(toG2, its.context)).rejects.toThrow('t:1:6')
  })

  test('to a generation that does not follow the live one is refused', async () => {
    const { context } = given({ live: verified, follows: 'g7', positions: { g1: [5, 7], g2: [5, 7] } })
    await expect(swap(toG2, context)).rejects.toThrow('drop it, and make one beside g1')
  })

  test('changes nothing if another generation was made live meanwhile', async () => {
    const { state, reached, world, context } = given({ live: verified, positions: { g1: [5, 7], g2: [5, 3] } })
    world.onWait = () => {
      reached.g2 = [5, 7]
      state.live = { generation: 'g3', kept: ['g1', 'g2', 'g3'], previous: 'g1', floor: [5, 7] }
      state.seqNo++
    }
    await expect(swap(toG2, context)).rejects.toThrow('meanwhile g3 was made live')
    expect(state.live.generation).toBe('g3')
  })

  test.each([
    ['no comparison was made', {}, 'g2 was not found equal to g1'],
    ['an older version wrote the note', { verified: { g2: 'g1' } }, 'by an older version of this program'],
    ['the last comparison found a difference', equalAt([4, 3], 'different'), 'g2 was found different from g1'],
    ['it was compared under other rules', equalAt([4, 3], 'equal', [1, 2]), 'under other rules'],
    ['an older version noted no copies', withCopies(undefined), 'did not note the copies'],
    ['one was read again since', withCopies([copies[0] ?? '', readAgain]), 'before one of them was read again'],
    ['it is behind the compared positions', equalAt([4, 8]), 'lies behind the positions at which it was found equal'],
    ['most records came after the comparison', equalAt([4, 3]), 'as of 7 records, and has 110000 more since'],
  ])('without a reason is refused if %s', async (_, live, why) => {
    const far = why.includes('110000') ? 110_000 : 0
    const { state, context } = given({ live, positions: { g1: [4, 3 + far], g2: [4, 3 + far] } })
    await expect(swap(toG2, context)).rejects.toThrow(why)
    expect(state.live.generation).toBe('g1')
    await swap({ ...toG2, force: 'it was looked at' }, context)
    expect(state.live.generation).toBe('g2')
  })

  test('is refused if a comparison finds a difference while it waits', async () => {
    const { state, reached, world, context } = given({ live: verified, positions: { g1: [5, 7], g2: [5, 3] } })
    world.onWait = () => {
      reached.g2 = [5, 7]
      Object.assign(state.live, equalAt([5, 3], 'different'))
    }
    await expect(swap(toG2, context)).rejects.toThrow('g2 was found different from g1')
    expect(state.live.generation).toBe('g1')
  })

  test('that was interrupted is completed by the next command', async () => {
    const cut = { generation: 'g2', previous: 'g1', floor: null }
    const { state, context } = given({ live: cut, follows: 'g1', positions: { g1: [5, 7], g2: [5, 7] } })
    await rollback({ force: undefined, json: false }, context)
    expect(state.live).toMatchObject({ generation: 'g1', previous: 'g2', floor: [5, 7], alone: { g2: [5, 7] } })
  })
})

test('neither a rollback nor a forced swap goes to a generation of another source: adopt had skipped it', async () => {
  const of = { cluster: 'before', positions: { g1: [5, 7], g2: [5, 7] } }
  const back = given({ ...of, live: { generation: 'g2', previous: 'g1' } })
  const refusal = 'are of different sources: cluster_id is'
  await expect(rollback({ force: undefined, json: false }, back.context)).rejects.toThrow(`g1 and g2 ${refusal} c and`)
  const there = given(of)
  const forced = swap({ ...toG2, force: 'a reason' }, there.context)
  await expect(forced).rejects.toThrow(`g2 and g1 ${refusal} before and c`)
  expect([back.state.live.generation, there.state.live.generation]).toEqual(['g2', 'g1'])
  expect([back.time(), there.time()]).toEqual([0, 0])
})

test('a rollback whose answer was lost changes nothing when it is repeated', async () => {
  const { state, said, context } = given({
    live: { generation: 'g2', previous: 'g1' },
    positions: { g1: [5, 7], g2: [5, 7] },
  })
  await rollback({ force: undefined, json: false }, context)
  expect(await rollback({ force: undefined, json: false }, context)).toBe(0)
  expect(said.at(-1)).toBe('g1 is live already. To make g2 live: npx commission projection swap g2')
  expect(state.live).toMatchObject({ generation: 'g1', previous: 'g2' })
})

test('a generation with texts that were redacted since becomes live again only for a reason, and is named', async () => {
  const back = { force: undefined, json: false }
  const positions = { g1: [5, 7], g2: [5, 7] }
  const its = given({ live: { generation: 'g2', previous: 'g1' }, redactedTo: [5, 7], positions })
  await expect(rollback(back, its.context)).rejects.toThrow('g1 was made before the log was redacted')
  expect(its.state.live.generation).toBe('g2')
  await rollback({ ...back, force: 'g2 is wrong' }, its.context)
  expect(its.said[0]).toContain('has the open texts (forced: g2 is wrong)')
  expect(its.state.live.generation).toBe('g1')
})

test('so does one beside another from before a redaction, which can lack the texts of an earlier redaction', async () => {
  const of = { redactedTo: [5, 7], ofBoth: true, positions: { g1: [5, 7], g2: [5, 7] } }
  const back = given({ ...of, live: { generation: 'g2', previous: 'g1' } })
  await expect(rollback({ force: undefined, json: false }, back.context)).rejects.toThrow('g1 was made before the log')
  expect(back.state.live.generation).toBe('g2')
  const there = given({ ...of, live: verified })
  await expect(swap(toG2, there.context)).rejects.toThrow(/^g2 was made before .*rebuild makes one without, or --force/)
  await swap({ ...toG2, force: 'g1 is wrong' }, there.context)
  expect(there.said[0]).toContain('has the open texts (forced: g1 is wrong)')
  expect(there.state.live.generation).toBe('g2')
})

test('a rollback waits like a swap', async () => {
  const live = { generation: 'g2', previous: 'g1', floor: [5, 7] }
  const { state, reached, world, time, context } = given({ live, positions: { g1: [5, 3], g2: [5, 7] } })
  world.onWait = passed => {
    if (passed >= 1_000) reached.g1 = [5, 7]
  }
  await rollback({ force: undefined, json: false }, context)
  expect(time()).toBe(1_000)
  expect(state.live).toMatchObject({ generation: 'g1', previous: 'g2', floor: [5, 7] })
})
