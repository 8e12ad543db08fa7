/**
 * A release that knows a second version of an event type: the programs of this project with the example of
 * docs/evolution.md added as they are loaded. Node loads this file before a program (`node --import`).
 * The product has no option for this.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const project = join(import.meta.dirname, '..', '..')

/** The blocks of code in the example, in order. */
const page = readFileSync(join(project, 'docs/evolution.md'), 'utf8')
const blocks = Array.from(page.matchAll(/^```ts\n(.*?)^```$/gms), ([, code = '']) => code)
const rulesFile = readFileSync(join(project, 'core/ledger/rules/rules.ts'), 'utf8')
const [, version] = /^export const RULES_VERSION = (\d+\n.*)$/m.exec(rulesFile) ?? []
const [schema = '', schemaEntry = '', rules = '', rulesEntry = ''] = blocks

/** `before`: the text that the addition precedes. It occurs exactly once in the file. */
const additions: readonly { readonly file: string; readonly before: string; readonly adds: string }[] = [
  { file: 'schemas/events.ts', before: 'export const PayrollVoided = ', adds: schema },
  { file: 'schemas/events.ts', before: "    'commission.payroll.voided.v1': PayrollVoided,", adds: schemaEntry },
  { file: 'core/ledger/rules/rules.ts', before: 'export type RulesTable = ', adds: rules },
  { file: 'core/ledger/rules/rules.ts', before: "  'commission.payroll.voided.v1': ", adds: rulesEntry },
  // The compiler names this place.
  {
    file: 'core/ledger/event/validate.ts',
    before: "    case 'commission.payroll.voided.v1':",
    adds: "    case 'commission.payroll.recorded.v2':\n",
  },
  { file: 'core/ledger/rules/rules.ts', before: version ?? 'no version', adds: '1 + ' },
]

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context)
    const wanted = additions.filter(({ file }) => url === pathToFileURL(join(project, file)).href)
    if (wanted.length === 0) return loaded
    const source = wanted.reduce((text, { before, adds }) => {
      if (adds === '' || text.split(before).length !== 2) throw new Error(`expected once in ${url}: ${before}`)
      return text.replace(before, () => `${adds}${before}`)
    }, String(loaded.source))
    return { ...loaded, source }
  },
})
