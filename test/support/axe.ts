/** Accessibility of a page, as axe-core sees it. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'

const source = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** @returns each rule that the page breaks, with the elements */
export const axeFindings = async (page: Page): Promise<string[]> => {
  // Through the protocol of the browser: the policy of a page can refuse scripts.
  const session = await page.context().newCDPSession(page)
  const evaluate = async (expression: string): Promise<unknown> => {
    const options = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', options)
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? 'axe failed')
    return result.value
  }
  await evaluate(`${source}; undefined`)
  const findings = await evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, html }) => id + ': ' + target.join(' ') + ' ' + html)))`)
  await session.detach()
  return findings as string[]
}
