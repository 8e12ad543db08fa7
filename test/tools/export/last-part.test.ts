/** A copy that grows by parts: its last part is lost, parts are links, and a part was stopped between two files. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exportOrganization, LAST_PART_FILE as LAST } from '../../../tools/export/export.ts'
import type { Manifest } from '../../../tools/export/manifest.ts'
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

test('a copy that lost its last part is noticed, also if its file of the last part is lost, too', async () => {
  const out = await grown()
  const expected = everyFile(out)
  expect(expected[LAST]).toBe(lastOf(expected, 'part-000003'))
  const refused = async (message: string): Promise<void> => {
    const before = everyFile(out)
    await expect(add(out, 10)).rejects.toThrow(message)
    expect([partsIn(out).includes('unfinished'), everyFile(out)]).toEqual([false, before])
  }
  renameSync(join(out, 'part-000003'), join(out, 'kept'))
  await refused('part-000003 is lost')
  rmSync(join(out, LAST))
  await refused('its last-part.json is lost')
  renameSync(join(out, 'kept'), join(out, 'part-000003'))
  writeFileSync(join(out, LAST), lastOf(expected, 'part-000002').replace('000002', '000003'))
  await refused('part-000003 is not the part that last-part.json names')

  // A run that was killed between the part and the file that names it: the part counts, also for the next one.
  writeFileSync(join(out, LAST), lastOf(expected, 'part-000002'))
  expect(await add(out, 10)).toBe(0)
  expect(everyFile(out)).toEqual(expected)
  const young = directory()
  await add(young, 4)
  rmSync(join(young, LAST))
  await add(young, 7)
  expect(readFileSync(join(young, LAST), 'utf8')).toBe(lastOf(expected, 'part-000002'))
})

test('nothing is written through a link, and an export without parts is not written among them', async () => {
  const out = await grown()
  const elsewhere = directory()
  symlinkSync(elsewhere, join(out, 'unfinished'))
  rmSync(join(out, 'part-000003'), { recursive: true })
  writeFileSync(join(out, LAST), lastOf(everyFile(out), 'part-000002'))
  await expect(add(out, 10)).rejects.toThrow('unfinished: expected a directory, got a link')
  expect(readdirSync(elsewhere)).toEqual([])
  rmSync(join(out, 'unfinished'))
  renameSync(join(out, 'part-000001'), join(elsewhere, 'part-000001'))
  symlinkSync(join(elsewhere, 'part-000001'), join(out, 'part-000001'))
  await expect(add(out, 10)).rejects.toThrow('part-000001: expected a directory, got a link')

  const copy = await grown()
  const before = everyFile(copy)
  const whole = { org: 'org_a', asOf: undefined, out: copy, parquet: false, json: false }
  await expect(exportOrganization(whole, stepsOf(10))).rejects.toThrow('has a copy in parts: say --add')
  expect(everyFile(copy)).toEqual(before)
})

test('a part that was stopped between the files of one page has each record once', async () => {
  const expected = everyFile(await grown())
  for (const cut of ['reps', 'payouts', 'payroll_files']) {
    const out = directory()
    for (const end of ends.slice(0, 2)) await add(out, end)
    const folder = join(out, 'unfinished')
    mkdirSync(folder)
    const { organization, as_of, rules_version, after } = JSON.parse(
      expected['part-000003/manifest.json'] ?? '',
    ) as Manifest
    writeFileSync(join(folder, 'manifest.partial.json'), JSON.stringify({ organization, as_of, rules_version, after }))
    // One kind has its records already, another half of a line, and the others nothing.
    const written = expected[`part-000003/${cut}.ndjson`] ?? ''
    writeFileSync(join(folder, `${cut}.ndjson.partial`), `${written}{"id":"hal`, 'latin1')
    expect(await add(out, 10)).toBe(0)
    expect(everyFile(out)).toEqual(expected)
  }
})

test('a part that no run could name is named before the next part is begun: two killed runs lose no copy', async () => {
  const out = await grown()
  const expected = everyFile(out)
  // The run of the second part was killed before it named it.
  rmSync(join(out, 'part-000003'), { recursive: true })
  writeFileSync(join(out, LAST), lastOf(expected, 'part-000001'))
  const stopping = new AbortController()
  const steps = stepsOf(10, { signal: stopping.signal }, () => stopping.abort())
  expect(await add(out, 10, {}, steps)).not.toBe(0)
  expect(readFileSync(join(out, LAST), 'utf8')).toBe(lastOf(expected, 'part-000002'))
  expect(await add(out, 10)).toBe(0)
  expect(everyFile(out)).toEqual(expected)
})
