import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StopError } from '../../../../core/runtime/failures.ts'
import type { Request } from '../../../../core/store/elasticsearch/client.ts'
import {
  createPublishedTimes,
  type FurtherPosition,
  openPublishedPosition,
  type PublishedState,
} from '../../../../core/store/positions/publish.ts'
import { sending } from '../../../support/answering.ts'
import { storedDocument } from '../../projection/flow/stored-document.ts'

const start: PublishedState = { position: 0, last: null, at: 0, time: 0, serve_from: 0 }
const lastAt = (offset: number) => ({ offset, sha256: `${offset}` })
const at = (position: number): FurtherPosition => ({ position, last: lastAt(position - 1), at: position * 10 })

/** The document of one position, with the sequence numbers of Elasticsearch. */
const setUp = async (stored: PublishedState = start) => {
  const requests: Request[] = []
  const history: PublishedState[] = []
  let document: PublishedState | undefined = stored
  let seqNo = 5
  /** Outcomes of the next writes: another owner is first, or the response is lost. By default a write succeeds. */
  const next: ('lost' | { before: PublishedState })[] = []
  const store = (body: PublishedState): void => {
    document = body
    seqNo++
    history.push(body)
  }
  const times = storedDocument()
  const request = sending(async asked => {
    if (asked.path.includes('times')) return times.answer(asked)
    requests.push(asked)
    if (document === undefined) return { status: 404, body: { found: false } }
    if (asked.method === 'GET') {
      return { status: 200, body: { _seq_no: seqNo, _primary_term: 2, _source: { kind: 'position', body: document } } }
    }
    const event = next.shift()
    if (typeof event === 'object') store(event.before)
    if (asked.query?.if_seq_no !== seqNo || asked.query.if_primary_term !== 2) return { status: 409, body: {} }
    store((asked.body as { body: PublishedState }).body)
    // The client retries a request until it gets a response: after a lost one, the second attempt meets a conflict.
    if (event === 'lost') return { status: 409, body: {} }
    return { status: 200, body: { _seq_no: seqNo, _primary_term: 2 } }
  })
  const ofGeneration = { index: 'test-control', generation: 'g1' }
  const owner = () =>
    openPublishedPosition(3, {
      ...ofGeneration,
      request,
      replace: request,
      times: createPublishedTimes('test-control', 'g1', request),
    })
  const position = owner()
  return {
    owner,
    times: () => times.body()?.partitions,
    published: await position,
    requests,
    history,
    next,
    replace: store,
    document: () => document,
    remove: () => {
      document = undefined
    },
  }
}

describe('a position', () => {
  test('is read from the document of its generation and partition', async () => {
    const { published, requests } = await setUp({ ...start, position: 42 })
    expect(requests).toEqual([{ method: 'GET', path: '/test-control/_doc/position%3Ag1%3A3' }])
    expect(published.current()).toEqual({ ...start, position: 42 })
  })

  test('that is missing stops the projector: it must not look like an empty partition', async () => {
    const request = sending(async () => ({ status: 404, body: { found: false } }))
    const times = createPublishedTimes('test-control', 'g1', request)
    const reading = openPublishedPosition(0, {
      index: 'test-control',
      generation: 'g1',
      request,
      replace: request,
      times,
    })
    await expect(reading).rejects.toThrow(expect.objectContaining({ code: 'index_missing' }))
  })

  test('that disappears stops the next publication', async () => {
    const { published, remove } = await setUp()
    remove()
    const error = await published.advance(at(1)).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(StopError)
  })

  test('moves forward with its last record and time, and is replaced only in the version last seen', async () => {
    const { published, requests, document } = await setUp()
    await published.advance({ ...at(7), time: 100 })
    expect(requests[1]).toEqual({
      method: 'PUT',
      path: '/test-control/_doc/position%3Ag1%3A3',
      query: { if_seq_no: 5, if_primary_term: 2 },
      body: { kind: 'position', body: { position: 7, last: lastAt(6), at: 70, time: 100, serve_from: 0 } },
    })
    await published.advance({ ...at(8), time: 200 })
    expect(requests[2]?.query).toEqual({ if_seq_no: 6, if_primary_term: 2 })
    expect(document()).toEqual(published.current())
    expect(published.current()).toEqual({ position: 8, last: lastAt(7), at: 80, time: 200, serve_from: 0 })
  })

  test('that stands still has its time in the document of all times, and keeps it when it moves on', async () => {
    const { published, requests, times, document } = await setUp()
    await published.advance({ ...at(7), time: 100 })
    await published.advanceTime(200)
    expect(requests).toHaveLength(2)
    expect(times()).toEqual({ 3: { position: 7, time: 200 } })
    expect(published.current()).toEqual({ ...document(), time: 200 })
    await published.advance(at(9))
    expect(document()).toEqual({ ...start, ...at(9), time: 200 })
  })

  test('is written only if it, its record or its time moves forward', async () => {
    const { published, requests } = await setUp({ ...start, ...at(7), time: 100 })
    await published.advance({ ...at(7), time: 100 })
    await published.advance(at(7))
    await published.advance({ ...at(3), time: 50 })
    expect(requests).toHaveLength(1)
  })

  test('never goes back; neither do its time and its last record', async () => {
    const { published, document } = await setUp()
    await published.advance({ ...at(7), time: 100 })
    await published.advance({ ...at(5), time: 300 })
    expect(document()).toEqual({ position: 7, last: lastAt(6), at: 70, time: 300, serve_from: 0 })
    await published.advance({ ...at(9), time: 200 })
    expect(document()).toEqual({ position: 9, last: lastAt(8), at: 90, time: 300, serve_from: 0 })
  })
})

