/**
 * Commands on the largest records: payouts of 10,000 lines and parked records of 8 MiB. The heap is 512 MB, less than
 * all records together. The test writes the documents in the form of the projector.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, inject, test } from 'vitest'
import { LINE_ITEMS_MAX, RECORD_VALUE_BYTES_MAX } from '../../schemas/limits.ts'
import { chainId, parkedId } from '../../schemas/stored/documents.ts'
import { createStore, type Store } from '../support/documents.ts'
import { fileScope } from '../support/scope.ts'
import { pathTo } from '../support/stored.ts'

const HEAP_MB = 512
/** Limit of resident memory: the heap, plus responses in flight and Node itself. */
const RESIDENT_MB = 700
const PAYOUTS = 16
const PARKED = 28
/** The number of payouts of one rep and period. */
const CHAINED = 5
const chained = Array.from({ length: CHAINED }, (_, at) => `payout_${at}`)
const TOPIC = 'commission.events'
const project = join(import.meta.dirname, '..', '..')
const file = fileScope()
const org = 'org_large'
const stores: Store[] = []

/** The value of a parked record of 8 MiB, in base64. */
const value = 'QUJD'.repeat(Math.ceil(RECORD_VALUE_BYTES_MAX / 3))
const lines = (first: string) =>
  Array.from({ length: LINE_ITEMS_MAX }, (_, at) => ({
    id: `line_${at}`,
    amount: at === 0 ? first : '0',
    description: 'Commission on a deal, in words that a publisher found fitting. '.repeat(3),
  }))

const changed = { id: 'line_9999', amount: '0', description: 'Corrected' }

const fill = async (store: Store): Promise<void> => {
  store.rep(org, 'rep_1', [{ seq: 0, name: 'Ada' }])
  store.period(org, 'period_1', [{ seq: 1, name: 'January' }])
  for (let at = CHAINED; at < PAYOUTS; at++) {
    store.payout(org, 10 + at, { id: `payout_${at}`, rep: `rep_${at}`, amount: `${at}.00`, lines: lines(`${at}.00`) })
    await store.flush()
  }
  store.payroll(org, 60, 'payroll_1', '1.00')
  // Each payout supersedes the one before, and the chain lists them.
  for (const [at, id] of chained.entries()) {
    const replaced = chained[at + 1]
    const next = replaced === undefined ? undefined : { until: 71 + at, by: replaced }
    store.payout(org, 70 + at, { id, rep: 'rep_1', amount: `${at}.00`, lines: lines(`${at}.00`) }, next)
    await store.flush()
  }
  const payouts = chained.map((id, at) => ({ seq: 70 + at, id }))
  store.putIn('chains', chainId(org, 'rep_1', 'period_1'), { org_id: org }, JSON.stringify({ payouts, payroll: [] }))
  for (let at = 0; at < PARKED; at++) await park(store, at, value)
  await store.publish(org, 1_000)
}

const partition = 0
const park = async (store: Store, at: number, value: string): Promise<void> => {
  const offset = 100 + at
  const fields = {
    code: 'rep_unknown',
    org_id: org,
    type: 'x',
    event_id: 'e',
    topic: TOPIC,
    partition,
    offset,
    at: offset,
  }
  store.putIn('parked', parkedId(TOPIC, partition, offset), fields, JSON.stringify({ key: null, headers: [], value }))
  await store.flush()
}

beforeAll(async () => {
  const url = inject('elasticsearchUrl')
  stores.push(await createStore(url, { partitions: 1 }))
  const prefix = stores[0]?.prefix ?? ''
  stores.push(await createStore(url, { partitions: 1, prefix, generation: 'g2' }))
  file.onTestFinished(async () => void (await Promise.all(stores.map(store => store.remove()))))
  // One store after the other: Elasticsearch accepts only few bytes of such documents at a time.
  for (const store of stores) await fill(store)
})

