/** A copy that grows by parts, from a small organization whose state the test computes. */
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Moment } from '../../../core/reading/index.ts'
import { createSigningKey, textOfSigningKey } from '../../../core/runtime/signing/note.ts'
import { type ExportSteps, exportOrganization, LAST_PART_FILE as LAST } from '../../../tools/export/export.ts'
import type { Manifest } from '../../../tools/export/manifest.ts'
import { CommandError } from '../../../tools/failures.ts'
import {
  growTo as add,
  emptyCopy as directory,
  growingEnds as ends,
  copiedFiles as everyFile,
  grownCopy as grown,
  textOfLastPart as lastOf,
  partsOfCopy as partsIn,
  growingSteps as stepsOf,
} from '../../support/growing-copies.ts'

const idsIn = (out: string, part: string, name: string): string[] =>
  readFileSync(join(out, part, `${name}.ndjson`), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line).id)
const manifestOf = (out: string, part: string): Manifest =>
  JSON.parse(readFileSync(join(out, part, 'manifest.json'), 'utf8'))
test('the first part has everything, and each later one the records of the changes since, with the sums of all', async () => {
  const out = await grown()
  expect(partsIn(out)).toEqual(['part-000001', 'part-000002', 'part-000003'])
  expect(idsIn(out, 'part-000001', 'payouts')).toEqual(['payout_A', 'payout_B'])
  // Also the payout that was replaced within the part: without it, nobody would know that payout_A was replaced.
  for (const name of ['payouts', 'statements'])
    expect(idsIn(out, 'part-000002', name)).toEqual(['payout_C', 'payout_D'])
  expect([idsIn(out, 'part-000002', 'reps'), idsIn(out, 'part-000002', 'payroll_files')]).toEqual([[], ['payroll_A']])
  expect(idsIn(out, 'part-000003', 'reps')).toEqual(['rep_A'])
  const [first, second, third] = ['part-000001', 'part-000002', 'part-000003'].map(part => manifestOf(out, part))
  expect([first?.owed, second?.owed, third?.owed]).toEqual([{ EUR: '13.5' }, { EUR: '15.75' }, { EUR: '16.75' }])
  expect(third?.paid).toEqual({ EUR: '10' })
  expect([first?.after, second?.after, third?.after]).toEqual([
    undefined,
    { as_of: 'payout_B', digest: first?.digest },
    { as_of: 'payroll_A', digest: second?.digest },
  ])
  expect(second?.as_of).toBe('payroll_A')
})

test('a copy that grew at the same changes has the same bytes, also if each run was stopped at any page', async () => {
  const expected = everyFile(await grown())
  expect(everyFile(await grown())).toEqual(expected)
  for (let stopAt = 1; stopAt <= 9; stopAt++) {
    const out = directory()
    for (const end of ends) {
      let pages = 0
      const stopping = new AbortController()
      const turn = () => void (++pages === stopAt && stopping.abort())
      const steps = stepsOf(end, { signal: stopping.signal }, turn)
      const code = await add(out, end, {}, steps)
      expect(partsIn(out).filter(name => name.startsWith('part-'))).toHaveLength(
        ends.indexOf(end) + (code === 0 ? 1 : 0),
      )
      // More was published meanwhile: the part ends where it was begun.
      if (code !== 0) expect(await add(out, 10, {})).toBe(0)
    }
    expect(everyFile(out)).toEqual(expected)
  }
})

test('a part that was killed before it got its name gets it at the next run', async () => {
  const expected = everyFile(await grown())
  for (const lost of [[], ['payouts.parquet', 'reps.parquet'], ['manifest.json']]) {
    const out = await grown()
    renameSync(join(out, 'part-000003'), join(out, 'unfinished'))
    writeFileSync(join(out, LAST), lastOf(expected, 'part-000002'))
    for (const name of lost) rmSync(join(out, 'unfinished', name))
    const { organization, as_of, rules_version, after } = JSON.parse(
      expected['part-000003/manifest.json'] ?? '',
    ) as Manifest
    if (lost.includes('manifest.json')) {
      writeFileSync(
        join(out, 'unfinished', 'manifest.partial.json'),
        JSON.stringify({ organization, as_of, rules_version, after }),
      )
    }
    writeFileSync(join(out, 'unfinished', 'export.00000000-0000-4000-8000-000000000000.lock'), '{"host":"gone"}')
    expect(await add(out, 10)).toBe(0)
    expect(everyFile(out)).toEqual(expected)
  }
})

test('without a change since the last part nothing is added, and an earlier moment is refused', async () => {
  const out = await grown()
  const before = everyFile(out)
  const said: string[] = []
  expect(await add(out, 10, {}, stepsOf(10, { say: line => void said.push(line) }))).toBe(0)
  expect(said.at(-1)).toContain('everything as of payroll_B already')
  const asOf = { kind: 'change', name: { kind: 'payouts', id: 'payout_B' } } as Moment
  await expect(add(out, 10, { asOf })).rejects.toThrow('--as-of: expected a change after payroll_B')
  expect(everyFile(out)).toEqual(before)
})