describe('a published time that is taken back', () => {
  test('is replaced by an earlier one, and that is counted', async () => {
    const { published, document } = await setUp({ ...start, ...at(7), time: 9_000 })
    await published.advance({ ...at(8), time: 500 }, true)
    expect(document()).toEqual({ ...start, ...at(8), time: 500, taken_back: 1 })
    await published.advance({ ...at(9), time: 600 })
    expect(document()).toEqual({ ...start, ...at(9), time: 600, taken_back: 1 })
    await published.advance({ ...at(10), time: 100 }, true)
    expect(document()).toEqual({ ...start, ...at(10), time: 100, taken_back: 2 })
  })

  test('of a position that stands still is replaced in the document of all times', async () => {
    const { published, document, times, owner } = await setUp({ ...start, ...at(7), time: 9_000 })
    await published.advanceTime(500, true)
    expect(times()).toEqual({ 3: { position: 7, time: 500, taken_back: 1 } })
    expect(published.current()).toEqual({ ...start, ...at(7), time: 500, taken_back: 1 })
    expect((await owner()).current()).toEqual(published.current())
    await published.advance(at(8))
    expect(document()).toEqual({ ...start, ...at(8), time: 500, taken_back: 1 })
  })

  test('is not restored by another owner that still holds it', async () => {
    const { published, next, document } = await setUp({ ...start, ...at(7), time: 9_000 })
    next.push({ before: { ...start, ...at(7), time: 500, taken_back: 1 } as PublishedState })
    await published.advance({ ...at(9), time: 9_100 })
    expect(document()).toEqual({ ...start, ...at(9), time: 500, taken_back: 1 })
    await published.advance({ ...at(10), time: 700 })
    expect(document()?.time).toBe(700)
  })

  test('is taken back once by two owners at the same time, to the later of their times', async () => {
    const { published, next, document } = await setUp({ ...start, time: 9_000 })
    next.push({ before: { ...start, time: 500, taken_back: 1 } })
    await published.advance({ ...at(1), time: 510 }, true)
    expect(document()).toEqual({ ...start, ...at(1), time: 510, taken_back: 1 })
  })
})

