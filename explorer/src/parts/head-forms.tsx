/** The forms on top of every view: the moment of the whole page, and the record of an id. */
import type { TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { addressOfId, fragmentOf, momentIn } from '../state/address.ts'
import { useReader } from '../state/reading.ts'
import { texts } from '../texts.ts'

export const MomentForm = () => {
  const { address } = useReader()
  const { asOf, ...now } = address
  const [isWrong, setIsWrong] = useState(false)
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const text = typed(event.currentTarget, 'moment')
    const moment = momentIn(text)
    setIsWrong(text !== '' && moment === undefined)
    if (text === '') location.hash = fragmentOf(now)
    else if (moment !== undefined) location.hash = fragmentOf({ ...now, asOf: moment })
  }
  return (
    <form class="moment" onSubmit={submit}>
      <label for="moment">{texts.moment.label}</label>
      <input
        id="moment"
        name="moment"
        defaultValue={asOf ?? ''}
        placeholder={texts.moment.isNow}
        title={texts.moment.hint}
        {...(isWrong && { 'aria-invalid': true, 'aria-describedby': 'moment-wrong' })}
        autocomplete="off"
        spellcheck={false}
      />
      <button type="submit">{texts.moment.show}</button>
      {isWrong && (
        <p class="notice" id="moment-wrong" role="alert">
          {texts.moment.wrong}
        </p>
      )}
    </form>
  )
}

/** Opens what an id names, as of the same moment. */
export const FindForm = () => {
  const { asOf } = useReader().address
  const [isWrong, setIsWrong] = useState(false)
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const form = event.currentTarget
    const text = typed(form, 'find')
    const found = addressOfId(text)
    setIsWrong(text !== '' && found === undefined)
    if (found === undefined) return
    form.reset()
    location.hash = fragmentOf({ ...(asOf !== undefined && { asOf }), ...found })
  }
  return (
    <search>
      <form class="find" onSubmit={submit}>
        <label for="find">{texts.find.label}</label>
        <input
          id="find"
          name="find"
          placeholder={texts.find.example}
          title={texts.find.hint}
          {...(isWrong && { 'aria-invalid': true, 'aria-describedby': 'find-wrong' })}
          autocomplete="off"
          spellcheck={false}
        />
        <button type="submit">{texts.find.go}</button>
        {isWrong && (
          <p class="notice" id="find-wrong" role="alert">
            {texts.find.hint}
          </p>
        )}
      </form>
    </search>
  )
}

/** The text of a field, without the space around it that a copied id can have. */
const typed = (form: HTMLFormElement, name: string): string => String(new FormData(form).get(name) ?? '').trim()
