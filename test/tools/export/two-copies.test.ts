/** An export, and totals, while another copy of the projection is live for some of their reads. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Page } from '../../../core/reading/index.ts'
import { type ExportSteps, exportOrganization } from '../../../tools/export/export.ts'
import { ofOneCopy } from '../../../tools/export/readers.ts'
import { showTotals } from '../../../tools/export/totals.ts'
import { growingEnds, growingSteps } from '../../support/growing-copies.ts'

const end = growingEnds.at(-1) ?? 0
const organization = 'org_a'

/** Changes the first page of periods only. */
const changing = (change: (page: Page) => Page, more: Partial<ExportSteps> = {}): ExportSteps => {
  const steps = growingSteps(end, more)
  let reads = 0
  const readList: ExportSteps['readList'] = async (org, list, parameters) => {
    const page = await steps.readList(org, list, parameters)
    return list === 'periods' && reads++ === 0 ? change(page) : page
  }
  return { ...steps, readList }
}
const readAgain = (page: Page): Page => ({ ...page, position: { ...page.position, takenBack: 1 } })
const made = (page: Page, more: object): Page => {
  return { ...page, position: { ...page.position, generation: { ...page.position.generation, ...more } } }
}
const withOtherText = (page: Page): Page => {
  const hits = page.hits.map(hit => {
    return { ...hit, bytes: Buffer.from(hit.bytes.toString('latin1').replace('"name":"', '"NAME":"'), 'latin1') }
  })
  return { ...page, hits }
}

const exported = async (steps: ExportSteps) => {
  const out = mkdtempSync(join(tmpdir(), 'copies-'))
  onTestFinished(() => rmSync(out, { recursive: true }))
  const options = { org: organization, asOf: undefined, out, parquet: false, json: false }
  const answer = await exportOrganization(options, steps).catch((error: Error) => error.message.replace(out, 'out'))
  return { answer, isFinished: existsSync(join(out, 'manifest.json')) }
}

test('an export that another copy answered in part ends only if the records are those of the live one', async () => {
  expect(await exported(changing(page => made(page, { id: 'another' })))).toEqual({ answer: 0, isFinished: true })
  for (const other of [readAgain, (page: Page) => made(page, { id: 'another' })]) {
    expect(await exported(changing(page => withOtherText(other(page))))).toEqual({
      answer: 'out: a record changed meanwhile, in periods.ndjson: delete this directory, and export again',
      isFinished: false,
    })
  }
})

test('an export ends at a page that other rules decided, also if these rules are not in force at its end', async () => {
  expect(await exported(changing(page => made(page, { rules: 3 })))).toEqual({
    answer: 'other rules were made live meanwhile: export into an empty directory',
    isFinished: false,
  })
})

test('totals with the periods of another copy are refused', async () => {
  const printed: string[] = []
  const options = { org: organization, asOf: undefined, kind: undefined, svg: undefined, json: false }
  const out = (text: string): void => void printed.push(text)
  expect(
    await showTotals(
      options,
      changing(page => page, { out }),
    ),
  ).toBe(0)
  expect(printed.splice(0)).toHaveLength(1)
  for (const other of [readAgain, (page: Page) => made(page, { id: 'another' })]) {
    const why = 'another projection was made live meanwhile, or was read again: run the same again'
    await expect(showTotals(options, changing(other, { out }))).rejects.toThrow(why)
  }
  expect(printed).toEqual([])
})

test('a statement of another copy is refused', async () => {
  const steps = growingSteps(end)
  const readStatement: ExportSteps['readStatement'] = async (...asked) => {
    const { text, position } = await steps.readStatement(...asked)
    return { text, position: { ...position, takenBack: 1 } }
  }
  const readers = ofOneCopy({ ...steps, readStatement }, 'close again')
  await readers.readTotals(organization, undefined)
  await expect(readers.readStatement(organization, 'payout_1', undefined)).rejects.toThrow(
    'was read again: close again',
  )
})