/** Runs a command in little memory. @returns its exit code, its output, and its peak memory in MiB */
const run = async (...args: string[]) => {
  const env = {
    ELASTICSEARCH_URL: inject('elasticsearchUrl'),
    ELASTICSEARCH_INDEX_PREFIX: stores[0]?.prefix,
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
  }
  const began = performance.now()
  const child = spawn(process.execPath, ['tools/main.ts', 'projection', ...args], { cwd: project, env })
  file.onTestFinished(async () => void child.kill('SIGKILL'))
  let [out, said, peak, ended] = ['', '', 0, false]
  child.stdout.setEncoding('utf8').on('data', text => (out += text))
  child.stderr.setEncoding('utf8').on('data', text => (said += text))
  const closed = once(child, 'close').finally(() => (ended = true))
  while (!ended) {
    peak = Math.max(peak, peakOf(child.pid))
    await Promise.race([closed, new Promise(resolve => setTimeout(resolve, 50))])
  }
  const [code] = await closed
  console.log(`${args.join(' ')}: at most ${peak} MiB, ${((performance.now() - began) / 1_000).toFixed(1)} s`)
  expect(said).not.toMatch(/defect|heap/)
  expect(peak).toBeLessThan(RESIDENT_MB)
  return { code, out, said }
}
const peakOf = (pid: number | undefined): number => {
  try {
    return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024)
  } catch {
    // The process has ended.
    return 0
  }
}

test('verify finds large records equal, in less memory than they have together', async () => {
  const { code, out, said } = await run('verify', 'g1', 'g2')
  expect([code, said], said).toEqual([0, expect.stringContaining('equal: 1 organizations')])
  expect(out).toContain(`${PAYOUTS} payouts`)
  expect(out).toContain(`${PARKED} parked`)
})

test('explain shows a payout of 10,000 lines with its whole chain', async () => {
  const { code, out } = await run('explain', 'payout_1', '--org', org, '--json')
  expect(code).toBe(0)
  expect(JSON.parse(out).steps.map(({ payout }: { payout: string }) => payout)).toEqual(chained)
})

test('verify and diff find large records that differ, with few of them in memory', async () => {
  const [, other] = stores
  if (other === undefined) throw new Error('there are two')
  for (const at of [3, 5]) await park(other, at, `R${value.slice(1)}`)
  other.payout(org, 17, { id: 'payout_7', rep: 'rep_7', amount: '7.00', lines: lines('7.00').with(9_999, changed) })
  await other.flush()
  const index = pathTo(`${other.prefix}-g2-payroll_files`, `${org}:payroll_1`, 'refresh=true').replace(
    '_doc',
    '_update',
  )
  await other.call('POST', index, JSON.stringify({ doc: { body_bytes: 7 } }))

  const verified = await run('verify', 'g1', 'g2', '--json')
  expect([verified.code, verified.said]).toEqual([1, expect.stringContaining('1 of 1 organizations differ')])
  const found = verified.out
    .trimEnd()
    .split('\n')
    .slice(1)
    .map(line => JSON.parse(line))
  expect(found.map(({ kind, id, field }) => [kind, id, field])).toEqual([
    ['payouts', `${org}:payout_7`, 'hash'],
    ['payroll_files', `${org}:payroll_1`, 'body_bytes'],
    ...[3, 5].map(at => ['parked', parkedId(TOPIC, partition, 100 + at), 'body.value']),
  ])
  const compared = await run('diff', 'g1', 'g2', '--json')
  expect(compared.code).toBe(3)
  const rows = compared.out
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(rows.map(({ row, kind, id, field }) => [row, kind, id, field])).toEqual([
    ['line', 'payouts', 'line_9999', 'description'],
    ['record', 'payouts', 'payout_7', 'line_items.9999.description'],
    ...[3, 5].map(at => ['record', 'parked', parkedId(TOPIC, partition, 100 + at), 'value']),
  ])
})
