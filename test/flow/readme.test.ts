/** The example of README.md on real services: its requests get the answers that stand there, byte for byte. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { commandSettings } from '../support/commands.ts'
import { curlInTime } from '../support/in-time.ts'
import { startApi, untilCaughtUp } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'

const root = join(import.meta.dirname, '..', '..')
const page = readFileSync(join(root, 'README.md'), 'utf8')
/** Requests, each with its answer. On the page the answer has line breaks, for readers. */
const examples = [...page.matchAll(/^(curl [^\n]*)\n```\n+```json\n(.*?)\n```$/gms)].map(
  ([, request = '', answer = '']) => ({
    request,
    answer: answer.replaceAll('\n', ''),
  }),
)
const [, command = ''] = /^npx node (demo\/run\/\S+)/m.exec(page) ?? []
const [, key = ''] = /^export KEY=(\S+)/m.exec(page) ?? []

test('one payout is published, replaced, read now and as of its own moment, with the answers of README.md', async t => {
  expect(examples.map(({ request }) => /\$API([^"]*)/.exec(request)?.[1])).toEqual([
    '/payouts',
    '/payouts?as_of=payout_First',
    '/payouts/payout_First',
  ])
  const { topics, prefix, projector } = await startProjection(t, [])
  const { url } = await startApi(t, prefix)
  const env = { ...process.env, ...commandSettings(topics, prefix), API: url, KEY: key }
  await promisify(execFile)(process.execPath, [join(root, command)], { env })
  await untilCaughtUp(projector)

  for (const { request, answer } of examples) {
    const { stdout } = await promisify(execFile)('sh', ['-c', curlInTime(request)], { env })
    expect(stdout).toBe(answer)
  }
})
