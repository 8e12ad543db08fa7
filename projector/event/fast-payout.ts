/**
 * In: the text of a payout's data. Out: the same result as parsing the text, checking its schema, making its canonical
 * form and checking the rules of its lists. Undefined where the text is not in the plain form, or is not valid. The
 * plain form is that of JSON.stringify, with the fields in the schema's order and nothing escaped.
 * Almost all payouts have this form, and almost all that is read are payouts. To look at the text is a fifth of the
 * work of making it into objects, looking at these, and making them into text again.
 * Promises: the result never differs from theirs, and a test compares the two; the text is its own canonical form.
 */
import type { TSchema } from 'typebox'
import { LineItem, PayoutCalculated, PayoutRecorded, TraceStep } from '../../schemas/events.ts'
import { formats } from '../../schemas/values.ts'
import { JsonText } from './raw-json.ts'
import { mapGroup, memberOfMap, membersOf, stringGroup, wholeGroup } from './schema-regex.ts'

export type PlainPayout = {
  /** All fields; the lists are text. */
  readonly data: Readonly<Record<string, unknown>>
  /** The amounts of the lines. */
  readonly amounts: readonly string[]
}

/** Characters of a text that is looked at: of a very long list the expressions would need much memory. */
const LENGTH_MAX = 64 * 1024

export const readPlainPayout = (type: string, text: string): PlainPayout | undefined => {
  const form = forms.get(type)
  if (form === undefined || text.length > LENGTH_MAX) return undefined
  const { head, hasTrace, tail, tailName } = form
  const afterHead = endOf(head, text, 0)
  if (afterHead === undefined) return undefined

  const amounts: string[] = []
  const afterLines = readLines(text, afterHead, amounts)
  if (afterLines === undefined) return undefined
  const traceFrom = hasTrace ? afterLines + TRACE.length : afterLines
  if (hasTrace && !text.startsWith(TRACE, afterLines)) return undefined
  const afterTrace = hasTrace ? readSteps(text, traceFrom) : afterLines
  if (afterTrace === undefined) return undefined
  tail.lastIndex = afterTrace
  const instant = tail.exec(text)?.[1]
  if (instant === undefined || tail.lastIndex !== text.length || !formats['date-time'](instant)) return undefined

  // Strings of their own: parts of the text would keep all of it in memory. The lists are such parts until they are
  // written.
  const data = JSON.parse(`${text.slice(0, afterHead - LINES.length)}}`) as Record<string, unknown>
  data.line_items = new JsonText(text.slice(afterHead, afterLines))
  if (hasTrace) data.calculation_trace = new JsonText(text.slice(traceFrom, afterTrace))
  data[tailName] = instant
  return { data, amounts }
}

const LINES = ',"line_items":'
const TRACE = ',"calculation_trace":'

/** Reads the list that begins there; returns where it ends, undefined where it is not plain or not valid. */
const readList = (
  text: string,
  from: number,
  item: RegExp,
  take: (found: RegExpExecArray, place: number) => boolean,
): number | undefined => {
  if (text.startsWith('[]', from)) return from + 2
  if (text[from] !== '[') return undefined
  let at = from + 1
  for (let place = 0; ; place++) {
    item.lastIndex = at
    const found = item.exec(text)
    if (found === null || !take(found, place)) return undefined
    at = item.lastIndex + 1
    if (text[at - 1] === ']') return at
    if (text[at - 1] !== ',') return undefined
  }
}

const readLines = (text: string, from: number, amounts: string[]): number | undefined => {
  const ids = new Set<string>()
  const end = readList(text, from, line, ([, id = '', amount = '']) => {
    ids.add(id)
    amounts.push(amount)
    return amounts.length <= LINES_MAX
  })
  return ids.size === amounts.length ? end : undefined
}

const readSteps = (text: string, from: number): number | undefined =>
  readList(
    text,
    from,
    step,
    ([, number, inputs = ''], place) => Number(number) === place + 1 && place < STEPS_MAX && isInOrder(inputs),
  )

/** Whether each name is after the one before. A name that begins with a digit may be moved by who parses the map. */
const isInOrder = (members: string): boolean => {
  let before: string | undefined
  for (let at = 0; at < members.length; at = member.lastIndex) {
    member.lastIndex = at
    const name = member.exec(members)?.[1]
    if (name === undefined || /^\d/.test(name) || (before !== undefined && name <= before)) return false
    before = name
  }
  return true
}

const endOf = (pattern: RegExp, text: string, from: number): number | undefined => {
  pattern.lastIndex = from
  return pattern.test(text) ? pattern.lastIndex : undefined
}

const at = (source: string): RegExp => new RegExp(source, 'y')

const line = at(
  `\\{${membersOf(LineItem.properties, { id: stringGroup(LineItem.properties.id), amount: stringGroup(LineItem.properties.amount) })}\\}`,
)
const step = at(
  `\\{${membersOf(TraceStep.properties, { step: wholeGroup, inputs: mapGroup(TraceStep.properties.inputs) })}\\}`,
)
const member = at(memberOfMap(TraceStep.properties.inputs))

const { maxItems: LINES_MAX = 0 } = PayoutCalculated.properties.line_items as { maxItems?: number }
const { maxItems: STEPS_MAX = 0 } = PayoutCalculated.properties.calculation_trace as { maxItems?: number }

type Form = {
  /** From the beginning to before the lines. */
  readonly head: RegExp
  readonly hasTrace: boolean
  /** From after the lists to the end, the instant as a group. */
  readonly tail: RegExp
  readonly tailName: string
}

const formOf = ({ properties }: { readonly properties: Record<string, TSchema> }): Form => {
  const { line_items: _, calculation_trace: trace, ...rest } = properties
  const [tailName = ''] = Object.keys(properties).slice(-1)
  const { [tailName]: instant, ...scalars } = rest
  const { pattern = '' } = instant as { pattern?: string }
  return {
    head: at(`\\{${membersOf(scalars)}${LINES}`),
    hasTrace: trace !== undefined,
    tail: at(`,"${tailName}":"(${pattern.slice(1, -1)})"\\}`),
    tailName,
  }
}

const forms: ReadonlyMap<string, Form> = new Map([
  ['commission.payout.calculated.v1', formOf(PayoutCalculated)],
  ['commission.payout.recorded.v1', formOf(PayoutRecorded)],
])
