import { expect, test } from 'vitest'
import { AGE_INTERVAL_MS, AGES_MAX } from '../../../../core/runtime/limits.ts'
import { agePicture, createAges, oldestAge } from '../../../../core/runtime/status/ages.ts'

test('ages are held for some minutes only, at intervals, however often and however long they are noted', () => {
  const ages = createAges()
  for (let at = 0; at < 3 * AGES_MAX; at++) {
    ages.note(at * AGE_INTERVAL_MS, at)
    ages.note(at * AGE_INTERVAL_MS + 1, 1_000_000)
  }
  expect(ages.list()).toHaveLength(AGES_MAX)
  expect(ages.list().at(-1)).toEqual({ at: (3 * AGES_MAX - 1) * AGE_INTERVAL_MS, age: 3 * AGES_MAX - 1 })
  const later = 9 * AGES_MAX * AGE_INTERVAL_MS
  ages.note(later, undefined)
  expect(ages.list()).toEqual([{ at: later, age: undefined }])
})

test('the age is that of the oldest partition, and not known while one time is not', () => {
  expect(oldestAge([3_000, 1_000], 4_000)).toBe(3_000)
  for (const times of [[3_000, 0], []]) expect(oldestAge(times, 4_000)).toBeUndefined()
})

test('a clock that was set back begins the ages anew: the picture has no time that is not over', () => {
  const ages = createAges()
  ages.note(1_000_000, 5)
  ages.note(10, 7)
  expect(ages.list()).toEqual([{ at: 10, age: 7 }])
})

test('the picture says in words what it shows, and has a gap where nothing was known', () => {
  const samples = [2_000, 4_000, undefined, 1_000].map((age, at) => ({ at: at * 3_000, age }))
  const picture = agePicture('Age <b>', samples, 9_000)
  const words = 'Age &#60;b&#62;: now 1.0 s; between 1.0 s and 4.0 s in the last 9.0 s.'
  expect(picture).toContain(`<figcaption>${words}</figcaption>`)
  expect(picture).toContain(`role="img" aria-label="${words}"`)
  expect(picture).toContain('d="M0 30L0 30L200 2M600 44L600 44"')
})

test('an age that cannot be read now is not said to be the last one', () => {
  const samples = [2_000, undefined].map((age, at) => ({ at: at * 3_000, age }))
  expect(agePicture('Age', samples, 3_000)).toContain('Age: now not known; between 2.0 s and 2.0 s in the last 3.0 s.')
})

test('without an age there is a sentence in place of the picture', () => {
  expect(agePicture('Age', [], 0)).toBe(
    '<p class="quiet">Age: not known yet. It is drawn here while this process runs.</p>',
  )
})
