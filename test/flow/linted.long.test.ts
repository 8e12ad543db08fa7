/** The OpenAPI documents of `contract/` follow the recommended rules of a linter that tools of clients use. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CONTRACT } from '../contract/contract.ts'
import { npmProgram } from '../support/programs.ts'
import { runCopy } from '../support/run-copy.ts'

/** The rules that a document breaks, each with the place. */
const findingsOf = async (document: string): Promise<string[]> => {
  const lines = await runCopy('linters/redocly', {}, { 'document.json': document })
  const { problems } = JSON.parse(lines.join('\n')) as {
    problems: { ruleId: string; location: { pointer: string }[] }[]
  }
  return problems.map(({ ruleId, location }) => `${ruleId} ${location[0]?.pointer}`)
}
const documentOf = (name: string): Promise<string> => readFile(join(CONTRACT, name), 'utf8')

describe.skipIf(npmProgram === undefined)('Redocly', () => {
  test.each(['openapi.json', 'receipts.json'])('finds no recommended rule that %s breaks', async name => {
    expect(await findingsOf(await documentOf(name))).toEqual([])
  })

  test('finds a document without a licence, and a tag without a description', async () => {
    const document = JSON.parse(await documentOf('receipts.json'))
    delete document.info.license
    delete document.tags[0].description
    expect(await findingsOf(JSON.stringify(document))).toEqual([
      'info-license #/info',
      'tag-description #/tags/0/description',
    ])
  })
})
