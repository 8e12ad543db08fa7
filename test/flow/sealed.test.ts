/** Sealed texts on their way from Kafka to a client, and a person who is forgotten. */
import { beforeAll, describe, expect, test } from 'vitest'
import { type Client, createClient } from '../support/client.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import {
  keyCreated,
  newKeyText,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { type Api, type Projector, startApi, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { createKeys, seal } from '../support/seal.ts'
import { everythingProjected } from '../support/stored.ts'
import type { Topics } from '../support/topics.ts'

const file = fileScope()
const org = 'org_a'
const other = 'org_b'
const keys = createKeys(file, ['k1', 'k2', 'k3', 'kb'])
const nameOf = (rep: string, text: string, keyId: string, of = org) =>
  seal(text, { org: of, record: rep, field: 'name', keyId })
const emailOf = (rep: string, text: string, keyId: string) => seal(text, { org, record: rep, field: 'email', keyId })
const labelOf = (id: string, text: string, keyId: string) =>
  seal(text, { org, record: id, field: 'destination.label', keyId })

let topics: Topics
let prefix: string
let projector: Projector
let api: Api
let client: Client
let otherClient: Client

beforeAll(async () => {
  const [text, otherText] = [newKeyText(), newKeyText()]
  const stolen = nameOf('rep_1', 'Canary One', 'k1')
  const records = [
    keyCreated({ org_id: org, text }),
    keyCreated({ org_id: other, text: otherText }),
    periodRecorded({ org_id: org }),
    repRecorded({ org_id: org, id: 'rep_1', name: nameOf('rep_1', 'Canary Old', 'k1') }),
    repRecorded({ org_id: org, id: 'rep_1', name: stolen, email: emailOf('rep_1', 'one@example.com', 'k1') }),
    repRecorded({ org_id: org, id: 'rep_2', name: nameOf('rep_2', 'Canary Two', 'k2') }),
    repRecorded({ org_id: org, id: 'rep_3', name: 'Canary Three' }),
    payoutCalculated({ org_id: org }),
    payrollRecorded({
      org_id: org,
      destination: { type: 'bank_account', label: labelOf('payroll_1', 'Canary Bank', 'k1') },
    }),
    payrollVoided({ org_id: org }),
    payrollRecorded({ org_id: org, id: 'payroll_3', destination: { type: 'other', label: 'sealed:v1:k1:cut' } }),
    // Copied from the other organization, and sealed with a key that nobody has.
    repRecorded({ org_id: other, id: 'rep_1', name: stolen }),
    repRecorded({ org_id: other, id: 'rep_2', name: nameOf('rep_2', 'Canary B', 'kb', other) }),
  ]
  ;({ topics, prefix, projector } = await startProjection(file, records, { partitions: 1 }))
  api = await startApi(file, prefix, { settings: { SEAL_KEYS_DIR: keys.directory } })
  client = createClient([api], text)
  otherClient = createClient([api], otherText)
})

const dataOf = async (path: string, from = client) => JSON.parse((await from.askInTime(path)).text).data
const subjects = (...args: string[]): Promise<Ran> =>
  runCommand(['subjects', ...args], { ...commandSettings(topics, prefix), SEAL_KEYS_DIR: keys.directory })

const rep = (id: string, name: string, email: string | null = null) => ({
  id,
  name,
  email,
  status: 'active',
  started_on: '2024-02-29',
  departed_on: null,
})
const withSealed = ['/reps', '/reps/rep_1', '/payroll_files', '/payroll_files/payroll_1', '/changes']

describe('a client', () => {
  test('reads plain text in lists, single records, versions, voids and changes', async () => {
    const one = rep('rep_1', 'Canary One', 'one@example.com')
    expect(await dataOf('/reps')).toEqual([one, rep('rep_2', 'Canary Two'), rep('rep_3', 'Canary Three')])
    expect(await dataOf('/reps/rep_1')).toEqual(one)
    expect(await dataOf('/reps?ids=rep_3,rep_1')).toEqual([rep('rep_3', 'Canary Three'), one])
    expect(await dataOf('/reps?ids=rep_3,rep_1&as_of=rep_1.1')).toEqual([rep('rep_1', 'Canary Old')])
    expect(await dataOf('/payroll_files?ids=payroll_2')).toEqual([await dataOf('/payroll_files/payroll_2')])
    expect(await dataOf('/reps/rep_1?as_of=rep_1.1')).toEqual(rep('rep_1', 'Canary Old'))
    const paid = await dataOf('/payroll_files')
    expect(paid.map((record: { destination: unknown }) => record.destination)).toEqual(
      ['payroll_1', 'payroll_2'].map(() => ({ type: 'bank_account', label: 'Canary Bank' })),
    )
    const changes: { id: string; record: { name?: string } }[] = await dataOf('/changes')
    const names = changes.flatMap(({ id, record }) => (id.startsWith('rep_') ? [`${id} ${record.name}`] : []))
    expect(names).toEqual(['rep_1.1 Canary Old', 'rep_1.2 Canary One', 'rep_2.1 Canary Two', 'rep_3.1 Canary Three'])
  })

  test('may not keep an answer with a sealed text for ever, also not one as of a change', async () => {
    for (const path of withSealed) {
      const { headers } = await client.askInTime(`${path}?as_of=payroll_2`)
      expect([path, headers.get('cache-control')]).toEqual([path, 'private, no-cache'])
    }
    await eventually(async () => {
      const plain = await client.askInTime('/reps/rep_3?as_of=payroll_2')
      expect(plain.headers.get('cache-control')).toContain('immutable')
    })
  })

  test('of another organization cannot open a text that was copied, and reads the other records', async () => {
    expect(await dataOf('/reps', otherClient)).toEqual([
      { ...rep('rep_1', ''), unreadable: true },
      rep('rep_2', 'Canary B'),
    ])
  })
})

test('documents have what was published, and a broken sealed text is parked', async () => {
  const stored = JSON.stringify(await everythingProjected(prefix))
  for (const text of ['Canary One', 'Canary Old', 'Canary Two', 'Canary Bank', 'one@example.com']) {
    expect(stored).not.toContain(text)
  }
  expect(stored).toContain('Canary Three')
  expect(stored).toContain('data_invalid')
})

describe('an operator', () => {
  test('sees the people, their keys, and each record of one', async () => {
    const listed = await subjects('list', org, '--json')
    expect(jsonLines(listed)).toEqual([
      { rep: 'rep_1', versions: 2, labels: 2, parked: 0, plain: 0, keys: { k1: 'here' } },
      { rep: 'rep_2', versions: 1, labels: 0, parked: 0, plain: 0, keys: { k2: 'here' } },
      { rep: 'rep_3', versions: 1, labels: 0, parked: 0, plain: 1, keys: {} },
    ])
    const [report] = jsonLines(await subjects('report', org, 'rep_1', '--json'))
    expect(report).toMatchObject({ keys: { k1: 'here' }, generations: [{ generation: 'g1', versions: 2, labels: 2 }] })
    expect(listed.said).not.toContain('Canary')
  })

  test('is refused a key that seals texts of others, a wrong confirmation, and a person in the open', async () => {
    const shared = await subjects('erase', org, 'rep_1', '--confirm', 'rep_1')
    expect([shared.code, shared.said]).toEqual([
      1,
      expect.stringMatching(/k1 also seals 1 texts of 1 others, for example of .*rep_1 of org_b/),
    ])
    const wrong = await subjects('erase', org, 'rep_2', '--confirm', 'rep_1')
    expect([wrong.code, wrong.said]).toEqual([1, expect.stringContaining('expected rep_2')])
    const open = await subjects('erase', org, 'rep_3')
    expect([open.code, open.said]).toEqual([1, expect.stringContaining('no text of rep_3 is sealed')])
    const unknown = await subjects('erase', org, 'rep_9')
    expect([unknown.code, unknown.said]).toEqual([1, expect.stringContaining('org_a has no rep_9')])
    expect(await dataOf('/reps/rep_2')).toEqual(rep('rep_2', 'Canary Two'))
  })
})

test('while a key is missing without a receipt, its records are refused, never shown and never erased', async () => {
  keys.remove('kb')
  const refused = await eventually(async () => {
    const answer = await otherClient.ask('/reps')
    expect(answer.status).toBe(503)
    return answer
  })
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
  expect(refused.text).not.toContain('sealed:v1')
  expect((await otherClient.ask('/reps/rep_2')).status).toBe(503)
  // Other records are answered.
  expect((await otherClient.askInTime('/reps/rep_1')).status).toBe(200)
  expect((await client.askInTime('/reps')).status).toBe(200)
  expect((await otherClient.askInTime('/reps?ids=rep_1')).status).toBe(200)
  expect((await otherClient.ask('/reps?ids=rep_1,rep_2')).status).toBe(503)
  const lost = await subjects('erase', other, 'rep_2', '--confirm', 'rep_2')
  expect([lost.code, lost.said]).toEqual([1, expect.stringContaining('neither kb nor a receipt')])
  keys.put('kb')
  await eventually(async () => expect((await otherClient.ask('/reps')).status).toBe(200))
})

test('an erased person is empty and marked in every answer, with another tag; others keep their bytes', async () => {
  const withRep = ['/reps/rep_2', '/reps', '/changes', '/reps/rep_2?as_of=rep_2.1', '/reps?ids=rep_1,rep_2']
  const paths = [...withRep, '/reps/rep_1', '/reps?ids=rep_3,rep_1', '/payouts']
  const before = new Map(await Promise.all(paths.map(async path => [path, await client.askInTime(path)] as const)))
  const stored = await everythingProjected(prefix)
  const dry = await subjects('erase', org, 'rep_2')
  expect([dry.code, dry.said]).toEqual([0, expect.stringContaining('--confirm rep_2')])
  expect(await dataOf('/reps/rep_2')).toEqual(rep('rep_2', 'Canary Two'))

  const erased = await subjects('erase', org, 'rep_2', '--confirm', 'rep_2', '--json')
  expect([erased.code, jsonLines(erased)]).toEqual([
    0,
    [expect.objectContaining({ organization: org, rep: 'rep_2', key_id: 'k2', sealed_texts: 1 })],
  ])
  expect(JSON.stringify(erased)).not.toContain('Canary')
  const gone = { ...rep('rep_2', ''), erased: true }
  await eventually(async () => expect(await dataOf('/reps/rep_2')).toEqual(gone))
  for (const path of withRep) {
    const tag = before.get(path)?.headers.get('etag') ?? ''
    const now = await client.askInTime(path, { 'if-none-match': tag })
    expect([path, now.status]).toEqual([path, 200])
    expect(now.headers.get('etag')).not.toBe(tag)
    expect(now.text).toBe(
      before
        .get(path)
        ?.text.replace('"name":"Canary Two","email":null', '"name":"","email":null')
        .replace(/("id":"rep_2","name":"".*?"departed_on":null)/, '$1,"erased":true'),
    )
    expect((await client.askInTime(path, { 'if-none-match': now.headers.get('etag') ?? '' })).status).toBe(304)
  }
  for (const path of paths.slice(withRep.length)) {
    const now = await client.askInTime(path)
    expect([now.text, now.headers.get('etag')]).toEqual([before.get(path)?.text, before.get(path)?.headers.get('etag')])
  }
  expect(await everythingProjected(prefix)).toEqual(stored)
  const again = await subjects('erase', org, 'rep_2', '--confirm', 'rep_2', '--json')
  expect([again.code, jsonLines(again)]).toEqual([0, jsonLines(erased)])
  expect([again.code, again.said]).toEqual([0, expect.stringMatching(/erased before: k2. Remove them from all copies/)])
  // A key that comes back from an old copy opens nothing.
  keys.put('k2')
  const [listed] = jsonLines(await subjects('list', org, '--json')).filter(line => line.rep === 'rep_2')
  expect(listed?.keys).toEqual({ k2: 'erasing' })
  expect(await dataOf('/reps/rep_2')).toEqual(gone)
})

test('an API without SEAL_KEYS_DIR refuses records with sealed texts only, and its log names the setting', async t => {
  const process = await startApi(t, prefix)
  const closed = createClient([process], await keyText(t))
  expect((await closed.ask('/reps')).status).toBe(503)
  expect((await closed.askInTime('/reps/rep_3')).status).toBe(200)
  expect((await closed.askInTime('/payouts')).status).toBe(200)
  const line = { level: 40, because: 'seal_keys_not_set', msg: expect.stringContaining('SEAL_KEYS_DIR is not set') }
  await eventually(() => expect(process.lines()).toContainEqual(expect.objectContaining(line)))
})

const keyText = async (_: unknown): Promise<string> => {
  const text = newKeyText()
  await topics.publish([keyCreated({ org_id: org, id: 'key_2', text })])
  await untilCaughtUp(projector)
  return text
}
