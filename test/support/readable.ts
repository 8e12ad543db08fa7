/** Looks at a page as a person would: at several widths, in both colour schemes. SCREENSHOTS=folder stores pictures. */
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { expect } from 'vitest'
import { eventually } from './scope.ts'

/** Opens a page that waits longer than 30 s, which are too short on a busy machine. */
export const newPage = async (browser: Browser, options?: Parameters<Browser['newPage']>[0]): Promise<Page> => {
  const page = await browser.newPage(options)
  page.setDefaultTimeout(240_000)
  return page
}

/** Loads a page again until it has this heading: on a busy machine it may first say that Elasticsearch is slow. */
export const untilHeading = (page: Page, heading: string): Promise<void> =>
  eventually(async () => {
    const text = () => page.locator('h1').innerText()
    if ((await text()) !== heading) await page.reload()
    expect(await text()).toBe(heading)
  })

/** Runs in the page: texts of too little contrast, and parts that are wider than the page. */
const UNREADABLE = `(() => {
  const numbers = color => (color.match(/[\\d.]+/g) ?? []).map(Number)
  const light = ([r = 0, g = 0, b = 0]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(v => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    return 0.2126 * x + 0.7152 * y + 0.0722 * z
  }
  const ground = one => {
    for (let at = one; at; at = at.parentElement) {
      const color = numbers(getComputedStyle(at).backgroundColor)
      if (color[3] !== 0) return color
    }
    return [255, 255, 255]
  }
  const found = []
  const width = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth > width) found.push('the page scrolls to the side')
  for (const one of document.querySelectorAll('body *')) {
    const text = [...one.childNodes].filter(node => node.nodeType === 3 && node.data.trim() !== '')
    if (text.length === 0 || one.closest('thead, style, title, .hidden')) continue
    const { left, right } = one.getBoundingClientRect()
    if (left < 0 || right > width + 0.5) found.push('outside: ' + one.textContent)
    const [a, b] = [light(numbers(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x)
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push('faint: ' + one.textContent)
  }
  return found
})()`

/** Returns what cannot be read, in words; empty if all can. @param name of the stored pictures */
export const unreadableIn = async (page: Page, name: string): Promise<string[]> => {
  const found: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1280, 320]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 800 })
      const folder = process.env.SCREENSHOTS
      const path = folder && join(folder, `${name}-${colorScheme}-${width}.png`)
      if (path) await page.screenshot({ path, fullPage: true })
      const wrong = await page.evaluate<string[]>(UNREADABLE)
      found.push(...wrong.map(text => `${colorScheme}, ${width} px: ${text}`))
    }
  }
  return found
}
