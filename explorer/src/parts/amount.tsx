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

/** Copied amounts have a minus sign that a spreadsheet knows. Without one, the browser copies as it always does. */
export const copyAmounts = (event: ClipboardEvent): void => {
  const shown = getSelection()?.toString() ?? ''
  const plain = withPlainMinus(shown)
  if (plain === shown || event.target instanceof HTMLInputElement) return
  event.clipboardData?.setData('text/plain', plain)
  event.preventDefault()
}
