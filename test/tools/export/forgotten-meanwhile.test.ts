/** A person is forgotten while an export runs, or between two runs of it: no export ends with the texts of before. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createOpenRecords } from '../../../core/reading/index.ts'
import type { Hit } from '../../../core/store/index.ts'
import { sliceSearch } from '../../../core/store/read/slice-documents.ts'
import type { ListKind } from '../../../schemas/stored/documents.ts'
import { addPart } from '../../../tools/export/add-part.ts'
import { type ExportOptions, type ExportSteps, exportOrganization } from '../../../tools/export/export.ts'
import { runningProcesses } from '../../../tools/export/lock.ts'
import { openSealKeys } from '../../../tools/export/seal-keys.ts'
import { emptyCopy, growingEnds, growingSteps, growTo, partsOfCopy } from '../../support/growing-copies.ts'
import { createKeys, seal } from '../../support/seal.ts'

const REPS: readonly string[] = ['rep_1', 'rep_2', 'rep_3', 'rep_4']
const LAST = 'rep_4.1'

const hitsOf = (kind: ListKind, ids: readonly string[], nameOf: (id: string) => string): Hit[] => {
  const texts = ids.map(id => {
    const seq = REPS.indexOf(id)
    const body = JSON.stringify({ id, name: nameOf(id) })
    const source = `{"org_id":"org_a","first_seq":${seq},"ordinal":1,"seq":${seq},"hash":"h","body_bytes":${body.length},"body":${body}}`
    return `{"_index":"p-g1-${kind}","_id":"org_a:${id}:${seq}","_score":null,"_source":${source},"sort":[${seq}]}`
  })
  const head = '{"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0}'
  return sliceSearch(
    Buffer.from(`${head},"hits":{"max_score":null,"hits":[${texts.join()}]}}`),
    [{ name: `p-g1-${kind}`, kind }],
    'org_a',
  )
}

/** An organization with four reps, two per page. `onPage` is called after each page of reps or of changes. */
const createWorld = () => {
  const world = {
    generation: 'made first',
    name: 'Ines',
    opened: 'Ines',
    receipts: [] as string[],
    onPage: (): void => undefined,
  }
  const stopping = { now: new AbortController() }
  const position = () => ({
    generation: { name: 'g1', id: world.generation, source: 's', partitions: 1, rules: 2 },
    publishedTo: 100,
    time: 7,
  })
  const steps = () =>
    ({
      readTotals: async () => ({
        position: position(),
        totals: { last_change_id: LAST, totals: [] },
        last: { id: LAST, seq: 3, at: 1 },
      }),
      readList: async (_: string, list: ListKind, { startingAfter }: { startingAfter?: { id: string } }) => {
        const all: readonly string[] = list === 'reps' ? REPS : []
        const from = startingAfter ? all.indexOf(startingAfter.id) + 1 : 0
        const name = world.name
        if (list === 'reps') world.onPage()
        const hits = hitsOf('reps', all.slice(from, from + 2), () => name)
        return { position: position(), hits: [...hits], hasMore: from + 2 < all.length }
      },
      openRecords: () => ({
        hits: async (_: string, hits: readonly Hit[]) => {
          const ids = hits.map(({ bytes, bodyStart, bodyEnd }) =>
            JSON.parse(bytes.toString('utf8', bodyStart, bodyEnd)),
          )
          return {
            hits: hitsOf(
              'reps',
              ids.map(({ id }) => id),
              () => world.opened,
            ),
            state: 'o',
          }
        },
      }),
      out: () => undefined,
      say: () => undefined,
      draw: undefined,
      signal: stopping.now.signal,
      sourceOf: async () => ({ topic: 't', partition: 0, rules_version: 2 }),
      countOf: async (_: string, kind: string) => (kind === 'reps' ? REPS.length : 0),
      sleep: async () => undefined,
      now: () => 1_000_000,
      processes: runningProcesses,
      readReceipts: async () => world.receipts,
    }) as unknown as ExportSteps
  return { world, stopping, steps }
}

const optionsFor = (more: Partial<ExportOptions>): ExportOptions => {
  const out = mkdtempSync(join(tmpdir(), 'forgotten-'))
  onTestFinished(() => rmSync(out, { recursive: true }))
  return { org: 'org_a', asOf: undefined, out, parquet: false, json: false, ...more }
}
const isFinished = ({ out }: ExportOptions): boolean => existsSync(join(out, 'manifest.json'))
const repsIn = ({ out }: ExportOptions): string => readFileSync(join(out, 'reps.ndjson'), 'utf8')
const REFUSED = /a text about a person changed meanwhile, in reps\.ndjson: delete this directory/

