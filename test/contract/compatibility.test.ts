/** Clients and publishers of the last release go on unchanged. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { breaksPublishers, breaksReaders, currentDocuments, type Documents } from './compatibility.ts'

const released: Documents = JSON.parse(readFileSync(join(import.meta.dirname, 'released.json'), 'utf8'))

test('nothing breaks a client of the last release', () => {
  expect(breaksReaders(released, currentDocuments())).toEqual([])
})

test('nothing breaks a publisher of the last release', () => {
  expect(breaksPublishers(released, currentDocuments())).toEqual([])
})

/** The released documents with one change. The texts name the place in their JSON. */
const changed = (text: string, by: string): Documents => {
  const json = JSON.stringify(released)
  expect(json).toContain(text)
  return JSON.parse(json.replace(text, by))
}

describe('a difference that breaks a client is found', () => {
  test.each([
    ['a path that is gone', '"/payouts":{', '"/payout":{', '/payouts is gone'],
    ['a parameter that is gone', '"name":"rep_id"', '"name":"rep"', '/payouts: rep_id changed or is gone'],
    [
      'a parameter that is needed',
      '"name":"limit","in":"query",',
      '"name":"size","in":"query","required":true,',
      '/payouts: size is needed now',
    ],
    ['a field that is gone', '"earned_amount":{', '"earned":{', 'Payout.earned_amount is gone'],
    [
      'a field of another type',
      '"has_more":{"type":"boolean"',
      '"has_more":{"type":"string"',
      'RepList.has_more has another form',
    ],
    [
      'a field that may be absent',
      '"required":["id","name","email","status"',
      '"required":["id","name","status"',
      'Rep.email is no longer always there',
    ],
    ['a kind of change that is gone', '{"$ref":"#/components/schemas/RepChange"},', '', 'Change has other kinds'],
  ])('%s', (_, text, by, found) => {
    expect(breaksReaders(released, changed(text, by))).toContain(found)
  })
})

describe('a difference that breaks a publisher is found', () => {
  test.each([
    [
      'an event type that is gone',
      '"commission.rep.recorded.v1":{',
      '"commission.rep.recorded.v2":{',
      'the event commission.rep.recorded.v1 is gone',
    ],
    [
      'a new field that is needed',
      '"required":["org_id","id","rep_id","period_id","payout_id"',
      '"required":["team","org_id","id","rep_id","period_id","payout_id"',
      'commission.payroll.recorded.v1.team is no longer optional',
    ],
    [
      'a permission that is gone',
      '"items":{"type":"string","const":"read"}',
      '"items":{"anyOf":[{"type":"string","const":"reps:read"}]}',
      'commission.api_key.created.v1.permissions has another form',
    ],
    [
      'a category that was taken and is no longer',
      '{"type":"string","const":"adjusted"}',
      '{"type":"string","const":"adjusted"},{"type":"string","const":"corrected"}',
      'commission.payout.calculated.v1.line_items has another form',
    ],
    ['a narrower pattern', '{1,40})?$', '{1,2})?$', 'commission.payout.calculated.v1.net_amount has another form'],
  ])('%s', (_, text, by, found) => {
    const at = JSON.stringify(released.events)
    expect(at).toContain(text)
    const events = JSON.parse(at.replaceAll(text, by))
    expect(breaksPublishers(released, { ...released, events })).toContain(found)
  })
})

test('a new path, an optional parameter, a new field of an answer and a new event type break nobody', () => {
  const now = currentDocuments()
  const { Rep } = now.schemas
  const more: Documents = {
    ...now,
    paths: { ...now.paths, '/teams': { get: { parameters: [] } } },
    schemas: { ...now.schemas, Rep: { ...Rep, properties: { ...Rep?.properties, team: { type: 'string' } } } },
    events: { ...now.events, 'commission.team.recorded.v1': {} },
  }
  expect([breaksReaders(released, more), breaksPublishers(released, more)]).toEqual([[], []])
})
