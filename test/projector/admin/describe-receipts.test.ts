import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { receiptsOpenapi } from '../../../projector/admin/describe-receipts.ts'
import { describedReceipt } from '../../support/described-receipts.ts'

test('the document of receipts is valid OpenAPI 3.1', async () => {
  const result = await new Validator().validate(JSON.parse(JSON.stringify(receiptsOpenapi)))
  expect(result).toEqual({ valid: true })
})

const place = { topic: 'commission.events', partition: 0 }
const run = {
  ...place,
  from: 0,
  to: 3,
  published: 3,
  applied: 2,
  without_effect: 1,
  parked: 1,
  not_yet: 0,
  parked_records: [{ offset: 2, code: 'rep_unknown' }],
  has_more: false,
}

test.each([
  ['/receipts/commission.events/0/3', 200, { state: 'published', ...place, offset: 3 }],
  ['/receipts/commission.events/0/3', 200, { state: 'parked', code: 'data_invalid', detail: 'x', ...place, offset: 3 }],
  ['/receipts/commission.events/0?from=0&to=3', 200, run],
  ['/receipts/commission.events/0?from=0&to=3', 200, { ...run, applied: null, without_effect: null }],
  ['/receipts/other/0/3', 404, { error: 'topic: expected commission.events, got "other"' }],
] as const)('it describes an answer to %s with %i', (path, status, body) => {
  expect(describedReceipt(path, status, body)).toEqual([])
})

test.each([
  ['a state of its own', '/receipts/commission.events/0/3', 200, { state: 'lost', ...place, offset: 3 }],
  [
    'a field that is not described',
    '/receipts/commission.events/0/3',
    200,
    { state: 'published', ...place, offset: 3, at: 1 },
  ],
  ['a missing number', '/receipts/commission.events/0?from=0&to=3', 200, { ...run, parked: undefined }],
  ['a status that is not described', '/receipts/commission.events/0/3', 418, {}],
] as const)('the check of answers finds %s', (_, path, status, body) => {
  expect(describedReceipt(path, status, body)).not.toEqual([])
})

test('says whom to ask, that no key is needed, and what each tag means: linters of OpenAPI demand it', () => {
  const { info, security, tags, paths } = receiptsOpenapi
  expect(info.contact.name).not.toBe('')
  expect(security).toEqual([])
  for (const { description } of tags) expect(description).not.toBe('')
  const named = tags.map(({ name }) => name)
  for (const { get } of Object.values(paths)) expect(named).toEqual(expect.arrayContaining([...get.tags]))
})
