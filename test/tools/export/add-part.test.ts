/** A copy that grows by parts, from a small organization whose state the test computes. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type ListParameters, type Moment, textOfName } from '../../../core/reading/index.ts'
import { createSigningKey, textOfSigningKey } from '../../../core/runtime/signing/note.ts'
import { sliceSearch } from '../../../core/store/read/slice-documents.ts'
import { Exact } from '../../../schemas/money.ts'
import type { ListKind } from '../../../schemas/stored/documents.ts'
import { addPart } from '../../../tools/export/add-part.ts'
import { type ExportOptions, type ExportSteps, exportOrganization } from '../../../tools/export/export.ts'
import { runningProcesses } from '../../../tools/export/lock.ts'
import type { Manifest } from '../../../tools/export/manifest.ts'
import { CommandError } from '../../../tools/failures.ts'

type Change = { readonly kind: ListKind; readonly id: string; readonly body: Record<string, unknown> }
const rep = (id: string, name: string): Change => ({ kind: 'reps', id, body: { id, name } })
const money = { rep_id: 'rep_A', period_id: 'period_A', currency: 'EUR' }
const payout = (id: string, net_amount: string, supersedes_id: string | null = null): Change => {
  const line_items = [{ id: 'line_1', category: 'earned', description: 'Deal', amount: net_amount, deal_id: null }]
  return {
    kind: 'payouts',
    id,
    body: { id, ...money, net_amount, earned_amount: net_amount, supersedes_id, line_items },
  }
}
const payment = (id: string, amount: string): Change => ({ kind: 'payroll_files', id, body: { id, ...money, amount } })

const history: readonly Change[] = [
  rep('rep_A', 'Ines'),
  { kind: 'periods', id: 'period_A', body: { id: 'period_A', kind: 'month', name: 'January' } },
  payout('payout_A', '10.50'),
  rep('rep_B', 'Omar'),
  payout('payout_B', '3'),
  payout('payout_C', '11.25', 'payout_A'),
  payout('payout_D', '12.75', 'payout_C'),
  payment('payroll_A', '11.25'),
  rep('rep_A', 'Ines N.'),
  payout('payout_E', '4', 'payout_B'),
  payment('payroll_B', '-1.25'),
]
const ordinalAt = (seq: number): number => history.slice(0, seq + 1).filter(({ id }) => id === history[seq]?.id).length
const nameAt = (seq: number): string => {
  const { kind = '', id = '' } = history[seq] ?? {}
  return kind === 'reps' || kind === 'periods' ? `${id}.${ordinalAt(seq)}` : id
}
const seqOf = (change: string): number => history.findIndex((_, seq) => nameAt(seq) === change)

const generation = { name: 'g1', source: 's', partitions: 1, rules: 2 }
const position = { generation, publishedTo: 100, time: 7 }
const hitOf = (seq: number): string => {
  const { kind, id, body } = history[seq] as Change
  const text = JSON.stringify(body)
  const source = `{"org_id":"org_a","first_seq":${seq},"seq":${seq},"ordinal":${ordinalAt(seq)},"hash":"h","body_bytes":${Buffer.byteLength(text)},"body":${text}}`
  return `{"_index":"p-g1-${kind}","_id":"org_a:${id}:${seq}","_score":null,"_source":${source},"sort":[${seq}]}`
}
const kinds = ['reps', 'periods', 'payouts', 'payroll_files'] as const
const hitsOf = (seqs: readonly number[]) =>
  sliceSearch(
    Buffer.from(
      `{"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"max_score":null,"hits":[${seqs.map(hitOf).join()}]}}`,
    ),
    kinds.map(kind => ({ name: `p-g1-${kind}`, kind })),
    'org_a',
  )
/** The changes of a list that are current as of a change. */
const currentAt = (kind: ListKind, end: number): number[] => {
  const all = history.flatMap((change, seq) => (change.kind === kind && seq <= end ? [seq] : []))
  const later = (seq: number) =>
    all.some(
      other =>
        other > seq &&
        (history[other]?.id === history[seq]?.id || history[other]?.body.supersedes_id === history[seq]?.id),
    )
  return all.filter(seq => !later(seq))
}
const sumOf = (seqs: readonly number[], field: string): string =>
  seqs.reduce((sum, seq) => sum.plus(String(history[seq]?.body[field])), new Exact('0')).toFixed()

