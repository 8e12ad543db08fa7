/** A person is forgotten between two runs of a copy that grows: the next run names the person, and adds nothing. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Hit } from '../../../core/store/index.ts'
import { type ExportSteps, LAST_PART_FILE } from '../../../tools/export/export.ts'
import { copiedFiles, emptyCopy, growingEnds, growingSteps, growTo, partsOfCopy } from '../../support/growing-copies.ts'

const [FIRST, SECOND, LAST] = growingEnds
const COMPARED = 'somebody may have been forgotten: all texts about people are compared'

/** The answers of the readers now. `forgotten`: these texts are others, of the same length. */
const createNow = () => {
  const now = { generation: 'made first', forgotten: /(?!)/g, receipts: ['k1.erased.json'], said: [] as string[] }
  const other = (hit: Hit): Hit => ({
    ...hit,
    bytes: Buffer.from(hit.bytes.toString('latin1').replaceAll(now.forgotten, '****'), 'latin1'),
  })
  const stepsUntil = (end: number): ExportSteps => {
    const steps = growingSteps(end, {
      say: line => void now.said.push(line),
      readReceipts: async () => now.receipts,
    })
    return {
      ...steps,
      readTotals: async (...asked) => {
        const read = await steps.readTotals(...asked)
        const generation = { ...read.position.generation, id: now.generation }
        return { ...read, position: { ...read.position, generation } }
      },
      readList: async (...asked) => {
        const page = await steps.readList(...asked)
        return { ...page, hits: page.hits.map(other) }
      },
    }
  }
  const grow = (out: string, end: number, open = false) => growTo(out, end, { open }, stepsUntil(end))
  return { now, grow }
}

test.each([
  ['a name', /Ines/g],
  ['a label of a payment', /IBAN/g],
])('after a redaction of %s a copy gets no further part: the run names the person and the command', async (_, text) => {
  const { now, grow } = createNow()
  const out = emptyCopy()
  for (const end of [FIRST, SECOND]) expect(await grow(out, end)).toBe(0)
  Object.assign(now, { generation: 'made of the redacted log', forgotten: text })
  const before = copiedFiles(out)
  for (const end of [LAST, SECOND]) {
    const error = await grow(out, end).catch((caught: unknown) => caught)
    expect(String(error)).toContain(`${out} has texts about people who were forgotten since: rep_A. Make a copy anew: `)
    expect(String(error)).toContain(
      'npx commission projection export --org org_a --out DIR --add --parquet; then delete',
    )
    expect(String(error)).not.toMatch(/Ines|IBAN/)
    expect([partsOfCopy(out), copiedFiles(out)]).toEqual([['part-000001', 'part-000002'], before])
  }
  const anew = emptyCopy()
  for (const end of [SECOND, LAST]) expect(await grow(anew, end)).toBe(0)
  expect(JSON.stringify(copiedFiles(anew))).not.toMatch(text)
})

test('after an erasure a copy with opened texts gets no further part, and names all people', async () => {
  const { now, grow } = createNow()
  const out = emptyCopy()
  expect(await grow(out, FIRST, true)).toBe(0)
  Object.assign(now, { receipts: ['k1.erased.json', 'k2.erased.json'], forgotten: /Ines|Omar/g })
  await expect(grow(out, LAST, true)).rejects.toThrow('who were forgotten since: rep_A, rep_B. Make a copy anew: ')
  expect(partsOfCopy(out)).toEqual(['part-000001'])
})

test('another generation with the same texts, and an erasure of others, are compared once and end no copy', async () => {
  for (const open of [false, true]) {
    const { now, grow } = createNow()
    const out = emptyCopy()
    expect(await grow(out, FIRST, open)).toBe(0)
    expect(await grow(out, SECOND, open)).toBe(0)
    expect(now.said).not.toContain(COMPARED)
    Object.assign(now, open ? { receipts: ['k2.erased.json'] } : { generation: 'made later' })
    expect(await grow(out, SECOND, open)).toBe(0)
    expect(now.said.splice(0)).toContain(COMPARED)
    expect(await grow(out, LAST, open)).toBe(0)
    expect(now.said).not.toContain(COMPARED)
  }
})

test('sealed texts do not rest on erasures', async () => {
  const { now, grow } = createNow()
  const out = emptyCopy()
  expect(await grow(out, FIRST)).toBe(0)
  Object.assign(now, { receipts: ['k2.erased.json'] })
  expect(await grow(out, LAST)).toBe(0)
  expect(now.said).not.toContain(COMPARED)
})

test('a copy of an earlier version, which does not say what its texts rest on, is compared', async () => {
  const { now, grow } = createNow()
  const out = emptyCopy()
  expect(await grow(out, FIRST)).toBe(0)
  const file = join(out, LAST_PART_FILE)
  const { texts: _, ...earlier } = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify(earlier))
  Object.assign(now, { forgotten: /Omar/g })
  await expect(grow(out, LAST)).rejects.toThrow('who were forgotten since: rep_B. ')
})

test('a part that an interrupted run finished before somebody was forgotten is never added', async () => {
  for (const parts of [1, 2]) {
    const { now, grow } = createNow()
    const out = emptyCopy()
    if (parts === 2) expect(await grow(out, FIRST)).toBe(0)
    const named = parts === 2 ? readFileSync(join(out, LAST_PART_FILE)) : undefined
    expect(await grow(out, SECOND)).toBe(0)
    // As if the run had been killed before the part got its name.
    renameSync(join(out, `part-00000${parts}`), join(out, 'unfinished'))
    if (named) writeFileSync(join(out, LAST_PART_FILE), named)
    else rmSync(join(out, LAST_PART_FILE))
    Object.assign(now, { generation: 'made of the redacted log', forgotten: /Ines/g })
    for (let run = 0; run < 2; run++) {
      await expect(grow(out, SECOND), `run ${run}`).rejects.toThrow('who were forgotten since: rep_A. ')
    }
    expect(partsOfCopy(out).filter(name => name.startsWith('part-'))).toHaveLength(parts - 1)
  }
})
