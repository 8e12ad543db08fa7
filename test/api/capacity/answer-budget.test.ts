import { describe, expect, test } from 'vitest'
import { type AnswerBudget, createAnswerBudget } from '../../../api/capacity/answer-budget.ts'
import {
  ANSWERS_HELD_MAX,
  ANSWERS_HELD_OF_KEY,
  ANSWERS_HELD_OF_ORGANIZATION,
  MUCH_IS_HELD,
  SMALL_ANSWER_BYTES,
  SMALL_ANSWERS_RESERVE,
} from '../../../api/limits.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'

const given = () => {
  const refused: string[] = []
  const much: boolean[] = []
  const budget = createAnswerBudget({ onRefused: by => refused.push(by), onMuchHeld: holds => much.push(holds) })
  return { budget, refused, much }
}
const keyOf = (org: number, id = 1) => ({ org: `org_${org}`, id: `key_${id}` })

/** Reserves bytes for keys of many organizations, until large answers get no more. */
const fill = (budget: AnswerBudget): void => {
  for (let left = ANSWERS_HELD_MAX - SMALL_ANSWERS_RESERVE, org = 100; left > 0; org++) {
    const bytes = Math.min(left, ANSWERS_HELD_OF_KEY)
    budget.open(keyOf(org)).add(bytes)
    left -= bytes
  }
}

describe('the budget of answer bytes', () => {
  test('counts bytes read for the large answer in the making against its organization, but not against its key', () => {
    const { budget, refused } = given()
    const making = budget.open(keyOf(1), () => true)
    making.add(ANSWERS_HELD_OF_KEY)
    making.add(ANSWERS_HELD_OF_ORGANIZATION - ANSWERS_HELD_OF_KEY)
    expect(() => making.add(1)).toThrow('cannot be read')
    expect(refused).toEqual(['organization'])
    refused.length = 0
    making.resize(ANSWERS_HELD_OF_KEY / 2)
    expect(() => budget.open(keyOf(1), () => true).add(ANSWERS_HELD_OF_KEY / 2 + 1)).toThrow('cannot be read')
    expect(refused).toEqual(['key'])
  })

  test('refuses a key bytes beyond its share; another key of the organization still gets some', () => {
    const { budget, refused } = given()
    const first = budget.open(keyOf(1))
    first.add(ANSWERS_HELD_OF_KEY)
    expect(() => budget.open(keyOf(1)).add(1)).toThrow('cannot be read')
    expect(refused).toEqual(['key'])
    budget.open(keyOf(1, 2)).add(ANSWERS_HELD_OF_ORGANIZATION - ANSWERS_HELD_OF_KEY)
    expect(() => budget.open(keyOf(1, 2)).add(1)).toThrow('cannot be read')
    expect(refused).toEqual(['key', 'organization'])
    first.close()
    budget.open(keyOf(1)).add(1)
  })

  test('refuses large answers if the process holds many bytes, and small ones only if no byte is left', () => {
    const { budget, refused } = given()
    fill(budget)
    expect(() => budget.open(keyOf(1)).add(SMALL_ANSWER_BYTES + 1)).toThrow('cannot be read')
    for (let n = 0; n < SMALL_ANSWERS_RESERVE / SMALL_ANSWER_BYTES; n++) budget.open(keyOf(n)).add(SMALL_ANSWER_BYTES)
    expect(budget.held()).toBe(ANSWERS_HELD_MAX)
    expect(() => budget.open(undefined).add(1)).toThrow('cannot be read')
    expect(refused).toEqual(['process', 'process'])
  })

  test('treats an answer that grows as large', () => {
    const { budget } = given()
    fill(budget)
    const answer = budget.open(keyOf(1))
    answer.add(SMALL_ANSWER_BYTES)
    expect(() => answer.add(1)).toThrow('cannot be read')
  })

  test('gives back reserved bytes that did not come, and on close all bytes, once', () => {
    const { budget } = given()
    const answer = budget.open(keyOf(1))
    answer.add(5_000)
    answer.resize(1_000)
    expect(budget.held()).toBe(1_000)
    answer.close()
    answer.close()
    answer.add(70)
    answer.resize(70)
    expect(budget.held()).toBe(0)
  })

  test('tells when the process starts and stops holding many bytes', () => {
    const { budget, much } = given()
    const answer = budget.open(keyOf(1))
    for (const bytes of [MUCH_IS_HELD, MUCH_IS_HELD + 1, MUCH_IS_HELD + 9, MUCH_IS_HELD]) answer.resize(bytes)
    expect(much).toEqual([true, false])
  })

  test('never exceeds its limit, and is empty in the end, in any order of reservations', () => {
    const seed = seedOfRun()
    const random = createRandom(seed)
    const { budget, much } = given()
    const open = new Set<ReturnType<AnswerBudget['open']>>()
    for (let n = 0; n < 5_000; n++) {
      const owner = random.chance(0.1) ? undefined : keyOf(random.below(4), random.below(3))
      const answer = random.pick([...open, budget.open(owner)])
      open.add(answer)
      try {
        if (random.chance(0.3)) answer.close()
        else answer.resize(random.below(random.pick([1_000, SMALL_ANSWER_BYTES, 20 * 1024 * 1024])))
      } catch {
        // Refused: nothing has changed.
      }
      expect(budget.held(), `seed ${seed}`).toBeLessThanOrEqual(ANSWERS_HELD_MAX)
    }
    for (const answer of open) answer.close()
    expect([budget.held(), much.at(-1) ?? false], `seed ${seed}`).toEqual([0, false])
  })
})
