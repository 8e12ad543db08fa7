/** Exports into a directory that holds other files or that another export uses. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { StopError } from '../../core/runtime/failures.ts'
import { sliceSearch } from '../../core/store/read/slice-documents.ts'
import type { ListKind } from '../../schemas/stored/documents.ts'
import { type ExportSteps, exportOrganization } from '../../tools/export/export.ts'
import { runningProcesses } from '../../tools/export/lock.ts'
import { CommandError, messageOf, Stopped } from '../../tools/failures.ts'
import { disk } from '../support/watched-disk.ts'

vi.mock('node:fs/promises', async original => (await import('../support/watched-disk.ts')).watchDisk(await original()))

const generation = { name: 'g1', source: 's', partitions: 1, rules: 2 }
const position = { generation, publishedTo: 100, time: 7 }

const hitOf = (kind: string, id: string, seq: number) => {
  const body = JSON.stringify({ id })
  const source = `{"org_id":"org_a","first_seq":${seq},"seq":${seq},"hash":"h","body_bytes":${body.length},"body":${body}}`
  return `{"_index":"p-g1-${kind}","_id":"org_a:${id}:${seq}","_score":null,"_source":${source},"sort":[${seq}]}`
}
const pageOf = (kind: ListKind, ids: readonly string[], from: number) =>
  sliceSearch(
    Buffer.from(
      `{"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"max_score":null,"hits":[${ids.map((id, place) => hitOf(kind, id, from + place)).join()}]}}`,
    ),
    [{ name: `p-g1-${kind}`, kind }],
    'org_a',
  )

/** An organization with six reps, two per page, and nothing else. */
const stepsOf = (turn: () => Promise<void> = async () => undefined, more: Partial<ExportSteps> = {}) => {
  const reps = Array.from({ length: 6 }, (_, place) => `rep_${place}`)
  const readers = {
    readTotals: async () => ({
      position,
      totals: { last_change_id: 'rep_5.1', totals: [] },
      last: { id: 'rep_5.1', seq: 5, at: 1 },
    }),
    readList: async (_: string, kind: ListKind, { startingAfter }: { startingAfter?: { id: string } }) => {
      await turn()
      const all = kind === 'reps' ? reps : []
      const from = startingAfter ? all.indexOf(startingAfter.id) + 1 : 0
      return { position, hits: pageOf(kind, all.slice(from, from + 2), from), hasMore: from + 2 < all.length }
    },
  }
  const signal = new AbortController().signal
  return {
    ...readers,
    out: () => undefined,
    say: () => undefined,
    draw: undefined,
    signal,
    sourceOf: async () => ({ topic: 't', partition: 0, rules_version: 2 }),
    countOf: async (_: string, kind: string) => (kind === 'reps' ? reps.length : 0),
    sleep: async () => undefined,
    now: () => 1_000_000,
    processes: runningProcesses,
    ...more,
  } as unknown as ExportSteps
}
const directory = (): string => {
  const out = mkdtempSync(join(tmpdir(), 'export-'))
  onTestFinished(() => rmSync(out, { recursive: true }))
  return out
}
const options = (out: string) => ({ org: 'org_a', asOf: undefined, out, parquet: false, json: false })

test('a file that belongs to no export is not taken for a part of this one', async () => {
  for (const name of ['reps.ndjson', 'payroll_files.ndjson.partial']) {
    const out = directory()
    writeFileSync(join(out, name), '{"id":"rep_of_another_organization"}\n')
    await expect(exportOrganization(options(out), stepsOf())).rejects.toThrow(/to no export/)
    expect(readdirSync(out)).toEqual([name])
  }
})

test('each file and table of an export is on disk before the manifest names it, and then the manifest is', async () => {
  const out = join(directory(), 'march')
  disk.done = []
  await exportOrganization({ ...options(out), csv: true }, stepsOf())
  const done = disk.done.map(one => one.replace(`${out}/`, ''))
  expect(done[0]).toBe(`sync ${dirname(out)}`)
  const [written, named] = [done.indexOf('rename manifest.json'), done.lastIndexOf('rename manifest.json')]
  for (const name of readdirSync(out)) {
    if (name === 'manifest.json') continue
    const before = done.slice(0, name.endsWith('.csv') ? named : written)
    expect([name, before.slice(before.indexOf(`rename ${name}`))]).toEqual([
      name,
      expect.arrayContaining([`sync ${name}`, `sync ${out}`]),
    ])
  }
  expect(named).toBeGreaterThan(written)
  expect(done.slice(named)).toContain(`sync ${out}`)
})