test('a copy that was changed, or lost a part, is named and gets no further part', async () => {
  const damages: readonly [(out: string) => void, string][] = [
    [out => writeFileSync(join(out, 'part-000001', 'reps.ndjson'), '{}\n'), 'part-000001: reps.ndjson was changed'],
    [out => writeFileSync(join(out, 'part-000002', 'payouts.parquet'), ''), 'part-000002: payouts.parquet was changed'],
    [out => rmSync(join(out, 'part-000001'), { recursive: true }), 'expected part-000001, got part-000002'],
    [out => rmSync(join(out, 'part-000001', 'manifest.json')), 'its manifest.json is lost'],
    [
      out => {
        rmSync(join(out, 'part-000002'), { recursive: true })
        renameSync(join(out, 'part-000003'), join(out, 'part-000002'))
      },
      'part-000002 is not the continuation of the part before it',
    ],
    [
      out => {
        const file = join(out, 'part-000002', 'manifest.json')
        writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), after: null }))
      },
      'part-000002 is not the continuation of the part before it',
    ],
  ]
  for (const [damage, message] of damages) {
    const out = await grown()
    damage(out)
    await expect(add(out, 10)).rejects.toThrow(message)
    expect(partsIn(out)).not.toContain('unfinished')
  }
})

test('a part has the organization, texts, tables and signature of those before it', async () => {
  const out = await grown()
  const file = join(directory(), 'key')
  writeFileSync(file, textOfSigningKey(createSigningKey('example.org')))
  for (const [more, message] of [
    [{ org: 'org_b' }, 'is of org_a'],
    [{ generation: 'sandbox:x' }, 'is of the live generation'],
    [{ open: true }, 'is with sealed texts'],
    [{ parquet: false }, 'has tables of parquet: say --parquet'],
    [{ csv: true }, 'has no tables of csv: leave out --csv'],
    [{ sign: file }, 'is not signed: leave out --sign'],
  ] as const) {
    await expect(add(out, 10, more)).rejects.toThrow(message)
  }
  const signed = await grown({ sign: file, csv: true })
  expect(readdirSync(join(signed, 'part-000003'))).toEqual(expect.arrayContaining(['manifest.note', 'payouts.csv']))
  await expect(add(signed, 10, { csv: true })).rejects.toThrow('is signed: say --sign')
  writeFileSync(
    join(signed, 'part-000002', 'manifest.note'),
    readFileSync(join(signed, 'part-000001', 'manifest.note')),
  )
  await expect(add(signed, 10, { sign: file, csv: true })).rejects.toThrow('is not the signed one')
})

test('the key that signs a part is read once: it may come from a pipe', async () => {
  const [out, file, text] = [directory(), join(directory(), 'key'), textOfSigningKey(createSigningKey('example.org'))]
  for (const end of ends) {
    writeFileSync(file, text)
    const steps = stepsOf(end)
    const readTotals: ExportSteps['readTotals'] = (...asked) => {
      rmSync(file, { force: true })
      return steps.readTotals(...asked)
    }
    expect(await add(out, end, { sign: file }, { ...steps, readTotals })).toBe(0)
  }
  expect(readdirSync(join(out, 'part-000003'))).toContain('manifest.note')
})

test('other rules, a change that is gone, a whole export in the directory, and sums that differ end it with the reason', async () => {
  const out = await grown()
  const others = stepsOf(10, { sourceOf: async () => ({ topic: 't', partition: 0, rules_version: 3 }) })
  await expect(add(out, 10, {}, others)).rejects.toThrow('was exported under rules 2, and rules 3 are in force')
  const read = stepsOf(7).readTotals
  const gone = stepsOf(7, {
    readTotals: async (org, asOf) => {
      if (asOf !== undefined) throw new CommandError('--as-of: there is no such change of this organization')
      return read(org, asOf)
    },
  })
  await expect(add(out, 7, {}, gone)).rejects.toThrow('ends with the change payroll_B, which is not there')
  const whole = directory()
  await exportOrganization({ org: 'org_a', asOf: undefined, out: whole, parquet: false, json: false }, stepsOf(4))
  await expect(add(whole, 7)).rejects.toThrow('has a whole export, and no parts')

  const short = directory()
  await add(short, 4)
  const { position } = await stepsOf(7).readTotals('org_a', undefined)
  const readStatement = async () => ({ text: Buffer.from('{}\n{}'), position })
  for (const missing of [{ countOf: async () => 1 }, { readStatement }]) {
    const copy = join(directory(), 'copy')
    cpSync(short, copy, { recursive: true })
    await expect(add(copy, 7, {}, stepsOf(7, missing))).rejects.toThrow('do not add up')
    expect(partsIn(copy)).toEqual(['part-000001', 'unfinished'])
  }
})

test('while one run adds a part, another one is refused', async () => {
  const out = directory()
  const gate = Promise.withResolvers<void>()
  const steps = stepsOf(4)
  const readStatement: ExportSteps['readStatement'] = async (...asked) => {
    await gate.promise
    return await steps.readStatement(...asked)
  }
  const waiting = { ...steps, readStatement }
  const first = add(out, 4, {}, waiting)
  await expect.poll(() => partsIn(out)).toContain('unfinished')
  await expect(add(out, 4)).rejects.toThrow('another export writes into')
  gate.resolve()
  expect(await first).toBe(0)
  expect(partsIn(out)).toEqual(['part-000001'])
})
