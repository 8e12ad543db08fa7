/** Amounts in the page: grouped, with the decimal point below that of the other amounts of a column. */
import { groupDigits, groupSigned, isNegative, paddingFor } from '../amounts.ts'

type Props = {
  readonly amount: string
  /** All amounts of the column. Without them, the amount stands alone. */
  readonly column?: readonly string[]
  /** A difference: with a plus sign above zero. */
  readonly isDifference?: boolean
}

export const Amount = ({ amount, column = [], isDifference = false }: Props) => {
  const padding = paddingFor(amount, column)
  const sign = isNegative(amount) ? ' below' : isDifference ? ' above' : ''
  return (
    // The padding is drawn by the style sheet, invisible: nobody copies or hears it.
    <span class={`amount${sign}`} {...(padding !== '' && { 'data-padding': padding })}>
      {isDifference ? groupSigned(amount) : groupDigits(amount)}
    </span>
  )
}
