/** Amounts in the page: grouped, with the decimal point below that of the other amounts of a column. */
import { groupDigits, groupSigned, isNegative, isZero, paddingFor, withPlainMinus } from '../amounts.ts'

type Props = {
  readonly amount: string
  /** All amounts of the column. Without them, the amount stands alone. */
  readonly column?: readonly string[]
  /** A difference: with a plus sign above zero. */
  readonly isDifference?: boolean
}

export const Amount = ({ amount, column = [], isDifference = false }: Props) => {
  const padding = paddingFor(amount, column)
  const sign = isNegative(amount) ? ' below' : isDifference && !isZero(amount) ? ' above' : ''
  return (
    // The padding is drawn by the style sheet, invisible: nobody copies or hears it.
    <span class={`amount${sign}`} {...(padding !== '' && { 'data-padding': padding })}>
      {isDifference ? groupSigned(amount) : groupDigits(amount)}
    </span>
  )
}

/**
 * Copied amounts have the digits and the minus sign that a spreadsheet knows, and no commas: a comma can be its decimal
 * point. Other texts keep theirs. Without such amounts, the browser copies as it always does.
 */
export const copyAmounts = (event: ClipboardEvent): void => {
  const selection = getSelection()
  if (selection === null || event.target instanceof HTMLInputElement) return
  const shown = selection.toString()
  const plain = withPlainMinus(textWithoutCommas(selection))
  if (plain === shown) return
  event.clipboardData?.setData('text/plain', plain)
  event.preventDefault()
}

/** Only the browser knows the text of a selection: it gives it while the amounts are without commas, unseen. */
const textWithoutCommas = (selection: Selection): string => {
  const { anchorNode, anchorOffset, focusNode, focusOffset, rangeCount } = selection
  const nodes = [...document.querySelectorAll('.amount')].flatMap(amount =>
    amount.firstChild instanceof Text && selection.containsNode(amount, true) ? [amount.firstChild] : [],
  )
  const shown = nodes.map(({ data }) => data)
  // One by one: each takes the ends of the selection with it.
  for (const node of nodes)
    for (let at = node.data.indexOf(','); at >= 0; at = node.data.indexOf(',')) node.deleteData(at, 1)
  const text = selection.toString()
  for (const [at, node] of nodes.entries()) node.data = shown[at] ?? ''
  if (rangeCount === 1 && anchorNode !== null && focusNode !== null)
    selection.setBaseAndExtent(anchorNode, anchorOffset, focusNode, focusOffset)
  return text
}
