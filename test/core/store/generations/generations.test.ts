import { describe, expect, test } from 'vitest'
import {
  changeGenerations,
  finishSwap,
  type Generations,
  readGenerations,
} from '../../../../core/store/generations/generations.ts'
import type { Comparison } from '../../../../schemas/stored/comparisons.ts'
import { storedNameOf } from '../../../../schemas/stored/live-names.ts'
import { primariesAnswer, sending } from '../../../support/answering.ts'

/** A control index that others may change between two requests. */
const control = (body: object | undefined) => {
  const state = { body, seqNo: 7 }
  const between: (() => void)[] = []
  const request = sending(async ({ method, body, query }) => {
    if (method === 'GET') {
      if (state.body === undefined) return { status: 404, body: { found: false } }
      const answer = { _source: { kind: 'live', body: state.body }, _seq_no: state.seqNo, _primary_term: 1 }
      return { status: 200, body: answer }
    }
    between.shift()?.()
    if (query?.if_seq_no !== state.seqNo) return { status: 409, body: {} }
    state.body = (body as { body: object }).body
    state.seqNo++
    return { status: 200, body: {} }
  })
  return { state, between, steps: { request, prefix: 'p' } }
}

const keep =
  (name: string) =>
  (now: Generations): Generations => ({ ...now, active: [...now.active, name] })

test('before the first start there are no generations; a live document with only a name keeps only that one', async () => {
  expect(await readGenerations(control(undefined).steps)).toBeUndefined()
  expect(await readGenerations(control({ generation: 'g1' }).steps)).toEqual({
    live: 'g1',
    active: ['g1'],
    building: null,
    previous: null,
    verified: {},
    compared: {},
    minPositions: [],
    independentFrom: {},
    highest: 1,
  })
  await expect(changeGenerations(control(undefined).steps, keep('g2'))).rejects.toThrow(
    expect.objectContaining({ code: 'index_missing' }),
  )
})

test('a change applies to the current document, even if another write came first', async () => {
  const { state, between, steps } = control({ generation: 'g1' })
  between.push(() => {
    state.body = { generation: 'g1', kept: ['g1', 'g7'] }
    state.seqNo++
  })
  await changeGenerations(steps, keep('g2'))
  expect(state.body).toMatchObject({ generation: 'g1', kept: ['g1', 'g7', 'g2'] })
})

test('a change that throws changes nothing', async () => {
  const { state, steps } = control({ generation: 'g1' })
  const refuse = (): never => {
    throw new Error('meanwhile')
  }
  await expect(changeGenerations(steps, refuse)).rejects.toThrow('meanwhile')
  expect(state).toEqual({ body: { generation: 'g1' }, seqNo: 7 })
})

test('a change without effect is not written: no other writer gets a conflict', async () => {
  const { state, steps } = control({ generation: 'g1' })
  await changeGenerations(steps, now => now)
  expect(state.seqNo).toBe(7)
})

describe('version 1.1.0, which knows no layouts, finds no document of a generation with a layout', () => {
  const stores = (live: object, documents: Readonly<Record<string, object>>) => {
    const { state, steps } = control(live)
    const request = sending(async asked => {
      const [, id] = /\/_doc\/generation%3A(.*)$/.exec(asked.path) ?? []
      if (id === undefined) return steps.request(asked)
      const body = documents[decodeURIComponent(id)]
      return body === undefined
        ? { status: 404, body: { found: false } }
        : { status: 200, body: { _source: { kind: 'generation', body } } }
    })
    const named = (): string[] => {
      const { generation, kept = [] } = state.body as { generation: string; kept?: string[] }
      return [generation, ...kept]
    }
    return { named, steps: { ...steps, request }, documents }
  }
  const documents = { g1: { generation: 'g1' }, g2: { generation: 'g2', layout: 3 } }
  const swapTo =
    (live: string) =>
    (now: Generations): Generations => ({ ...now, live })

  test('after the swap, and this version reads its plain name', async () => {
    const { named, steps } = stores({ generation: 'g1', kept: ['g1', 'g2'] }, documents)
    await changeGenerations(steps, swapTo('g2'))
    const [live, ...kept] = named()
    expect([live, kept]).toEqual([kept[1], ['g1', kept[1]]])
    expect(Object.keys(documents)).not.toContain(live)
    expect(await readGenerations(steps)).toMatchObject({ live: 'g2', active: ['g1', 'g2'] })
  })

  test('but it finds one that it made, after a swap back', async () => {
    const { named, steps } = stores({ generation: 'g1', kept: ['g1', 'g2'] }, documents)
    await changeGenerations(steps, swapTo('g2'))
    await changeGenerations(steps, swapTo('g1'))
    expect(named().slice(0, 2)).toEqual(['g1', 'g1'])
  })

  test('but until the next swap it finds one that an older program made live, or kept up', async () => {
    const { named, steps } = stores({ generation: 'g2', kept: ['g2', 'g3'] }, { ...documents, g3: { layout: 3 } })
    expect(await readGenerations(steps)).toMatchObject({ live: 'g2', active: ['g2', 'g3'] })
    await changeGenerations(steps, keep('g1'))
    expect(named()).toEqual(['g2', 'g2', 'g3', 'g1'])
    await changeGenerations(steps, swapTo('g3'))
    const [live, ...kept] = named()
    expect(live).not.toBe('g3')
    expect(kept).toEqual(['g2', live, 'g1'])
  })

  test('nor one that is kept up beside its own: it cannot swap to it', async () => {
    const { named, steps } = stores({ generation: 'g1', kept: ['g1'] }, documents)
    await changeGenerations(steps, keep('g2'))
    expect(named().slice(0, 2)).toEqual(['g1', 'g1'])
    expect(named()[2]).not.toBe('g2')
    expect(await readGenerations(steps)).toMatchObject({ live: 'g1', active: ['g1', 'g2'] })
  })

  test('nor after another change of the live document', async () => {
    const { named, steps } = stores({ generation: 'g1', kept: ['g1', 'g2'] }, documents)
    await changeGenerations(steps, swapTo('g2'))
    const before = named()
    await changeGenerations(steps, keep('g3'))
    expect(named()).toEqual([...before, 'g3'])
  })
})

