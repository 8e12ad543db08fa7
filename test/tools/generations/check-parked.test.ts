/** Records that the live generation parks, and that a rollback or a forced swap would show as applied. */
import { describe, expect, test } from 'vitest'
import { rollback, swap } from '../../../tools/generations/swap.ts'
import { SWAP_WAIT_MS } from '../../../tools/limits.ts'
import { sending } from '../../support/answering.ts'
import { given } from './swap-world.ts'

describe('a rollback to other rules', () => {
  type OnSearch = (count: number, parkedByLive: string[], reached: Record<'g1' | 'g2', number[]>) => void
  /** Called before and after each search of parked records, with its number from 1. */
  type Given = { readonly before?: OnSearch; readonly after?: OnSearch; readonly hidden?: readonly string[] }
  const givenRollback = ({ before, after, hidden }: Given) => {
    const live = { generation: 'g2', previous: 'g1', floor: [5, 7], alone: { g2: [0, 0] } }
    const parked = { g1: [], g2: [] as string[] }
    const its = given({ live, follows: 'g1', positions: { g1: [5, 7], g2: [5, 7] }, parked, ...(hidden && { hidden }) })
    let searches = 0
    const send = sending(async request => {
      if (!request.path.endsWith('/_search')) return its.context.send(request)
      searches++
      before?.(searches, parked.g2, its.reached)
      const answer = await its.context.send(request)
      after?.(searches, parked.g2, its.reached)
      return answer
    })
    return { ...its, rollback: (force?: string) => rollback({ force, json: false }, { ...its.context, send }) }
  }

  test('is refused for a record that the live one parked after the second check, and that it has published', async () => {
    const { state, rollback } = givenRollback({
      after: (count, parkedByLive, reached) => {
        if (count !== 2) return
        parkedByLive.push('t:1:7')
        reached.g2 = [5, 8]
        reached.g1 = [5, 8]
      },
    })
    await expect(rollback()).rejects.toThrow('1 record that g2 parked is applied in g1: t:1:7')
    expect(state.live.generation).toBe('g2')
  })

  test('is refused for a record that the live one parked during the last check', async () => {
    const { state, reached, world, rollback } = givenRollback({
      before: (count, parkedByLive) => {
        if (count === 3) parkedByLive.push('t:1:7')
      },
    })
    world.onWait = () => {
      reached.g2 = [5, 8]
      reached.g1 = [5, 8]
    }
    await expect(rollback()).rejects.toThrow('1 record that g2 parked is applied in g1: t:1:7')
    expect(state.live.generation).toBe('g2')
  })

  test('is refused without a reason while a shard of the live one cannot be compared: parked records may be missing', async () => {
    const shard = 'p-g2-parked/0'
    const { state, said, rollback } = givenRollback({ hidden: [shard] })
    await expect(rollback()).rejects.toThrow(new RegExp(`^the shard ${shard} cannot be compared.*Nothing is changed`))
    expect(state.live.generation).toBe('g2')
    await rollback('its node does not come back')
    expect(said).toContainEqual(expect.stringContaining(`the shard ${shard} cannot be compared`))
    expect(state.live.generation).toBe('g1')
  })

  test('is made while the live one publishes all the time, and parks nothing', async () => {
    const { state, reached, time, rollback } = givenRollback({})
    let position = 7
    Object.defineProperty(reached, 'g2', { get: () => [5, position++] })
    reached.g1 = [5, 1_000]
    await rollback()
    expect(time()).toBe(0)
    expect(state.live.generation).toBe('g1')
  })

  test('gives up after a minute while each check finds a parked record that is not decided; a reason makes it', async () => {
    const { state, time, rollback } = givenRollback({
      before: (count, parkedByLive) => void parkedByLive.splice(0, 1, `t:1:${100 + count}`),
    })
    await expect(rollback()).rejects.toThrow('g2 parks records all the time that g1 has not decided yet')
    expect(time()).toBeGreaterThan(SWAP_WAIT_MS)
    expect(state.live.generation).toBe('g2')
    await rollback('g2 parks everything')
    expect(state.live.generation).toBe('g1')
  })
})