describe('if another owner writes first', () => {
  test('its position and time are merged with ours: the further position with its record, the later time', async () => {
    const { published, next, document, replace } = await setUp()
    next.push({ before: { position: 20, last: lastAt(19), at: 200, time: 50, serve_from: 3 } })
    await published.advance({ ...at(10), time: 100 })
    expect(document()).toEqual({ position: 20, last: lastAt(19), at: 200, time: 100, serve_from: 3 })
    expect(published.current()).toEqual(document())
    replace({ ...start, ...at(50) } as PublishedState)
    await published.readAgain()
    expect(published.current().position).toBe(50)
  })

  test('and is behind us, our position wins and its later time stays', async () => {
    const { published, next, document } = await setUp()
    next.push({ before: { position: 4, last: lastAt(3), at: 40, time: 500, serve_from: 0 } })
    await published.advance({ ...at(10), time: 100 })
    expect(document()).toEqual({ position: 10, last: lastAt(9), at: 100, time: 500, serve_from: 0 })
  })

  test('with a position behind our last one, the index is another copy: the position must not skip what it lacks', async () => {
    const { published, next, requests } = await setUp({ ...start, ...at(100) } as PublishedState)
    next.push({ before: { position: 40, last: lastAt(39), at: 400, time: 0, serve_from: 0 } })
    await expect(published.advance(at(101))).rejects.toMatchObject({ code: 'position_went_back' })
    expect(requests.map(({ method }) => method)).toEqual(['GET', 'PUT', 'GET'])
    await expect(published.readAgain()).rejects.toMatchObject({ code: 'position_went_back' })
  })

  test('and gave it another source, this owner stops: it reads the old one', async () => {
    const { published, next, history } = await setUp({ ...start, ...at(100) } as PublishedState)
    const adopted = { ...start, ...at(100), source: 'another cluster' } as PublishedState
    next.push({ before: adopted })
    await expect(published.advance(at(101))).rejects.toMatchObject({ code: 'source_changed' })
    expect(history).toEqual([adopted])
  })

  test('and removes documents that no log has, this owner stops; none opens the partition meanwhile', async () => {
    const removing = { ...start, ...at(100), removing: true } as PublishedState
    const { published, next, history } = await setUp({ ...start, ...at(100) } as PublishedState)
    next.push({ before: removing })
    await expect(published.advance(at(101))).rejects.toMatchObject({ code: 'position_went_back' })
    expect(history).toEqual([removing])
    await expect(setUp(removing)).rejects.toThrow('documents of g1 are being removed: let adopt or rewind end')
  })

  test('its source stays with each later position', async () => {
    const { published, document } = await setUp({ ...start, ...at(100), source: 'another cluster' } as PublishedState)
    await published.advance(at(101))
    expect(document()).toMatchObject({ ...at(101), source: 'another cluster' })
  })

  test('and has written everything already, nothing more is written', async () => {
    const { published, next, requests } = await setUp()
    next.push({ before: { ...start, ...at(20), time: 500 } as PublishedState })
    await published.advance({ ...at(10), time: 100 })
    expect(requests.map(({ method }) => method)).toEqual(['GET', 'PUT', 'GET'])
    expect(published.current().position).toBe(20)
  })

  test('many times, our position is written in the end', async () => {
    const { published, next, document } = await setUp()
    for (let other = 1; other <= 9; other++) next.push({ before: { ...start, ...at(other) } as PublishedState })
    await published.advance(at(10))
    expect(document()?.position).toBe(10)
  })
})

test('after a lost response our own write is recognized, and not repeated', async () => {
  const { published, next, requests, history } = await setUp()
  next.push('lost')
  await published.advance(at(10))
  expect(requests.map(({ method }) => method)).toEqual(['GET', 'PUT', 'GET'])
  expect(history).toHaveLength(1)
  await published.advance(at(11))
  expect(history.map(({ position }) => position)).toEqual([10, 11])
})

test('concurrent publications are written one after the other, and the latest one is complete', async () => {
  const { published, requests, document } = await setUp()
  await Promise.all([
    published.advance(at(1)),
    published.advance({ ...at(2), time: 9 }),
    published.advance(at(2)),
    published.advance(at(3)),
  ])
  expect(document()).toEqual({ position: 3, last: lastAt(2), at: 30, time: 9, serve_from: 0 })
  expect(requests.filter(({ method }) => method === 'PUT')).toHaveLength(1)
})

test('two owners, in any order and with lost responses, never move anything back and agree in the end', async () => {
  const further = fc.record({ position: fc.nat(30), time: fc.nat(30), ours: fc.boolean(), lost: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(further, { maxLength: 30 }), async all => {
      const { published, history, next, replace, document } = await setUp()
      for (const { position, time, ours, lost } of all) {
        const stored = document() ?? start
        const theirs = position > stored.position ? { ...stored, ...at(position) } : stored
        if (ours) {
          if (lost) next.push('lost')
          await published.advance({ ...at(position), time })
        } else replace({ ...theirs, time: Math.max(stored.time, time) })
        next.length = 0
      }
      const highest = (field: 'position' | 'time') => Math.max(0, ...all.map(one => one[field]))
      expect(document()).toMatchObject({ position: highest('position'), time: highest('time') })
      for (const [place, after] of history.entries()) {
        const before = history[place - 1] ?? start
        expect([after.position >= before.position, after.time >= before.time]).toEqual([true, true])
        expect(after.at).toBe(after.position * 10)
      }
    }),
  )
})