/** Does something once, after this many pages. */
const after = (pages: number, act: () => void) => {
  let count = 0
  return (): void => void (++count === pages && act())
}

test('a key that is destroyed while an export opens texts: no manifest, also not from the same command again', async () => {
  for (const pages of [1, 2]) {
    const { world, steps } = createWorld()
    const options = optionsFor({ open: true })
    world.onPage = after(pages + 1, () => Object.assign(world, { opened: '' }))
    await expect(exportOrganization(options, steps())).rejects.toThrow(REFUSED)
    await expect(exportOrganization(options, steps())).rejects.toThrow(REFUSED)
    expect(isFinished(options)).toBe(false)
    const anew = optionsFor({ open: true })
    expect(await exportOrganization(anew, steps())).toBe(0)
    expect(repsIn(anew)).not.toContain('Ines')
  }
})

test('a key that was held when it was destroyed, before the texts are read again: no manifest', async t => {
  const { directory, sources, putReceipt } = createKeys(t, ['k1'])
  const { steps } = createWorld()
  // Keys are never too old: the clock stands still.
  const openKeys = openSealKeys(sources, { elapsed: () => 0, later: () => () => undefined, say: () => undefined })
  const sealed = (id: string) => seal('Ines', { keyId: 'k1', org: 'org_a', record: id, field: 'name' })
  const { position } = await steps().readTotals('org_a', undefined)
  const page = { position, hits: [...hitsOf('reps', REPS, sealed)], hasMore: false }
  const run = (options: ExportOptions, say: (line: string) => void = () => undefined) =>
    exportOrganization(options, {
      ...steps(),
      readList: (async (_: string, list: string) =>
        list === 'reps' ? page : { ...page, hits: [] }) as unknown as ExportSteps['readList'],
      openRecords: () => createOpenRecords(openKeys()),
      readReceipts: async () => readdirSync(directory),
      say,
    })
  const options = optionsFor({ open: true })
  const forget = (line: string) => void (line.startsWith('payroll_files: ') && putReceipt('k1'))
  await expect(run(options, forget)).rejects.toThrow(REFUSED)
  expect(isFinished(options)).toBe(false)
  expect(repsIn(options)).toContain('Ines')
  const anew = optionsFor({ open: true })
  expect(await run(anew)).toBe(0)
  expect(repsIn(anew)).toContain('"erased":true')
})

test('a key that is destroyed while the texts are read again, after those of its person: they are read once more', async () => {
  const { world, steps } = createWorld()
  const options = optionsFor({ open: true })
  const lines = steps()
  let readings = 0
  const readList: ExportSteps['readList'] = async (org, list, parameters) => {
    // The reps were read before.
    if (list === 'payroll_files' && ++readings === 2) Object.assign(world, { opened: '', receipts: ['k1.erased'] })
    return lines.readList(org, list, parameters)
  }
  await expect(exportOrganization(options, { ...lines, readList })).rejects.toThrow(REFUSED)
  expect(isFinished(options)).toBe(false)
})

test('a key that is destroyed between two runs of an export that opens texts', async () => {
  const { world, stopping, steps } = createWorld()
  const options = optionsFor({ open: true })
  world.onPage = after(2, () => stopping.now.abort())
  expect(await exportOrganization(options, steps())).toBe(1)
  stopping.now = new AbortController()
  Object.assign(world, { opened: '' })
  await expect(exportOrganization(options, steps())).rejects.toThrow(REFUSED)
  expect(isFinished(options)).toBe(false)
})

test('a redacted generation that becomes live while an export runs, or between two runs of it', async () => {
  const redact = (world: object) => Object.assign(world, { generation: 'made later', name: 'sealed:v1:redacted-x:y' })
  {
    const { world, steps } = createWorld()
    const options = optionsFor({})
    world.onPage = after(2, () => redact(world))
    await expect(exportOrganization(options, steps())).rejects.toThrow(REFUSED)
    expect(isFinished(options)).toBe(false)
  }
  const { world, stopping, steps } = createWorld()
  const options = optionsFor({})
  world.onPage = after(2, () => stopping.now.abort())
  expect(await exportOrganization(options, steps())).toBe(1)
  stopping.now = new AbortController()
  redact(world)
  await expect(exportOrganization(options, steps())).rejects.toThrow(REFUSED)
  expect(isFinished(options)).toBe(false)
})

