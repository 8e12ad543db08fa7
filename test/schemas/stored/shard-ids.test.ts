import { describe, expect, test } from 'vitest'
import {
  lostAmong,
  missingAmong,
  recordableIds,
  shardCountsRequest,
  shardIdsIn,
  shardIdsRequest,
} from '../../../schemas/stored/shard-ids.ts'

const copy = (primary: boolean, id?: string) => ({
  routing: { primary },
  ...(id !== undefined && { commit: { user_data: { history_uuid: id } } }),
})

describe('the ids of shards', () => {
  test('are those of the primaries of the named indices', () => {
    const shards = { 0: [copy(false, 'replica'), copy(true, 'x')], 1: [copy(true, 'y')] }
    const answer = { indices: { a: { shards }, 'of-others': { shards } } }
    expect(shardIdsIn(answer, ['a', 'missing'])).toEqual({ 'a/0': 'x', 'a/1': 'y' })
  })

  test('are asked for also of an index that somebody has hidden', () => {
    for (const { query } of [shardIdsRequest('p-*'), shardCountsRequest('p')])
      expect(query).toHaveProperty('expand_wildcards', 'open,hidden')
  })

  test('leave out a shard that is not assigned or still starts', () => {
    const shards = { 0: [copy(true)], 1: [copy(false, 'y')], 2: [] }
    expect(shardIdsIn({ indices: { a: { shards } } }, ['a'])).toEqual({})
    expect(shardIdsIn({}, ['a'])).toEqual({})
  })

  test('are recorded only once each shard of each index has one', () => {
    const counts = (a: string, b: string) => ({
      a: { settings: { index: { number_of_shards: a } } },
      b: { settings: { index: { number_of_shards: b } } },
    })
    const ids = { 'a/0': 'x', 'b/0': 'y', 'b/1': 'z' }
    expect(recordableIds(ids, counts('1', '2'), ['a', 'b'])).toBe(ids)
    expect(recordableIds(ids, counts('2', '2'), ['a', 'b'])).toBeUndefined()
    expect(recordableIds(ids, counts('1', '12'), ['a', 'b'])).toBeUndefined()
    expect(recordableIds(ids, counts('1', '2'), ['a', 'c'])).toBeUndefined()
  })

  test('tell a shard that is another one than recorded, and none without both ids', () => {
    const recorded = { 'a/0': 'x', 'a/10': 'y' }
    expect(lostAmong(recorded, { 'a/0': 'x', 'a/10': 'other' })).toBe('a/10')
    expect(lostAmong(recorded, { 'a/0': 'x', 'b/0': 'z' })).toBeUndefined()
    expect(lostAmong(undefined, recorded)).toBeUndefined()
    expect(lostAmong(recorded, undefined)).toBeUndefined()
    expect(lostAmong(recorded, { 'a/10': 'other' }, index => index !== 'a')).toBeUndefined()
  })
  test('tell the recorded shards that have none now', () => {
    const recorded = { 'a/0': 'x', 'a/10': 'y', 'b/0': 'z' }
    expect(missingAmong(recorded, { 'a/0': 'x' })).toEqual(['a/10', 'b/0'])
    expect(missingAmong(recorded, { 'a/0': 'x' }, index => index === 'a')).toEqual(['a/10'])
    expect(missingAmong(undefined, recorded)).toEqual([])
  })
})
