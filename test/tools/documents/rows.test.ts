import { expect, test } from 'vitest'
import { csvHeader, csvOf, ndjsonOf, rowOf, tablesOf } from '../../../tools/documents/rows.ts'

const row = (given: object = {}) => rowOf({ row: 'owed', organization: 'org_1', ...given })
/** The cells of a row, without the empty ones. */
const cells = (given: object) => csvOf(row(given)).trimEnd().replaceAll(/,+/g, ',')

test('a CSV row has the columns of its header, in order', () => {
  expect(csvHeader).toBe('row,organization,rep,period,kind,id,change,field,category,currency,a,b,difference\r\n')
  expect(csvOf(row({ rep: 'rep_1', currency: 'EUR', a: '1.00', b: '-2.50', difference: '-3.50' }))).toBe(
    'owed,org_1,rep_1,,,,,,,EUR,1.00,-2.50,-3.50\r\n',
  )
})

test('a cell with a separator of any spreadsheet, a quote or a line break is quoted', () => {
  expect(cells({ a: 'a,b' })).toBe('owed,org_1,"a,b",')
  expect(cells({ a: 'a;b' })).toBe('owed,org_1,"a;b",')
  expect(cells({ a: 'a\tb' })).toBe('owed,org_1,"a\tb",')
  expect(cells({ a: 'say "so"' })).toBe('owed,org_1,"say ""so""",')
  expect(csvOf(row({ difference: 'two\nlines' }))).toContain(',"two\nlines"\r\n')
})

test.for(['=1+1', '+1', '-1+1', '@SUM(A1)', '＝1', '-'])(
  'a text that would be a formula is escaped in CSV: %j',
  text => {
    expect(csvOf(row({ difference: text }))).toContain(`,'${text}\r\n`)
  },
)

test.for([
  ['\tx', "'\tx"],
  ['x;=E2+1', "x;'=E2+1"],
  ['x\t@A1', "x\t'@A1"],
  ['two\r\n＝1', "two\r\n'＝1"],
  ['x; "-1; +1', 'x; ""\'-1; \'+1'],
] as const)('a text that a spreadsheet could split into a formula is escaped in CSV: %j', ([text, escaped]) => {
  expect(csvOf(row({ difference: text }))).toContain(`,"${escaped}"\r\n`)
})

test('a text with a sign inside a part is not escaped in CSV', () => {
  expect(cells({ a: 'a-b; c = d' })).toBe('owed,org_1,"a-b; c = d",')
})

test('a negative amount stays a number in CSV, and a line of JSON changes nothing', () => {
  expect(csvOf(row({ difference: '-12.50' }))).toContain(',-12.50\r\n')
  expect(JSON.parse(ndjsonOf(row({ a: '=1+1', b: '-12.50' })))).toEqual(row({ a: '=1+1', b: '-12.50' }))
})

test('a line of JSON has every column, in the order of the header', () => {
  expect(Object.keys(JSON.parse(ndjsonOf(row())))).toEqual(csvHeader.trimEnd().split(','))
})

test('text output has a table for each kind of row, aligns amounts, and escapes control characters', () => {
  const text = tablesOf(
    [
      row({ rep: 'rep_1', period: 'period_1', currency: 'EUR', a: '5.00', b: '15.00', difference: '10.00' }),
      row({ row: 'record', kind: 'reps', id: 'rep_1', change: 'changed', field: 'name', a: 'Ada', b: '\u001b[2J' }),
    ],
    ['g1', 'sandbox:s1'],
  )
  expect(text.split('\n')).toEqual([
    'org_1',
    'money',
    '  ROW   REP    PERIOD    CURRENCY    g1  sandbox:s1  DIFFERENCE',
    '  owed  rep_1  period_1  EUR       5.00       15.00       10.00',
    'records',
    '  KIND  ID     CHANGE   FIELD  g1   sandbox:s1',
    '  reps  rep_1  changed  name   Ada  \\u001b[2J',
    '',
    '',
  ])
})