test('two exports into one directory never leave a record twice under a manifest', async () => {
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

const all = Array.from({ length: 6 }, (_, place) => JSON.stringify({ id: `rep_${place}` }))
const repsIn = (out: string): string[] => readFileSync(join(out, 'reps.ndjson'), 'utf8').split('\n').slice(0, -1)
const locksIn = (out: string): string[] => readdirSync(out).filter(name => name.endsWith('.lock'))

/** Pauses an export in the middle of its reps, as a frozen machine would: its files and its lock stay. */
const leaveLock = async (out: string): Promise<{ readonly go: () => void; readonly done: Promise<unknown> }> => {
  const gate = Promise.withResolvers<void>()
  let pages = 0
  const turn = async () => void (pages++ === 1 && (await gate.promise))
  const done = Promise.allSettled([exportOrganization(options(out), stepsOf(turn))])
  await expect.poll(() => pages).toBe(2)
  return { go: gate.resolve, done }
}

test('while one export writes into a directory, another one is refused and changes nothing there', async () => {
  const out = directory()
  const first = await leaveLock(out)
  const before = readdirSync(out)
  await expect(exportOrganization(options(out), stepsOf())).rejects.toThrow(
    /another export writes into .* \(process \d+ on /,
  )
  expect(readdirSync(out)).toEqual(before)
  first.go()
  expect(await first.done).toEqual([{ status: 'fulfilled', value: 0 }])
  expect(repsIn(out)).toEqual(all)
  expect(locksIn(out)).toEqual([])
})

test('the lock of a killed export blocks nobody: the next export continues its work', async () => {
  const out = directory()
  const dead = spawn(process.execPath, ['-e', '0'])
  await once(dead, 'close')
  const first = await leaveLock(out)
  const [lock = ''] = locksIn(out)
  const owner = JSON.parse(readFileSync(join(out, lock), 'utf8'))
  // First no process has this pid. Then another process has it.
  for (const change of [{ pid: dead.pid }, { started: '1' }]) {
    rmSync(join(out, lock), { force: true })
    writeFileSync(join(out, lock), JSON.stringify({ ...owner, ...change }))
    expect(await exportOrganization(options(out), stepsOf())).toBe(0)
    expect(repsIn(out)).toEqual(all)
    expect(locksIn(out)).toEqual([])
    rmSync(join(out, 'manifest.json'))
    writeFileSync(join(out, 'manifest.partial.json'), '{"organization":"org_a","as_of":"rep_5.1","rules_version":2}')
  }
  // The first export was only frozen: it sees that its lock is gone, and writes nothing more.
  const written = readdirSync(out).map(name => [name, readFileSync(join(out, name), 'utf8')])
  first.go()
  const reason = { message: expect.stringContaining('over meanwhile') }
  expect(await first.done).toMatchObject([{ status: 'rejected', reason }])
  expect(readdirSync(out).map(name => [name, readFileSync(join(out, name), 'utf8')])).toEqual(written)
})

test('an export on another machine counts as running while the mtime of its lock changes', async () => {
  const out = directory()
  const lock = join(out, 'export.00000000-0000-4000-8000-000000000000.lock')
  for (const text of ['{"host":"elsewhere","place":"another kernel","pid":1,"started":"1"}', '{"host":"else']) {
    writeFileSync(lock, text)
    let looks = 0
    const sleep = async () => {
      if (++looks === 3) utimesSync(lock, 5, 5)
    }
    await expect(exportOrganization(options(out), stepsOf(undefined, { sleep }))).rejects.toThrow(
      /another export writes/,
    )
    expect(looks).toBe(3)
    expect(readdirSync(out)).toEqual(['export.00000000-0000-4000-8000-000000000000.lock'])
  }
  const waits: number[] = []
  const sleep = async (milliseconds: number) => void waits.push(milliseconds)
  expect(await exportOrganization(options(out), stepsOf(undefined, { sleep }))).toBe(0)
  expect(waits.reduce((sum, wait) => sum + wait, 0)).toBeGreaterThan(60_000)
  expect(locksIn(out)).toEqual([])
})

test('no manifest is written if reps or periods are missing or repeated', async () => {
  for (const count of [5, 7]) {
    const out = directory()
    const steps = stepsOf(undefined, { countOf: async (_, kind) => (kind === 'reps' ? count : 0) })
    await expect(exportOrganization(options(out), steps)).rejects.toThrow(/do not add up/)
    expect(readdirSync(out)).not.toContain('manifest.json')
  }
})

test('a symbolic link in place of an export file is never written through', async () => {
  for (const name of ['reps.ndjson.partial', 'manifest.partial.json.new', 'manifest.json.new']) {
    const out = directory()
    const other = join(directory(), 'other')
    writeFileSync(other, 'of something else')
    symlinkSync(other, join(out, name))
    writeFileSync(join(out, 'manifest.partial.json'), '{"organization":"org_a","as_of":"rep_5.1","rules_version":2}')
    await exportOrganization(options(out), stepsOf()).catch(() => undefined)
    expect(readFileSync(other, 'utf8')).toBe('of something else')
  }
})

test('the directory may be a symbolic link; a damaged manifest is refused by name', async () => {
  const out = directory()
  const link = join(directory(), 'link')
  symlinkSync(out, link)
  expect(await exportOrganization(options(link), stepsOf())).toBe(0)
  expect(repsIn(out)).toEqual(all)
  writeFileSync(join(out, 'manifest.json'), '{"organization":')
  await expect(exportOrganization(options(out), stepsOf())).rejects.toThrow(/manifest\.json is not whole/)
})

test('an export that is stopped at any page says so, frees the directory, and can be continued', async () => {
  for (let stopAt = 1; stopAt <= 6; stopAt++) {
    const out = directory()
    const stopping = new AbortController()
    const said: string[] = []
    let pages = 0
    const turn = async () => void (++pages === stopAt && stopping.abort())
    const steps = stepsOf(turn, { signal: stopping.signal, say: line => void said.push(line) })
    expect(await exportOrganization(options(out), steps)).toBe(1)
    expect(said.at(-1)).toContain('the same command continues')
    expect([locksIn(out), existsSync(join(out, 'manifest.json'))]).toEqual([[], false])
    expect(await exportOrganization(options(out), stepsOf())).toBe(0)
    expect(repsIn(out)).toEqual(all)
  }
})

test('an export that was killed just before its end is completed', async () => {
  const out = directory()
  await exportOrganization(options(out), stepsOf())
  writeFileSync(join(out, 'manifest.partial.json'), '{"organization":"org_a","as_of":"rep_5.1","rules_version":2}')
  expect(await exportOrganization(options(out), stepsOf())).toBe(0)
  expect(readdirSync(out)).not.toContain('manifest.partial.json')
})

test('an export that fails says why, also if its files cannot be closed and its lock cannot be removed', async () => {
  const out = directory()
  const handle = await open(join(out, '.'), 'r')
  const sync = vi.spyOn(Object.getPrototypeOf(handle), 'sync')
  await handle.close()
  onTestFinished(() => sync.mockRestore())
  const steps = stepsOf(async () => {
    sync.mockRejectedValue(Object.assign(new Error('fsync'), { code: 'EIO', syscall: 'fsync' }))
    const lock = readdirSync(out).find(name => name.endsWith('.lock')) ?? ''
    rmSync(join(out, lock))
    mkdirSync(join(out, lock))
    throw new CommandError('Elasticsearch cannot be read')
  })
  const error = await exportOrganization(options(out), steps).catch((caught: unknown) => caught)
  expect(messageOf(error)).toMatch(/^Elasticsearch cannot be read; after that a file cannot be used: EIO; after that /)
})

test('a signal ends the watch of an export on another machine', async () => {
  const out = directory()
  writeFileSync(join(out, 'export.00000000-0000-4000-8000-000000000000.lock'), '{"host":"another"}')
  const stopping = new AbortController()
  let sleeps = 0
  const sleep = async (): Promise<void> => {
    sleeps++
    stopping.abort(new Stopped())
  }
  const steps = stepsOf(undefined, { sleep, signal: stopping.signal })
  expect(await exportOrganization(options(out), steps)).toBe(1)
  expect(sleeps).toBe(1)
  expect(locksIn(out)).toEqual(['export.00000000-0000-4000-8000-000000000000.lock'])
})

test('an export that fails while it is stopped says why; the stop itself is no error', async () => {
  const said: string[] = []
  const stopping = new AbortController()
  const stopped = new Stopped()
  let error: Error = new StopError('records_deleted', 'offset 5')
  const turn = async (): Promise<void> => {
    stopping.abort(stopped)
    throw error
  }
  const steps = stepsOf(turn, { say: line => void said.push(line), signal: stopping.signal })
  expect(await exportOrganization(options(directory()), steps)).toBe(1)
  expect(said.splice(0)).toEqual([error.message, 'stopped; the same command continues'])
  error = stopped
  expect(await exportOrganization(options(directory()), steps)).toBe(1)
  expect(said).toEqual(['stopped; the same command continues'])
})