/** `end`: the last change that is published. `turn`: called for each page. */
const stepsOf = (end: number, more: Partial<ExportSteps> = {}, turn: () => void = () => undefined): ExportSteps => {
  const endOf = (asOf: Moment | undefined): number => {
    if (asOf === undefined) return end
    const seq = asOf.kind === 'change' ? seqOf(textOfName(asOf.name)) : end
    if (seq === -1) throw new CommandError('--as-of: there is no such change of this organization')
    return seq
  }
  const steps = {
    readTotals: async (_: string, asOf: Moment | undefined) => {
      const seq = endOf(asOf)
      const [owing, paying] = [currentAt('payouts', seq), currentAt('payroll_files', seq)]
      const row = {
        ...{ period_id: 'period_A', currency: 'EUR', open_amount: '0' },
        ...{ owed_amount: sumOf(owing, 'net_amount'), owed_count: owing.length },
        ...{ paid_amount: sumOf(paying, 'amount'), paid_count: paying.length },
      }
      const totals = { last_change_id: nameAt(seq), last_sequence: seq + 1, totals: [row] }
      return {
        position: { ...position, publishedTo: seq + 1 },
        totals,
        last: { id: nameAt(seq), sequence: seq + 1, seq, at: 1 },
      }
    },
    readList: async (_: string, list: ListKind | 'changes', { startingAfter, asOf }: ListParameters) => {
      turn()
      const until = endOf(asOf)
      const all = list === 'changes' ? history.map((_, seq) => seq).filter(seq => seq <= until) : currentAt(list, until)
      const cursor = startingAfter && textOfName(startingAfter)
      const from =
        cursor === undefined
          ? 0
          : all.findIndex(seq => nameAt(seq) === cursor || (list !== 'changes' && history[seq]?.id === cursor)) + 1
      return { position, hits: hitsOf(all.slice(from, from + 2)), hasMore: from + 2 < all.length }
    },
    readStatement: async (_: string, id: string) => {
      turn()
      const found = history.find(change => change.kind === 'payouts' && change.id === id)
      return Buffer.from(JSON.stringify({ ...found?.body, calculation_trace: [] }))
    },
    countOf: async (_: string, kind: ListKind, { publishedTo }: { publishedTo: number }) =>
      currentAt(kind, publishedTo - 1).length,
    out: () => undefined,
    say: () => undefined,
    draw: undefined,
    signal: new AbortController().signal,
    sourceOf: async () => ({ topic: 't', partition: 0, rules_version: 2 }),
    sleep: async () => undefined,
    now: () => 1_000_000,
    processes: runningProcesses,
    ...more,
  }
  return steps as unknown as ExportSteps
}

const directory = (): string => {
  const out = mkdtempSync(join(tmpdir(), 'growing-'))
  onTestFinished(() => rmSync(out, { recursive: true, force: true }))
  return out
}
const add = (out: string, end: number, more: Partial<ExportOptions> = {}, steps = stepsOf(end)) =>
  addPart({ org: 'org_a', asOf: undefined, out, parquet: true, json: false, ...more }, steps)
const everyFile = (out: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(out, { recursive: true, encoding: 'utf8' })
      .filter(name => /\.\w+$/.test(name))
      .sort()
      .map(name => [name, readFileSync(join(out, name), 'latin1')]),
  )
const idsIn = (out: string, part: string, name: string): string[] =>
  readFileSync(join(out, part, `${name}.ndjson`), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line).id)
const manifestOf = (out: string, part: string): Manifest =>
  JSON.parse(readFileSync(join(out, part, 'manifest.json'), 'utf8'))
const partsIn = (out: string): string[] => readdirSync(out).sort()

/** A copy of three parts: up to the fifth change, the eighth, and the last. */
const ends = [4, 7, 10] as const
const grown = async (more: Partial<ExportOptions> = {}): Promise<string> => {
  const out = directory()
  for (const end of ends) expect(await add(out, end, more)).toBe(0)
  return out
}

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
  for (const missing of [{ countOf: async () => 1 }, { readStatement: async () => Buffer.from('{}\n{}') }]) {
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
