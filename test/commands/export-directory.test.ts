/** What an export does with a directory that is not its own alone. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { cutSearch } from '../../api/cut-documents.ts'
import { type ExportSteps, exportOrganization } from '../../commands/export/export.ts'

const generation = { name: 'g1', source: 's', partitions: 1, rules: 2 }
const position = { generation, publishedTo: 100, time: 7 }

const hitOf = (kind: string, id: string, seq: number) => {
  const body = JSON.stringify({ id })
  const source = `{"org_id":"org_a","first_seq":${seq},"seq":${seq},"hash":"h","body_bytes":${body.length},"body":${body}}`
  return `{"_index":"p-g1-${kind}","_id":"org_a:${id}:${seq}","_score":null,"_source":${source},"sort":[${seq}]}`
}
const pageOf = (kind: string, ids: readonly string[], from: number) =>
  cutSearch(
    Buffer.from(
      `{"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"max_score":null,"hits":[${ids.map((id, place) => hitOf(kind, id, from + place)).join()}]}}`,
    ),
    [`p-g1-${kind}`],
    'org_a',
  )

/** An organization that has six reps, two a page, and nothing else. */
const stepsOf = (turn: () => Promise<void> = async () => undefined) => {
  const reps = Array.from({ length: 6 }, (_, place) => `rep_${place}`)
  const readers = {
    totals: async () => ({
      position,
      totals: { last_change_id: 'rep_5.1', totals: [] },
      last: { id: 'rep_5.1', seq: 5, at: 1 },
    }),
    list: async (_: string, kind: string, { startingAfter }: { startingAfter?: { id: string } }) => {
      await turn()
      const all = kind === 'reps' ? reps : []
      const from = startingAfter ? all.indexOf(startingAfter.id) + 1 : 0
      return { position, hits: pageOf(kind, all.slice(from, from + 2), from), hasMore: from + 2 < all.length }
    },
  }
  const signal = new AbortController().signal
  return {
    readers,
    patiently: (read: (signal: AbortSignal) => unknown) => read(signal),
    out: () => undefined,
    say: () => undefined,
    draw: undefined,
    signal,
    sourceOf: async () => ({ topic: 't', partition: 0, rules_version: 2 }),
  } as unknown as ExportSteps
}
const directory = (): string => {
  const out = mkdtempSync(join(tmpdir(), 'export-'))
  onTestFinished(() => rmSync(out, { recursive: true }))
  return out
}
const options = (out: string) => ({ org: 'org_a', asOf: undefined, out, parquet: false, json: false })

test('a file that is of no export is not taken for a part of this one', async () => {
  for (const name of ['reps.ndjson', 'payroll_files.ndjson.partial']) {
    const out = directory()
    writeFileSync(join(out, name), '{"id":"rep_of_another_organization"}\n')
    await expect(exportOrganization(options(out), stepsOf())).rejects.toThrow(/of no export/)
    expect(readdirSync(out)).toEqual([name])
  }
})

test('two exports into one directory never leave a record there twice under a manifest', async () => {
  const out = directory()
  const slowly = () => new Promise<void>(resolve => setTimeout(resolve, 20))
  const first = exportOrganization(options(out), stepsOf(slowly))
  while (!existsSync(join(out, 'reps.ndjson.partial'))) await new Promise(resolve => setTimeout(resolve, 1))
  const ended = await Promise.allSettled([first, exportOrganization(options(out), stepsOf(slowly))])
  expect(ended.some(({ status }) => status === 'rejected')).toBe(true)
  if (readdirSync(out).includes('manifest.json')) {
    const lines = readFileSync(join(out, 'reps.ndjson'), 'utf8').split('\n').slice(0, -1)
    expect(lines).toEqual(Array.from({ length: 6 }, (_, place) => JSON.stringify({ id: `rep_${place}` })))
  }
})