const setUpTimes = () => {
  const stored = storedDocument()
  return { ...stored, times: () => createPublishedTimes('control', 'g1', sending(stored.answer)) }
}

test('the times of all partitions are written together, with one write', async () => {
  const { times, writes } = setUpTimes()
  const published = times()
  await Promise.all([0, 1, 2].map(partition => published.advance(partition, { position: 5, time: 100 })))
  expect(writes).toEqual([
    {
      partitions: {
        0: { position: 5, time: 100 },
        1: { position: 5, time: 100 },
        2: { position: 5, time: 100 },
      },
    },
  ])
})

test('a time that is not later is not written', async () => {
  const { times, writes } = setUpTimes()
  const published = times()
  await published.advance(0, { position: 5, time: 100 })
  await published.advance(0, { position: 6, time: 90 })
  expect(writes).toHaveLength(1)
  expect(published.of(0)).toEqual({ position: 5, time: 100 })
})

test('the first write of two processes creates the document once, and keeps the times of both', async () => {
  const { times, body } = setUpTimes()
  const [one, other] = [times(), times()]
  await Promise.all([one.advance(0, { position: 1, time: 10 }), other.advance(1, { position: 2, time: 20 })])
  expect(body()).toEqual({ partitions: { 0: { position: 1, time: 10 }, 1: { position: 2, time: 20 } } })
})

test('a time is stored before it counts as published', async () => {
  const { times } = setUpTimes()
  const published = times()
  const writing = published.advance(0, { position: 1, time: 10 })
  expect(published.of(0)).toBeUndefined()
  await writing
  expect(published.of(0)).toEqual({ position: 1, time: 10 })
})

test('the document of all times that disappears stops the projector: its generation was dropped', async () => {
  const { times, remove } = setUpTimes()
  const published = times()
  await published.advance(0, { position: 1, time: 10 })
  remove()
  await expect(published.advance(0, { position: 1, time: 20 })).rejects.toMatchObject({ code: 'index_missing' })
})

test('a read that began before the first write does not take its answer for a lost document', async () => {
  const { answer } = storedDocument()
  const reading = Promise.withResolvers<void>()
  const slow = sending(async request => {
    const answered = await answer(request)
    if (request.method === 'GET') await reading.promise
    return answered
  })
  const published = createPublishedTimes('control', 'g1', slow)
  const read = published.read()
  await published.advance(0, { position: 1, time: 10 })
  reading.resolve()
  await read
  expect(published.of(0)).toEqual({ position: 1, time: 10 })
})

test('after a lost response our own write of a time is recognized, and not repeated', async () => {
  const { times, writes, next } = setUpTimes()
  next.push('lost')
  await times().advance(0, { position: 1, time: 10 })
  expect(writes).toHaveLength(1)
})

test('processes in any order, with conflicts and lost responses, never move a time back and agree in the end', async () => {
  const step = fc.record({
    process: fc.nat(2),
    partition: fc.nat(3),
    time: fc.nat(50),
    takenBack: fc.nat(1),
    isLost: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
      const { times, writes, next, body } = setUpTimes()
      const processes = [times(), times(), times()]
      const advancing = steps.map(({ process, partition, time, takenBack, isLost }) => {
        if (isLost) next.push('lost')
        const taken = takenBack > 0 ? { taken_back: takenBack } : {}
        return processes[process]?.advance(partition, { position: 1, time, ...taken })
      })
      await Promise.all(advancing)
      const rank = (entry: { time: number; taken_back?: number } | undefined): number =>
        entry === undefined ? -1 : (entry.taken_back ?? 0) * 1_000 + entry.time
      for (const partition of [0, 1, 2, 3]) {
        const ranks = writes.map(({ partitions }) => rank(partitions[partition]))
        expect(ranks).toEqual(ranks.toSorted((a, b) => a - b))
        const wanted = steps.filter(one => one.partition === partition)
        const highest = Math.max(-1, ...wanted.map(({ time, takenBack }) => takenBack * 1_000 + time))
        expect(rank(body()?.partitions[partition])).toBe(highest)
      }
    }),
  )
})
