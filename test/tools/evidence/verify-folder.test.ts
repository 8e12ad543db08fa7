/** Signed exports: each kind of file that was changed is named, and of lines the first. */
import { hash, randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSigningKey, textOfVerifierKey } from '../../../core/runtime/index.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { verifyEvidence } from '../../../tools/evidence/verify.ts'
import { writeCsv } from '../../../tools/export/csv.ts'
import { describeFiles, describeTables } from '../../../tools/export/manifest.ts'
import { writeTables } from '../../../tools/export/tables.ts'
import { signFolder } from '../../../tools/signing/sign-manifest.ts'
import type { Scope } from '../../support/scope.ts'

const key = createSigningKey('auditor.example/a')
const PUBLIC = textOfVerifierKey(key.verifier)
const { signal } = new AbortController()
const NAMES = ['reps', 'periods', 'payouts', 'statements', 'payroll_files'] as const

/** An export of this many payouts. */
const setUp = async (t: Scope, count = 20) => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-signed-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const file = (name: string): string => join(directory, name)
  const ids = Array.from({ length: count }, (_, at) => `payout_${at}`)
  const line_items = [{ id: 'line', category: 'earned', description: 'Deal "1",\nsecond line', amount: '1.50' }]
  const payouts = ids.map(id => ({ id, net_amount: '1.50', currency: 'EUR', line_items }))
  const records: Record<string, readonly object[]> = {
    reps: [{ id: 'rep_1', name: 'Ines' }],
    payouts,
    statements: ids.map(id => ({ id, calculation_trace: [] })),
  }
  for (const name of NAMES) {
    const lines = (records[name] ?? []).map(record => `${JSON.stringify(record)}\n`)
    await writeFile(file(`${name}.ndjson`), lines.join(''))
  }
  const { files, digest } = await describeFiles(NAMES, directory, signal)
  const made = [
    ...(await writeTables(directory, () => undefined, signal)),
    ...(await writeCsv(directory, () => undefined, signal)),
  ]
  const moment = { as_of: 'payout_1', published_at: '2026-02-01T00:00:00.000Z', rules_version: 5 }
  const position = { topic: 'events', partition: 3, offset: 120 }
  const manifest = {
    organization: 'org_1',
    ...moment,
    position,
    files,
    digest,
    tables: await describeTables(made, directory),
  }
  await writeFile(file('manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  await signFolder(directory, key)
  return { directory, file }
}

const verify = async (directory: string, keys: readonly string[] = [PUBLIC]) => {
  const [said, out]: [string[], string[]] = [[], []]
  const steps = {
    out: (text: string) => void out.push(text),
    say: (line: string) => void said.push(line),
    draw: undefined,
    elapsed: () => 0,
    sleep: async () => undefined,
    signal,
    openTarget: async () => directoryTarget(directory),
  }
  const code = await verifyEvidence({ address: directory, keys, json: true }, steps)
  type Told = { kind: string; signed: object[]; differences: string[]; unfinished: string[] }
  const { kind, signed, differences, unfinished } = JSON.parse(out.join('')) as Told
  return { code, kind, signed, differences, unfinished, said: said.join('\n') }
}

const changeByte = async (file: string): Promise<void> => {
  const bytes = await readFile(file)
  const at = bytes.length >> 1
  bytes[at] = (bytes[at] ?? 0) ^ 1
  await writeFile(file, bytes)
}
const replaceText = async (file: string, before: string, after: string): Promise<void> => {
  const text = await readFile(file, 'utf8')
  expect(text.split(before)).toHaveLength(2)
  await writeFile(file, text.replace(before, after))
}

test('each file of a signed export: one changed byte, its loss, and other bytes of the same length are named', async t => {
  const { directory, file } = await setUp(t)
  expect(await verify(directory)).toMatchObject({ code: 0, differences: [] })
  for (const name of await readdir(directory)) {
    const bytes = await readFile(file(name))
    for (const change of [changeByte, rm, (of: string) => writeFile(of, Buffer.alloc(bytes.length))]) {
      // A byte of an empty file cannot be changed.
      if (bytes.length === 0 && change !== rm) continue
      await change(file(name))
      const { code, differences } = await verify(directory)
      expect([name, code, differences]).toEqual([name, 3, [expect.stringContaining(name.split('.')[0] ?? '')]])
    }
    await writeFile(file(name), bytes)
  }
  expect((await verify(directory)).code).toBe(0)
})

test('the first changed record of a file is named with its line, and of a table its row', async t => {
  const { directory, file } = await setUp(t)
  const line = (at: number, amount: string) => `{"id":"payout_${at}","net_amount":"${amount}"`
  await replaceText(file('payouts.ndjson'), line(13, '1.50'), line(13, '9.50'))
  await replaceText(file('payouts.ndjson'), line(17, '1.50'), line(17, '1.500'))
  await replaceText(file('payroll_files.csv'), 'payout_id', 'payout_ID')
  const { code, differences } = await verify(directory)
  expect(code).toBe(3)
  expect(differences).toEqual([
    expect.stringContaining('payouts.ndjson: it was changed, first in line 14 (payout_13): '),
    expect.stringContaining('payroll_files.csv: it was changed, first in its heading: '),
  ])
  const again = await setUp(t)
  await replaceText(again.file('line_items.csv'), 'payout_5,', 'payout_55,')
  await writeFile(again.file('statements.ndjson'), '{"id":"payout_more"}\n', { flag: 'a' })
  expect((await verify(again.directory)).differences).toEqual([
    expect.stringContaining('statements.ndjson: it was changed, first in line 21 (payout_more): '),
    expect.stringContaining('line_items.csv: it was changed, first in row 6: '),
  ])
})

test('in a long file the lines around the first changed one are named', async t => {
  const { directory, file } = await setUp(t, 1_500)
  const line = '{"id":"payout_1001","net_amount":"'
  await replaceText(file('payouts.ndjson'), `${line}1`, `${line}2`)
  expect((await verify(directory)).differences).toEqual([expect.stringContaining('first in lines 1001 to 1004: ')])
})

test('two files that were exchanged are both named, and so is a file that the manifest does not name', async t => {
  const { directory, file } = await setUp(t)
  await rename(file('payouts.parquet'), file('x'))
  await rename(file('reps.parquet'), file('payouts.parquet'))
  await rename(file('x'), file('reps.parquet'))
  await writeFile(file('more.ndjson'), '')
  const { code, differences } = await verify(directory)
  expect(code).toBe(3)
  expect(differences).toEqual([
    expect.stringContaining('reps.parquet: it was changed'),
    expect.stringContaining('payouts.parquet: it was changed'),
    expect.stringContaining('more.ndjson: the manifest does not name it'),
  ])
})

test('files and a manifest that fit together, made by somebody without the key, are not the signed ones', async t => {
  const { directory, file } = await setUp(t)
  await replaceText(file('manifest.json'), '"organization": "org_1"', '"organization": "org_2"')
  expect((await verify(directory)).differences).toEqual([
    expect.stringContaining('manifest.json: line 2 is not as it was signed'),
  ])
  const forger = createSigningKey('auditor.example/a')
  await signFolder(directory, forger)
  expect((await verify(directory)).differences).toEqual([expect.stringContaining('by none of the given keys')])
  // The note of the forger, with the id of the key that is trusted.
  const note = await readFile(file('manifest.note'))
  const at = note.lastIndexOf(' ') + 1
  const signature = Buffer.from(note.toString('utf8', at), 'base64')
  Buffer.from(key.id, 'hex').copy(signature)
  await writeFile(file('manifest.note'), `${note.toString('utf8', 0, at)}${signature.toString('base64')}\n`)
  expect((await verify(directory)).differences).toEqual([expect.stringContaining('is not of this text')])
})

test('a file that was changed together with its digest in the manifest is named beside the manifest', async t => {
  const { directory, file } = await setUp(t)
  const digestOf = async (): Promise<string> => hash('sha256', await readFile(file('reps.csv')))
  const before = await digestOf()
  await replaceText(file('reps.csv'), 'Ines', 'Enis')
  await replaceText(file('manifest.json'), before, await digestOf())
  expect((await verify(directory)).differences).toEqual([
    expect.stringMatching(/manifest\.json: line \d+ is not as it was signed$/),
    expect.stringContaining('reps.csv: it was changed, first in row 1: '),
  ])
})

test('an old signature stays valid with the old key, and several keys may be given', async t => {
  const { directory } = await setUp(t)
  const newer = textOfVerifierKey(createSigningKey('auditor.example/b').verifier)
  expect((await verify(directory, [newer, PUBLIC])).code).toBe(0)
  expect((await verify(directory, [newer])).code).toBe(3)
})

test('without --key a signature is named and not checked, and without a signature the answer says so', async t => {
  const { directory, file } = await setUp(t)
  expect(await verify(directory, [])).toMatchObject({ code: 0, said: expect.stringContaining('was not checked') })
  await rm(file('manifest.note'))
  expect(await verify(directory, [])).toMatchObject({ code: 0, said: expect.stringContaining('is not signed') })
  expect((await verify(directory)).differences).toEqual([expect.stringContaining('is not signed')])
})

test('it says whose records are signed, up to which change and offset, and how many, in words and as JSON', async t => {
  const { directory } = await setUp(t)
  const { kind, signed, said } = await verify(directory)
  expect(kind).toBe('export')
  expect(signed).toEqual([
    {
      manifest: 'manifest.json',
      signers: [`auditor.example/a+${key.id}`],
      covers: {
        organization: 'org_1',
        as_of: 'payout_1',
        published_at: '2026-02-01T00:00:00.000Z',
        generation: 'live',
        position: { topic: 'events', partition: 3, offset: 120 },
        rules_version: 5,
        records: { reps: 1, periods: 0, payouts: 20, statements: 20, payroll_files: 0 },
      },
    },
  ])
  expect(said).toContain('organization: org_1; as of the change: payout_1; published at: 2026-02-01T00:00:00.000Z')
  expect(said).toContain('position: events:3:120; rules of version: 5; records: reps 1, periods 0, payouts 20, ')
  expect((await verify(directory, [])).signed).toEqual([expect.objectContaining({ signers: [] })])
})

test('what a killed run has not finished is said, and is no difference; any other file is one', async t => {
  const { directory, file } = await setUp(t)
  const left = [
    `manifest.note.${randomUUID()}.new`,
    'payouts.csv.new',
    'statements.ndjson.partial',
    'manifest.partial.json',
    `export.${randomUUID()}.lock`,
  ]
  for (const name of left) await writeFile(file(name), '')
  const said = (name: string) => `${file(name)}: of a run that goes on, or was killed. It is not part of what is signed`
  const first = await verify(directory)
  expect([first.code, first.differences, first.unfinished.sort()]).toEqual([0, [], left.map(said).sort()])
  for (const name of ['other.new', 'payouts.csv.more.new', 'other.lock']) await writeFile(file(name), '')
  await mkdir(file('reps.csv.new'))
  const { code, differences } = await verify(directory)
  expect([code, differences.sort()]).toEqual([
    3,
    ['other.lock', 'other.new', 'payouts.csv.more.new', 'reps.csv.new'].map(
      name => `${file(name)}: the manifest does not name it`,
    ),
  ])
})

test('a symbolic link and a folder in place of a file are differences, and a link is not followed', async t => {
  for (const name of ['payouts.ndjson', 'reps.csv', 'manifest.json', 'manifest.note']) {
    const { directory, file } = await setUp(t)
    const outside = await setUp(t)
    await rename(file(name), outside.file('moved'))
    await symlink(outside.file('moved'), file(name))
    const link = await verify(directory)
    expect([link.code, link.differences]).toEqual([
      3,
      [`${file(name)}: it is a symbolic link: expected a file, which is here itself`],
    ])
    await rm(file(name))
    await mkdir(file(name))
    expect((await verify(directory)).differences).toEqual([
      `${file(name)}: it is a folder: expected a file, which is here itself`,
    ])
  }
})

test('lines that were added to the end of the manifest are named', async t => {
  const { directory, file } = await setUp(t)
  const lines = (await readFile(file('manifest.json'), 'utf8')).split('\n').length
  await writeFile(file('manifest.json'), '\n', { flag: 'a' })
  expect((await verify(directory)).differences).toEqual([
    `${file('manifest.json')}: line ${lines + 1} is not as it was signed`,
  ])
})

test.each(['../reps.ndjson', '/etc/hosts', 'a/b', '..'])('a manifest that names %s is refused', async name => {
  const cleanUps: (() => unknown)[] = []
  const scope = { onTestFinished: (done: () => unknown) => void cleanUps.push(done) } as unknown as Scope
  const { directory, file } = await setUp(scope)
  await replaceText(file('manifest.json'), '"file": "reps.ndjson"', `"file": "${name}"`)
  await signFolder(directory, key)
  expect((await verify(directory)).differences).toEqual([expect.stringContaining('expected the manifest of an export')])
  for (const done of cleanUps) await done()
})

test('of a sandbox it says the module that decided, its organization and where it ends', async t => {
  const { directory, file } = await setUp(t)
  const sandbox = { org: 'org_1', until: null, bounds: [0, 120], rules: { name: 'capped.ts', sha256: 'ab12' } }
  const manifest = JSON.parse(await readFile(file('manifest.json'), 'utf8'))
  await writeFile(file('manifest.json'), `${JSON.stringify({ ...manifest, generation: 'sandbox:s', sandbox })}\n`)
  await signFolder(directory, key)
  const { signed, said } = await verify(directory)
  expect(signed).toEqual([expect.objectContaining({ covers: expect.objectContaining({ sandbox }) })])
  expect(said).toContain(
    'rules of version: 5; with the module: capped.ts of SHA-256 ab12; of a replay of only: org_1; of a replay up to: 0,120; ',
  )
})

test.each([
  [
    'a part of a copy that grows',
    { after: { as_of: 'payout_0', digest: 'ab12' }, opened: true },
    ['only the changes after: payout_0; as of the change: payout_1; ', '; sealed texts: opened; '],
  ],
  [
    'a close with some keys and some parked records',
    {
      keys_position: { topic: 'keys', offset: 7 },
      parked_positions: [{ topic: 'events', partition: 2, offset: 5 }],
    },
    ['; keys before: offset 7 of keys; parked records also before: events:2:5; '],
  ],
  [
    'a close without keys and parked records',
    { keys_position: { topic: 'keys', offset: 0 }, parked_positions: [] },
    ['; keys before: offset 0 of keys; parked records also before: none; '],
  ],
])('verify says the limits of %s', async (_, limits, expected) => {
  const cleanUps: (() => unknown)[] = []
  const scope = { onTestFinished: (done: () => unknown) => void cleanUps.push(done) } as unknown as Scope
  const { directory, file } = await setUp(scope)
  const manifest = JSON.parse(await readFile(file('manifest.json'), 'utf8'))
  await writeFile(file('manifest.json'), `${JSON.stringify({ ...manifest, ...limits })}\n`)
  await signFolder(directory, key)
  const { signed, said } = await verify(directory)
  expect(signed).toEqual([expect.objectContaining({ covers: expect.objectContaining(limits) })])
  for (const text of expected) expect(said).toContain(text)
  for (const done of cleanUps) await done()
})
