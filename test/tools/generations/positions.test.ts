/** Published positions, as commands read them. The times of a projection at rest are in a document of their own. */
import { expect, test } from 'vitest'
import type { PositionDocument, TimesDocument } from '../../../schemas/stored/documents.ts'
import type { CommandContext } from '../../../tools/context.ts'
import { positionDocumentsOf } from '../../../tools/generations/generations.ts'
import { sending } from '../../support/answering.ts'

const position = (offset: number, time: number): PositionDocument => ({
  kind: 'position',
  body: { position: offset, last: null, at: 0, time, serve_from: 0 },
})
const times = (partitions: TimesDocument['body']['partitions']): TimesDocument => ({
  kind: 'times',
  body: { partitions },
})

const timesRead = async (documents: Readonly<Record<string, PositionDocument | TimesDocument>>) => {
  const send = sending(async ({ body }) => {
    const { docs } = body as { docs: { _id: string }[] }
    const found = docs.map(({ _id }) => ({ _id, found: _id in documents, _version: 1, _source: documents[_id] }))
    return { status: 200, body: { docs: found } }
  })
  const context = { send, prefix: 'c' } as unknown as CommandContext
  const read = await positionDocumentsOf({ generation: 'g1', partitions: 2 }, context)
  return read.map(({ position: offset, time }) => [offset, time])
}

test('the times of a projection at rest are those of the document of times', async () => {
  const positions = { 'position:g1:0': position(5, 1_000), 'position:g1:1': position(0, 0) }
  expect(await timesRead(positions)).toEqual([
    [5, 1_000],
    [0, 0],
  ])
  const atRest = times({ 0: { position: 5, time: 9_000 }, 1: { position: 0, time: 8_000 } })
  expect(await timesRead({ ...positions, 'times:g1': atRest })).toEqual([
    [5, 9_000],
    [0, 8_000],
  ])
  // The position was stored after the time, or has not reached it: then its own time counts.
  const others = times({ 0: { position: 4, time: 500 }, 1: { position: 7, time: 8_000 } })
  expect(await timesRead({ ...positions, 'times:g1': others })).toEqual([
    [5, 1_000],
    [0, 0],
  ])
})

test('a missing position is told with its partition', async () => {
  await expect(timesRead({ 'position:g1:0': position(5, 1_000), 'times:g1': times({}) })).rejects.toThrow(
    'generation g1 has no position for partition 1',
  )
})
