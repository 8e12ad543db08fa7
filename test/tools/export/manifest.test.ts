/** The manifest of an export: when it may be signed, and which sandbox it names. */
import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSigningKey, parseNote, textOfSigningKey } from '../../../core/runtime/signing/note.ts'
import { type ExportOptions, exportOrganization } from '../../../tools/export/export.ts'
import type { Manifest } from '../../../tools/export/manifest.ts'
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
