/** Tools that list reps, periods and payroll records. */
import { pageSchema, readPage } from './bounded.ts'
import { contractSchema } from './contract.ts'
import {
  type AsOfArgument,
  asOfInput,
  clientAt,
  defineTool,
  type FilterArguments,
  filterInput,
  filterOptions,
  type IdsArguments,
  idsAlone,
  idsInput,
  type PageArguments,
  pageInput,
  pageOptions,
} from './tool.ts'

const same = <Item>(item: Item): Item => item

export const listReps = defineTool<PageArguments & IdsArguments & AsOfArgument>({
  name: 'list_reps',
  title: 'List reps',
  description:
    'The reps, departed ones too, or those with these ids. There is no search by name: read the pages. With `erased` a person was forgotten and the text is lost; with `unreadable` nobody can read it. Both are no empty names.',
  input: { ...idsInput('rep'), ...asOfInput, ...pageInput },
  output: pageSchema(contractSchema('Rep')),
  run: async (client, given) => ({
    structured: await readPage(clientAt(client, given).reps(idsAlone(given) ?? pageOptions(given)), same),
  }),
})

export const listPeriods = defineTool<PageArguments & IdsArguments & AsOfArgument>({
  name: 'list_periods',
  title: 'List periods',
  description: 'The commission periods (months, quarters, years) with their boundaries, or those with these ids.',
  input: { ...idsInput('period'), ...asOfInput, ...pageInput },
  output: pageSchema(contractSchema('Period')),
  run: async (client, given) => ({
    structured: await readPage(clientAt(client, given).periods(idsAlone(given) ?? pageOptions(given)), same),
  }),
})

export const listPayrollRecords = defineTool<PageArguments & FilterArguments & IdsArguments & AsOfArgument>({
  name: 'list_payroll_records',
  title: 'List payroll records',
  description:
    'Money that left through payroll, of a rep, of a period, or by ids. A record with `reverses_id` is a void: it takes back another one with the opposite sign. For sums use `get_totals`.',
  input: { ...filterInput, ...idsInput('payroll'), ...asOfInput, ...pageInput },
  output: pageSchema(contractSchema('PayrollRecord')),
  run: async (client, given) => {
    const options = idsAlone(given) ?? { ...pageOptions(given), ...filterOptions(given) }
    return { structured: await readPage(clientAt(client, given).payrollRecords(options), same) }
  },
})
