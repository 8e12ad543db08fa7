/** The manifest of an export: when it may be signed, and which sandbox it names. */
import { hash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { StopError } from '../../../core/runtime/index.ts'
import { createSigningKey, parseNote, textOfSigningKey } from '../../../core/runtime/signing/note.ts'
import type { CommandContext } from '../../../tools/context.ts'
import { type ExportOptions, exportOrganization } from '../../../tools/export/export.ts'
import { type Manifest, type ManifestSource, sourceOf } from '../../../tools/export/manifest.ts'
import { sending } from '../../support/answering.ts'
import { emptyCopy, growingSteps, growTo } from '../../support/growing-copies.ts'

const keyFile = (): string => {
  const file = join(emptyCopy(), 'key')
  writeFileSync(file, textOfSigningKey(createSigningKey('example.org')))
  return file
}
const run = (out: string, more: Partial<ExportOptions>) =>
  exportOrganization({ org: 'org_a', asOf: undefined, out, parquet: false, json: false, ...more }, growingSteps(4))
const manifestOf = (out: string): Manifest => JSON.parse(readFileSync(join(out, 'manifest.json'), 'utf8'))
/** Writes a file, and the manifest that names it with these bytes. */
const forge = (out: string, file: string, bytes: Buffer): void => {
  writeFileSync(join(out, file), bytes)
  const manifest = manifestOf(out)
  const described = { file, bytes: bytes.length, sha256: hash('sha256', bytes) }
  writeFileSync(
    join(out, 'manifest.json'),
    `${JSON.stringify({ ...manifest, tables: { ...manifest.tables, [file]: described } }, null, 2)}\n`,
  )
}
const signedIn = (out: string): Manifest =>
  JSON.parse(String(parseNote(readFileSync(join(out, 'manifest.note')))?.text ?? '{}'))

/** An edited amount in CSV; in Parquet the bytes of another table. */
const forgeries: readonly (readonly [string, (out: string) => Buffer])[] = [
  ['payouts.csv', out => Buffer.from(readFileSync(join(out, 'payouts.csv'), 'utf8').replace('10.50', '99.50'))],
  ['payouts.parquet', out => readFileSync(join(out, 'reps.parquet'))],
]

test.each(forgeries)(
  '%s that was edited, with a digest that fits, is not signed again by the same key',
  async (file, edit) => {
    const out = emptyCopy()
    const sign = keyFile()
    await run(out, { csv: true, parquet: true, sign })
    const before = signedIn(out)
    forge(out, file, edit(out))
    await expect(run(out, { sign })).rejects.toThrow('manifest.json is not the signed one')
    expect(signedIn(out)).toEqual(before)
    // The table that was asked for is made anew; a table of the other format is not excused by that.
    const made = { csv: file.endsWith('.csv'), parquet: file.endsWith('.parquet') }
    await expect(run(out, { sign, csv: !made.csv, parquet: !made.parquet })).rejects.toThrow('is not the signed one')
    expect(await run(out, { sign, ...made })).toBe(0)
    expect(signedIn(out)).toEqual(before)
  },
)

test.each(forgeries)('before its first signature %s is made anew from the records', async (file, edit) => {
  const out = emptyCopy()
  await run(out, { csv: true, parquet: true })
  const [bytes, manifest] = [readFileSync(join(out, file)), manifestOf(out)]
  forge(out, file, edit(out))
  expect(await run(out, { sign: keyFile() })).toBe(0)
  expect(readFileSync(join(out, file)).equals(bytes)).toBe(true)
  expect(signedIn(out)).toEqual(manifest)
})

test('a table that no export has, and sums that are not those of the files, are not signed', async () => {
  for (const asked of [{}, { csv: true }]) {
    const out = emptyCopy()
    await run(out, asked)
    forge(out, 'totals.csv', Buffer.from('currency,owed\r\nEUR,99\r\n'))
    await expect(run(out, { ...asked, sign: keyFile() })).rejects.toThrow('manifest.json is not of its files')
  }
  const out = emptyCopy()
  await run(out, {})
  const text = readFileSync(join(out, 'manifest.json'), 'utf8')
  for (const [from, to] of [
    ['"EUR": "13.5"', '"EUR": "99"'],
    ['"records": 2', '"records": 20'],
  ] as const) {
    expect(text).toContain(from)
    writeFileSync(join(out, 'manifest.json'), text.replace(from, to))
    await expect(run(out, { sign: keyFile() })).rejects.toThrow('manifest.json is not of its files')
  }
  writeFileSync(join(out, 'manifest.json'), text)
  expect(await run(out, { sign: keyFile() })).toBe(0)
})

test('a manifest names the sandbox, and an export of one that was made anew in another way is not continued', async () => {
  const sandbox = { org: 'org_a', until: null, bounds: [5], rules: { name: 'capped.ts', sha256: 'a' } }
  const other = { ...sandbox, rules: { name: 'capped.ts', sha256: 'b' } }
  const stepsOf = (made: typeof sandbox) =>
    growingSteps(4, { sourceOf: async () => ({ topic: 't', partition: 0, rules_version: 2, sandbox: made }) })
  const options = { org: 'org_a', generation: 'sandbox:s', asOf: undefined, parquet: false, json: false }
  const out = emptyCopy()
  expect(await exportOrganization({ ...options, out }, stepsOf(sandbox))).toBe(0)
  expect(manifestOf(out)).toMatchObject({ generation: 'sandbox:s', sandbox })
  expect(await exportOrganization({ ...options, out }, stepsOf(sandbox))).toBe(0)
  const refused = 'has an export of another sandbox:s'
  await expect(exportOrganization({ ...options, out }, stepsOf(other))).rejects.toThrow(refused)
  const copy = emptyCopy()
  expect(await growTo(copy, 4, { generation: 'sandbox:s' }, stepsOf(sandbox))).toBe(0)
  await expect(growTo(copy, 4, { generation: 'sandbox:s' }, stepsOf(other))).rejects.toThrow(refused)
})

test('tables that no manifest names, of an earlier version or of a run that was killed, are named before the signature', async () => {
  const out = emptyCopy()
  await run(out, { csv: true })
  const { tables, ...without } = manifestOf(out)
  writeFileSync(join(out, 'manifest.json'), `${JSON.stringify(without, null, 2)}\n`)
  expect(await run(out, { sign: keyFile() })).toBe(0)
  expect(signedIn(out).tables).toEqual(tables)
})

test('a signature goes on after a run that was killed while it made tables anew', async () => {
  const out = emptyCopy()
  await run(out, { csv: true })
  const { tables } = manifestOf(out)
  writeFileSync(join(out, 'payouts.csv'), 'made anew, and not named yet')
  expect(await run(out, { sign: keyFile() })).toBe(0)
  expect(signedIn(out).tables).toEqual(tables)
})

test('an export is not signed while Elasticsearch does not tell whether a role hides documents', async () => {
  const of = { topic: 't', partition: 0, rules_version: 2 }
  const signing = (...sights: readonly ManifestSource['sight'][]) => {
    const left = [...sights]
    const sourceOf = async () => ({ ...of, sight: left.shift() ?? 'all' })
    const options = { org: 'org_a', asOf: undefined, out: emptyCopy(), parquet: false, json: false }
    return (sign: string | undefined) => exportOrganization({ ...options, sign }, growingSteps(4, { sourceOf }))
  }
  const refusal = 'does not tell whether a role hides documents'
  await expect(signing('not told')(keyFile())).rejects.toThrow(refusal)
  await expect(signing('all', 'not told')(keyFile())).rejects.toThrow(refusal)
  expect(await signing('not told', 'not told')(undefined)).toBe(0)
  expect(await signing('no security', 'all of the roles of its key')(keyFile())).toBe(0)
})

test('while a recorded shard cannot be compared, an export warns, and is not signed', async () => {
  const said: string[] = []
  const of = { topic: 't', partition: 0, rules_version: 2 }
  const unknown = { ...of, unknownShard: 'p-g1-payouts/0' }
  const signed = (out: string, ...sources: readonly ManifestSource[]) => {
    const left = [...sources]
    const sourceOf = async () => left.shift() ?? of
    const say = (line: string) => void said.push(line)
    const options = { org: 'org_a', asOf: undefined, out, parquet: false, json: false }
    return (sign: string | undefined) => exportOrganization({ ...options, sign }, growingSteps(4, { sourceOf, say }))
  }
  const refusal = 'the shard p-g1-payouts/0 cannot be compared with the recorded one, and documents may be missing'
  for (const sources of [[unknown], [of, unknown]]) {
    const out = emptyCopy()
    await expect(signed(out, ...sources)(keyFile())).rejects.toThrow(refusal)
    expect(existsSync(join(out, 'manifest.note'))).toBe(false)
    expect(await signed(out, of)(keyFile())).toBe(0)
  }
  const out = emptyCopy()
  expect(await signed(out, unknown)(undefined)).toBe(0)
  expect(said.filter(line => line.startsWith(refusal))).toHaveLength(1)
  // Finished, and not signed yet.
  await expect(signed(out, unknown)(keyFile())).rejects.toThrow(refusal)
})

test.for([
  { what: 'a shard without an id', ids: { 'p-control/0': 'x' }, unknownShard: 'p-g1-payouts/0' },
  { what: 'all shards, if it may not ask', ids: undefined, unknownShard: 'p-control/0' },
  {
    what: 'no shard, if all are as recorded',
    ids: { 'p-control/0': 'x', 'p-g1-payouts/0': 'y' },
    unknownShard: undefined,
  },
])('the source of an export names $what', async ({ ids, unknownShard }) => {
  const shards = { 'p-control/0': 'x', 'p-g1-payouts/0': 'y' }
  const indices = { 'p-g1-payouts': 'a' }
  const identity = { generation: 'g1', topic: 't', cluster_id: 'c', partitions: 1, rules_version: 2, indices, shards }
  const statsOf = (shard: string, id: string) => {
    const [index = '', number = ''] = shard.split('/')
    const copy = { routing: { primary: true }, commit: { user_data: { history_uuid: id } } }
    return [index, { shards: { [number]: [copy] } }]
  }
  const send = sending(async ({ path }) => {
    if (path.startsWith('/_security/')) return { status: 200, body: { indices: [] } }
    if (path === '/p-*/_settings') {
      const settings = Object.entries({ ...indices, 'p-control': 'b' }).map(([name, uuid]) => [
        name,
        { settings: { index: { uuid } } },
      ])
      return { status: 200, body: Object.fromEntries(settings) }
    }
    if (path === '/p-*/_stats/get') {
      if (ids === undefined) throw new StopError('access_refused', 'monitor')
      const stats = Object.entries(ids).map(([shard, id]) => statsOf(shard, id))
      return { status: 200, body: { indices: Object.fromEntries(stats) } }
    }
    return { status: 200, body: { found: true, _source: { kind: 'generation', body: identity } } }
  })
  const source = await sourceOf({ send, prefix: 'p' } as unknown as CommandContext)('g1', 'org_a')
  expect(source.unknownShard).toBe(unknownShard)
})
