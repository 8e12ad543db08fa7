/** docs/examples/copy.py: the copy of a notebook is refused if it is not all of the organization. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pythonProgram } from '../support/programs.ts'

const program = join(import.meta.dirname, '../../docs/examples/copy.py')

type Answer = { readonly status?: number; readonly location?: string; readonly body: object }

const serve = async (answerTo: (path: string, key: string | undefined) => Answer): Promise<string> => {
  const server = createServer(({ url = '', headers }, response) => {
    const { status = 200, location, body } = answerTo(url, headers.authorization)
    response.writeHead(status, location === undefined ? {} : { location }).end(JSON.stringify(body))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const total = {
  period_id: 'period_1',
  currency: 'EUR',
  owed_amount: '0',
  owed_count: 0,
  paid_amount: '0',
  paid_count: 0,
}
const payout = (id: string, net_amount: string) => ({ id, period_id: 'period_1', currency: 'EUR', net_amount })
const payment = (id: string, amount: string) => ({ id, period_id: 'period_1', currency: 'EUR', amount })

/** Runs the example with an API that has these records and totals. Returns what it prints; rejects if it fails. */
const copyOf = async (
  totals: readonly object[],
  { payouts = [], payroll_files = [] }: { payouts?: readonly object[]; payroll_files?: readonly object[] },
): Promise<string> => {
  const lists: Readonly<Record<string, readonly object[]>> = { payouts, payroll_files }
  const api = await serve(path => {
    const { pathname } = new URL(path, 'http://127.0.0.1')
    if (pathname === '/totals') return { body: { data: { last_change_id: 'payout_9', totals } } }
    return { body: { data: lists[pathname.slice(1)] ?? [], has_more: false, next_cursor: '' } }
  })
  return run(api)
}

const run = async (api: string): Promise<string> => {
  const env = { ...process.env, API: api, KEY: 'key_text' }
  return (await promisify(execFile)(pythonProgram ?? '', ['-O', program], { env })).stdout
}

describe.skipIf(pythonProgram === undefined)('the copy of a notebook', () => {
  test('adds up exactly: no digit of a large amount is rounded', async () => {
    const amounts = ['1234567890123456789012345678', '0.1'] as const
    const payouts = amounts.map((amount, index) => payout(`payout_${index}`, amount))
    const right = { ...total, owed_amount: '1234567890123456789012345678.1', owed_count: 2 }
    expect(await copyOf([right], { payouts })).toContain('adds up to the totals of 1 periods and currencies')
    const wrong = { ...right, owed_amount: '1234567890123456789012345678' }
    await expect(copyOf([wrong], { payouts })).rejects.toThrow('the copy differs')
  })

  test('is refused without records that add up to zero', async () => {
    await expect(copyOf([{ ...total, paid_count: 2 }], {})).rejects.toThrow('the copy differs')
    const payroll_files = [payment('payroll_1', '5'), payment('payroll_2', '-5')]
    expect(await copyOf([{ ...total, paid_count: 2 }], { payroll_files })).toContain('adds up')
  })

  test('is refused with a period that the totals do not have', async () => {
    await expect(copyOf([], { payouts: [payout('payout_1', '5')] })).rejects.toThrow('the copy differs')
  })

  test('is not made of an organization without a change', async () => {
    const api = await serve(() => ({ body: { data: { last_change_id: null, totals: [] } } }))
    await expect(run(api)).rejects.toThrow('the organization has no change yet')
  })

  test('gives its key to no other host', async () => {
    const keys: (string | undefined)[] = []
    const other = await serve((_, key) => {
      keys.push(key)
      return { body: { data: { last_change_id: null, totals: [] } } }
    })
    const api = await serve(path => ({ status: 302, location: `${other}${path}`, body: {} }))
    await expect(run(api)).rejects.toThrow()
    expect(keys).toEqual([undefined])
  })
})