test('a name that an older program copied from the live document to another field is read as the plain name', async () => {
  const stored = storedNameOf({ generation: 'g2', layout: 3 })
  const note: Comparison = { found: 'equal', positions: [4], rules_versions: [1, 1], run: 1 }
  const named = (name: string) => ({
    generation: name,
    kept: [name],
    building: name,
    previous: name,
    verified: { g3: name, [name]: 'g4' },
    compared: { [`g1 ${name}`]: note, [`${name} g3`]: note },
    alone: { [name]: [4] },
  })
  const read = async (name: string) => readGenerations(control(named(name)).steps)
  expect(await read(stored)).toEqual(await read('g2'))
})

describe('after a swap', () => {
  const documents = (live: object, position: number, serve_from = 0) => {
    const { state, between, steps } = control(live)
    const request = sending(async asked => {
      if (asked.path.includes('generation%3Ag1')) return { status: 200, body: { _source: { body: { partitions: 2 } } } }
      if (asked.path === '/_bulk') return primariesAnswer(asked, () => ({ body: { position, serve_from } }))
      return steps.request(asked)
    })
    return { state, between, steps: { ...steps, request } }
  }
  const swapped = { generation: 'g2', previous: 'g1', floor: null }

  test('the floor is written: the position up to which readers may have seen the previous generation', async () => {
    const { state, steps } = documents(swapped, 5)
    await finishSwap(steps)
    expect(state.body).toMatchObject({ floor: [5, 5], alone: { g2: [5, 5] } })
  })

  test('while the previous generation reads again after a restore, the floor is the position before the restore', async () => {
    const { state, steps } = documents(swapped, 2, 5)
    await finishSwap(steps)
    expect(state.body).toMatchObject({ floor: [5, 5], alone: { g2: [5, 5] } })
  })

  test('a floor that a drop wrote meanwhile is kept; without it, a missing generation stops', async () => {
    const { state, steps } = documents(swapped, 5)
    const request = sending(async asked => {
      if (!asked.path.includes('generation%3Ag1')) return steps.request(asked)
      state.body = { ...state.body, previous: null, floor: [5, 5] }
      return { status: 404, body: { found: false } }
    })
    await finishSwap({ ...steps, request })
    const gone = sending(async asked =>
      asked.path.includes('generation%3Ag1') ? { status: 404, body: { found: false } } : steps.request(asked),
    )
    state.body = swapped
    await expect(finishSwap({ ...steps, request: gone })).rejects.toThrow(
      expect.objectContaining({ code: 'index_missing' }),
    )
  })

  test('the first floor wins, and the positions of the first swap stay', async () => {
    const { state, between, steps } = documents({ ...swapped, alone: { g2: [3, 3] } }, 5)
    between.push(() => {
      state.body = { ...swapped, floor: [4, 4], alone: { g2: [3, 3] } }
      state.seqNo++
    })
    await finishSwap(steps)
    expect(state.body).toMatchObject({ floor: [4, 4], alone: { g2: [3, 3] } })
    state.body = { ...swapped, alone: { g2: [3, 3] } }
    await finishSwap(steps)
    expect(state.body).toMatchObject({ floor: [5, 5], alone: { g2: [3, 3] } })
  })
})