describe('under equal rules, after a lost shard,', () => {
  const different = { compared: { 'g1 g2': { found: 'different' } } }
  const previous = { generation: 'g2', previous: 'g1' }
  const back = { force: undefined, json: false }
  const positions = { g1: [5, 7], g2: [5, 7] }

  test.each([
    ['found different', different],
    ['that was never compared', {}],
  ])('a rollback from a generation %s is refused for a record that it parked; a reason makes it', async (_, note) => {
    const its = given({ live: { ...previous, ...note }, positions, parked: { g1: [], g2: ['t:1:6'] } })
    await expect(rollback(back, its.context)).rejects.toThrow('1 record that g2 parked is applied in g1: t:1:6')
    expect(its.state.live.generation).toBe('g2')
    await rollback({ ...back, force: 'it was looked at' }, its.context)
    expect(its.said[0]).toContain('t:1:6 (forced: it was looked at)')
    expect(its.state.live.generation).toBe('g1')
  })

  test('a forced swap names the records that the live generation parked', async () => {
    const its = given({ live: different, positions, parked: { g1: ['t:1:6'], g2: [] } })
    await swap({ generation: 'g2', force: 'g1 lost a shard', json: false }, its.context)
    expect(its.said[0]).toContain('1 record that g1 parked is applied in g2: t:1:6')
  })

  test('a rollback to a generation that was found different needs a reason, also without such records', async () => {
    const its = given({ live: { ...previous, ...different }, positions })
    await expect(rollback(back, its.context)).rejects.toThrow('g1 was found different from g2')
    expect(its.state.live.generation).toBe('g2')
    await rollback({ ...back, force: 'it was looked at' }, its.context)
    expect(its.state.live.generation).toBe('g1')
  })

  describe('which the live generation has, so that the API answers 503,', () => {
    const unknown = (name: string) =>
      new RegExp(
        `^it is not known which records ${name} parked: .*the shard p-${name}-parked/0 .*\\(forced: it is lost\\)$`,
      )

    test('a rollback needs a reason, and none if verify found both equal', async () => {
      const its = given({ live: previous, positions, lost: ['p-g2-parked/0'] })
      await expect(rollback(back, its.context)).rejects.toThrow(/^it is not known which .*Or --force with a reason$/)
      expect(its.state.live.generation).toBe('g2')
      await rollback({ ...back, force: 'it is lost' }, its.context)
      expect(its.said[0]).toMatch(unknown('g2'))
      expect(its.state.live.generation).toBe('g1')
      const compared = { 'g1 g2': { found: 'equal' } }
      const equal = given({ live: { ...previous, compared }, positions, lost: ['p-g2-parked/0'] })
      await rollback(back, equal.context)
      expect(equal.said).toEqual(['g1 is live again; g2 is kept up'])
    })

    test('a forced swap is made, and names the parked records that are left', async () => {
      const its = given({ positions, lost: ['p-g1-parked/0'], parked: { g1: ['t:1:6'], g2: [] } })
      await swap({ generation: 'g2', force: 'it is lost', json: false }, its.context)
      expect(its.said[0]).toMatch(unknown('g1'))
      expect(its.said[1]).toContain('1 record that g1 parked is applied in g2: t:1:6')
      expect(its.state.live.generation).toBe('g2')
    })

    test('a forced swap or rollback to other rules is refused: corrected events would be paid beside these', async () => {
      const live = { ...previous, floor: [5, 7], alone: { g2: [0, 0] } }
      const its = given({ live, follows: 'g1', positions, lost: ['p-g2-parked/0'] })
      await expect(rollback({ ...back, force: 'g2 is wrong' }, its.context)).rejects.toThrow('is another one than')
      expect(its.state.live.generation).toBe('g2')
    })

    test.each(['_refresh', '_search'])(
      'a forced rollback is made while the parked records refuse %s',
      async operation => {
        const its = given({ live: previous, positions })
        const send = sending(async request =>
          request.path.endsWith(`/${operation}`)
            ? { status: 503, body: { error: { type: 'search_phase_execution_exception' } } }
            : its.context.send(request),
        )
        await expect(rollback(back, { ...its.context, send })).rejects.toThrow('cannot be read whole')
        await rollback({ ...back, force: 'g2 is red' }, { ...its.context, send })
        expect(its.said[0]).toMatch(/^it is not known which records g2 parked: .* cannot be read whole/)
        expect(its.state.live.generation).toBe('g1')
      },
    )
  })
})
