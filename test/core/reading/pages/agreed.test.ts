/** A process remembers results of searches: an old copy may have answered one of them. */
import { expect, test } from 'vitest'
import { AGREED_AFTER } from '../../../../core/reading/limits.ts'
import { createAgreed, isCertain, type Proofs } from '../../../../core/reading/pages/agreed.ts'
import { lruOptions } from '../../../../core/runtime/index.ts'

const cache = (proofs?: Proofs) => {
  let time = 0
  const agreed = createAgreed<number>(lruOptions(10), () => time, proofs)
  const find = (value: number, takes = 0): void => {
    const remember = agreed.begin()
    time += takes
    remember('a', value, 'g1')
  }
  return { agreed, find, get: () => agreed.get('a')?.value, pass: (by: number) => (time += by) }
}

test('a value that one search found is known for a second', () => {
  const { find, get, pass } = cache()
  find(7)
  pass(AGREED_AFTER - 1)
  expect(get()).toBe(7)
  pass(1)
  expect(get()).toBeUndefined()
})

test('a value is kept once a search that began a second after the first one ended finds the same', () => {
  const { agreed, find, get, pass } = cache()
  find(7, 5_000)
  pass(AGREED_AFTER)
  find(7)
  pass(1_000 * AGREED_AFTER)
  const known = agreed.get('a')
  expect([get(), known && isCertain(known)]).toEqual([7, true])
})

test('a search that began sooner does not agree, however long it takes', () => {
  const { find, get, pass } = cache()
  find(7)
  pass(AGREED_AFTER - 1)
  find(7, 5_000)
  pass(AGREED_AFTER)
  expect(get()).toBeUndefined()
})

test('many searches within a second delay no agreement', () => {
  const { find, get, pass } = cache()
  for (let time = 0; time < 4; time++) {
    find(7)
    pass(AGREED_AFTER / 4)
  }
  find(7)
  pass(10 * AGREED_AFTER)
  expect(get()).toBe(7)
})

test('another value takes the place of one that was found or kept, and has to be found again itself', () => {
  const { find, get, pass } = cache()
  for (const value of [6, 6, 7]) {
    find(value)
    expect(get()).toBe(value)
    pass(AGREED_AFTER)
  }
  expect(get()).toBeUndefined()
  find(7)
  pass(AGREED_AFTER)
  expect(get()).toBe(7)
})

test('a value that is made from another one is known no longer than that one', () => {
  const { agreed, find, get, pass } = cache()
  agreed.begin()('first', 1, 'g1')
  pass(AGREED_AFTER - 1)
  agreed.begin(agreed.get('first'))('a', 2, 'g1')
  expect(get()).toBe(2)
  pass(1)
  expect(get()).toBeUndefined()
  find(2)
  pass(AGREED_AFTER)
  expect(get()).toBeUndefined()
})

test('a value is kept only if a check of its indices began after the first search, and passed before the second', () => {
  const checks = { begun: 1, passed: new Map([['g1', 1]]) }
  const proofs = { begun: () => checks.begun, passed: () => checks.passed }
  const { agreed, find, get, pass } = cache(proofs)
  const isKept = () => isCertain(agreed.get('a') ?? { begun: 0, proved: 0, until: 0 })
  find(7)
  pass(AGREED_AFTER)
  // It runs while the second search does.
  checks.begun = 2
  find(7)
  expect([get(), isKept()]).toEqual([7, false])
  pass(AGREED_AFTER)
  checks.passed = new Map([
    ['g1', 1],
    ['g2', 2],
  ])
  find(7)
  expect([get(), isKept()]).toEqual([7, false])
  pass(AGREED_AFTER)
  checks.passed = new Map([['g1', 2]])
  find(7)
  expect(isKept()).toBe(true)
})

test('a value that is made from another one is kept no sooner than a check after that one allows', () => {
  const checks = { begun: 1, passed: new Map([['g1', 1]]) }
  const { agreed, find, pass } = cache({ begun: () => checks.begun, passed: () => checks.passed })
  const keep = () => isCertain(agreed.begin(agreed.get('first'))('a', 2, 'g1'))
  find(2)
  pass(AGREED_AFTER)
  agreed.begin()('first', 1, 'g1')
  checks.begun = 2
  checks.passed = new Map([['g1', 2]])
  expect(keep()).toBe(false)
  pass(AGREED_AFTER)
  agreed.begin()('first', 1, 'g1')
  expect(keep()).toBe(true)
})
