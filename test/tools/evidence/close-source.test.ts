/** Whether a close is of one projection from its beginning to its end. */
import { expect, test } from 'vitest'
import type { Stream } from '../../../schemas/events.ts'
import type { GenerationDocument, PositionDocument } from '../../../schemas/stored/documents.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { assertSameProjection } from '../../../tools/evidence/close-source.ts'
import type { LiveProjection } from '../../../tools/live.ts'

const positionOf = (more: object): PositionDocument['body'] => {
  return { position: 9, last: null, at: 0, time: 0, serve_from: 0, ...more }
}
/** @param identity more of the document of this stream @param position more of its last position */
const projectionWith = (stream: Stream, identity: object, position: object): LiveProjection => {
  const streamOf = (name: Stream) => {
    const source = { generation: name, topic: name, cluster_id: 'c', partitions: 2, rules_version: 2 }
    const ids = { indices: { a: 'one', b: 'two' }, shards: { a: 's' } }
    const body = { ...source, ...ids, ...(name === stream && identity) } as GenerationDocument['body']
    return { stream: name, identity: body, layout: layoutOf('p', body) }
  }
  const positionsOf = (name: Stream) => [positionOf({}), positionOf(name === stream ? position : {})]
  return {
    live: { events: streamOf('events'), 'api-keys': streamOf('api-keys') },
    positions: { events: positionsOf('events'), 'api-keys': positionsOf('api-keys') },
  }
}

test.for(['events', 'api-keys'] as const)(
  'a close is refused if the indices, the shards or the positions of %s were taken over meanwhile',
  stream => {
    const before = projectionWith(stream, {}, {})
    const compared = (identity: object, position: object = {}) =>
      assertSameProjection(before, projectionWith(stream, identity, position))
    compared({ indices: { b: 'two', a: 'one' } }, { position: 12, time: 7 })
    const refusal = `${stream} was read again meanwhile, after adopt or rewind, or ids of its shards were recorded`
    expect(() => compared({ indices: { a: 'restored', b: 'two' } })).toThrow(refusal)
    expect(() => compared({ shards: { a: 'another' } })).toThrow(refusal)
    expect(() => compared({}, { taken_back: 1 })).toThrow(refusal)
  },
)