test('a generation with texts from before a redaction that is live for one page of an export only', async () => {
  const { world, steps } = createWorld()
  const redacted = { generation: 'made first', name: 'sealed:v1:redacted-x:y' }
  Object.assign(world, redacted)
  const options = optionsFor({})
  let pages = 0
  world.onPage = () => void Object.assign(world, ++pages === 1 ? { generation: 'made before', name: 'Ines' } : redacted)
  await expect(exportOrganization(options, steps())).rejects.toThrow(REFUSED)
  expect(isFinished(options)).toBe(false)
})

test('another generation with the same texts ends no export, and without one nothing is read twice', async () => {
  const { world, steps } = createWorld()
  let pages = 0
  world.onPage = () => void pages++
  const same = optionsFor({})
  expect(await exportOrganization(same, steps())).toBe(0)
  expect(pages).toBe(2)
  world.onPage = after(2, () => Object.assign(world, { generation: 'made later' }))
  const options = optionsFor({})
  expect(await exportOrganization(options, steps())).toBe(0)
  expect(repsIn(options)).toBe(repsIn(same))
})

test('a part of a copy that grows is no exception', async () => {
  const { world, steps } = createWorld()
  const options = optionsFor({ open: true })
  world.onPage = after(2, () => Object.assign(world, { opened: '' }))
  await expect(addPart(options, steps())).rejects.toThrow(REFUSED)
  expect(partsOfCopy(options.out)).toEqual(['unfinished'])
})

const nobody: ReadonlySet<ListKind> = new Set()

/** Opens nothing: the texts are there as they are. Those of `forgotten` kinds are others, of the same length. */
const openingSteps = (end: number, forgotten: () => ReadonlySet<ListKind>, say = (_: string): void => undefined) => {
  const other = (hit: Hit): Hit => ({
    ...hit,
    bytes: Buffer.from(hit.bytes.toString('latin1').replaceAll(/Ines|Omar|IBAN/g, '****'), 'latin1'),
  })
  const opening = {
    hits: async (_: string, hits: readonly Hit[]) => ({
      hits: hits.map(hit => (forgotten().has(hit.kind) ? other(hit) : hit)),
      state: undefined,
    }),
  }
  const openRecords = (() => opening) as unknown as NonNullable<ExportSteps['openRecords']>
  return growingSteps(end, { say, openRecords })
}

describe.each([
  ['payroll_files', 'a label of a payment'],
  ['reps', 'a name'],
] as const)('of %s', (kind, what) => {
  /** After the last file was written, and before its texts are read again. */
  const forgottenAtEnd = (end: number) => {
    let forgotten = nobody
    return openingSteps(
      end,
      () => forgotten,
      line => {
        if (line.startsWith('payroll_files: ')) forgotten = new Set([kind])
      },
    )
  }
  const refused = new RegExp(`a text about a person changed meanwhile, in ${kind}\\.ndjson: delete this directory`)

  test(`${what} that is forgotten at the end of a whole export ends it`, async () => {
    const [, , end = 0] = growingEnds
    const options = optionsFor({ open: true })
    await expect(exportOrganization(options, forgottenAtEnd(end))).rejects.toThrow(refused)
    expect(isFinished(options)).toBe(false)
  })

  test(`${what} that is forgotten at the end of a part with changes only: no part is added`, async () => {
    const [first = 0, , last = 0] = growingEnds
    const out = emptyCopy()
    expect(
      await growTo(
        out,
        first,
        { open: true },
        openingSteps(first, () => nobody),
      ),
    ).toBe(0)
    await expect(growTo(out, last, { open: true }, forgottenAtEnd(last))).rejects.toThrow(refused)
    expect(partsOfCopy(out)).toEqual(['part-000001', 'unfinished'])
  })
})

test('a later part that opens texts reads the changes twice, and one with sealed texts once', async () => {
  const [first = 0, , last = 0] = growingEnds
  for (const [open, walks] of [
    [true, 2],
    [false, 1],
  ] as const) {
    const out = emptyCopy()
    expect(
      await growTo(
        out,
        first,
        { open },
        openingSteps(first, () => nobody),
      ),
    ).toBe(0)
    const steps = openingSteps(last, () => nobody)
    let pages = 0
    const readList: ExportSteps['readList'] = (org, list, parameters) => {
      if (list === 'changes') pages++
      return steps.readList(org, list, parameters)
    }
    expect(await growTo(out, last, { open }, { ...steps, readList })).toBe(0)
    expect(pages).toBe(walks * Math.ceil((last - first) / 2))
  }
})
