/** The reads of a close: the lines of requests that the API answered become rows by key and route. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Answering, answerCheckpoint } from '../../../api/answer/answer-page.ts'
import { auditReads } from '../../../api/audit/audit-reads.ts'
import type { Context } from '../../../api/http/request.ts'
import { readAuditLog } from '../../../tools/evidence/close-audit.ts'
import { answering } from '../../support/answering-request.ts'
import { generationOf } from '../../support/layout.ts'

const position = { generation: generationOf(), publishedTo: 1, time: 0, takenBack: 0 }
const key = { org: 'org_1', orgHash: 'aa', id: 'key_1', permissions: new Set<never>() }
const route = '/api/v1/checkpoint'

/** Returns the lines of requests for checkpoints with these notes. */
const linesOf = async (notes: readonly string[]): Promise<string> => {
  const lines: string[] = []
  const write = async ({ text }: { readonly text: string }) => {
    lines.push(text)
    return 'written' as const
  }
  const step = auditReads({
    isStrict: true,
    writer: { write, end: async () => undefined },
    now: () => Date.UTC(2026, 2, 5, 8, 30),
    addressOf: () => '10.0.0.7',
    admitLine: () => ({ unlogged: 0 }),
  })
  for (const note of notes) {
    const state = { ...answering(), requestId: 'request_1', route, key }
    const ctx = { method: 'GET', status: 404, req: {}, state, get: () => '', set: () => undefined }
    await step(ctx as never, async ({ audited }) => {
      Object.assign(state, { audited })
      answerCheckpoint(ctx as unknown as Context<Answering>, { position, note })
    })
  }
  return lines.join('')
}

test('a key that read totals through a checkpoint is among the reads, also if there were no amounts', async () => {
  const total = (currency: string) => `total ${currency} owed 1 paid 0 open 1\n`
  const folder = mkdtempSync(join(tmpdir(), 'commission-audit-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'audit.ndjson')
  writeFileSync(file, await linesOf([`sequence 2\n${total('EUR')}${total('USD')}`, 'sequence 0\n']))
  const at = '2026-03-05T08:30:00.000Z'
  expect(await readAuditLog(file, 'org_1', new AbortController().signal)).toEqual([
    { key_id: 'key_1', route, requests: 2, records: 3, first: at, last: at },
  ])
})
