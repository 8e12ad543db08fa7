import { describe, expect, test } from 'vitest'
import {
  ANSWERS_HELD_MAX,
  ANSWERS_HELD_OF_KEY,
  ANSWERS_HELD_OF_ORGANIZATION,
  ANSWERS_IN_DELIVERY_OF_KEY,
  ANSWERS_IN_DELIVERY_OF_ORGANIZATION,
  MUCH_IS_HELD,
  SMALL_ANSWER_BYTES,
  SMALL_ANSWERS_RESERVE,
} from '../../../../core/store/limits.ts'
import { type AnswerBudget, createAnswerBudget } from '../../../../core/store/read/answer-budget.ts'
import { PAGE_BYTES_MAX } from '../../../../schemas/limits.ts'
import { createRandom, seedOfRun } from '../../../support/random.ts'

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
    making.add(ANSWERS_HELD_OF_KEY / 2 - making.held())
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

  /** Reserves an answer of this size and delivers it, as often as the budget allows. @returns how often */
  const deliverUntilRefused = (
    budget: AnswerBudget,
    bytes: number,
    owner: (n: number) => { org: string; id: string },
  ) => {
    for (let n = 0; n < 1_000; n++) {
      const answer = budget.open(owner(n))
      try {
        answer.add(bytes)
        answer.deliver(bytes)
      } catch {
        answer.close()
        return n
      }
    }
    throw new Error('never refused')
  }

  test.each([
    ['largest pages', PAGE_BYTES_MAX],
    ['pages of 4 MiB', 4 * SMALL_ANSWER_BYTES],
    ['small pages', 300_000],
  ])('leaves others half of the room for large answers, while an organization takes no byte of its %s', (_, bytes) => {
    const { budget } = given()
    const forLarge = ANSWERS_HELD_MAX - SMALL_ANSWERS_RESERVE
    expect(deliverUntilRefused(budget, bytes, n => keyOf(1, n % 5)) * bytes).toBeGreaterThan(forLarge / 2 - bytes)
    budget.open(keyOf(2)).add(forLarge / 2)
  })

  test('refuses an answer that has no room for its delivery before it is read', () => {
    const { budget, refused } = given()
    deliverUntilRefused(budget, PAGE_BYTES_MAX, () => keyOf(1))
    refused.length = 0
    const answer = budget.open(keyOf(1, 2))
    answer.add(SMALL_ANSWER_BYTES)
    expect(() => answer.add(ANSWERS_HELD_OF_KEY / 2)).toThrow('cannot be read')
    expect(() => budget.open(keyOf(1)).add(SMALL_ANSWER_BYTES + 1)).toThrow('cannot be read')
    expect([budget.held(), refused]).toEqual([2 * PAGE_BYTES_MAX + SMALL_ANSWER_BYTES, ['organization', 'key']])
  })

  test('refuses an answer at its delivery if others, read at the same time, took the room', () => {
    const { budget } = given()
    const bytes = 4 * SMALL_ANSWER_BYTES
    const read = Array.from({ length: 16 }, (_, n) => budget.open(keyOf(1, n)))
    for (const answer of read) answer.add(bytes)
    const delivered = read.filter(answer => {
      try {
        answer.deliver(bytes)
        return true
      } catch {
        answer.close()
        return false
      }
    })
    expect(delivered).toHaveLength(ANSWERS_IN_DELIVERY_OF_ORGANIZATION / bytes)
    expect(budget.held()).toBe(ANSWERS_IN_DELIVERY_OF_ORGANIZATION)
    for (const answer of delivered) answer.close()
    expect(deliverUntilRefused(budget, bytes, n => keyOf(1, n))).toBe(delivered.length)
  })

  test('lets a key deliver two of the largest pages at once; another key of the organization still gets small answers', () => {
    const { budget } = given()
    // A page also has the JSON around its records.
    expect(deliverUntilRefused(budget, PAGE_BYTES_MAX + 60_000, () => keyOf(1))).toBe(2)
    deliverUntilRefused(budget, 10_000, () => keyOf(1))
    const other = budget.open(keyOf(1, 2))
    other.add(SMALL_ANSWER_BYTES)
    other.deliver(SMALL_ANSWER_BYTES)
  })

  test('lets an organization read the largest answer while a largest page is in delivery', () => {
    const { budget } = given()
    budget.open(keyOf(1)).deliver(PAGE_BYTES_MAX)
    const making = budget.open(keyOf(1), () => true)
    for (let part = 0; part < 8; part++) making.add(ANSWERS_HELD_OF_KEY / 8)
  })

  test('gives back reserved bytes that did not come, and on close all bytes, once', () => {
    const { budget } = given()
    const answer = budget.open(keyOf(1))
    answer.add(5_000)
    answer.deliver(1_000)
    expect(budget.held()).toBe(1_000)
    answer.close()
    answer.close()
    answer.add(70)
    answer.deliver(70)
    expect(budget.held()).toBe(0)
  })

  test('tells when the process starts and stops holding many bytes', () => {
    const { budget, much } = given()
    const answer = budget.open(keyOf(1))
    for (const bytes of [MUCH_IS_HELD, MUCH_IS_HELD + 1, MUCH_IS_HELD + 9, MUCH_IS_HELD]) {
      answer.add(bytes - answer.held())
    }
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
        const bytes = random.below(random.pick([1_000, SMALL_ANSWER_BYTES, 20 * 1024 * 1024]))
        random.pick([answer.close, () => answer.deliver(bytes), () => answer.add(bytes - answer.held())])()
      } catch {
        // Refused: nothing has changed.
      }
      expect(budget.held(), `seed ${seed}`).toBeLessThanOrEqual(ANSWERS_HELD_MAX)
    }
    for (const answer of open) answer.close()
    expect([budget.held(), much.at(-1) ?? false], `seed ${seed}`).toEqual([0, false])
    // No bytes are left in delivery either.
    for (const org of [0, 1, 2, 3]) budget.open(keyOf(org)).deliver(ANSWERS_IN_DELIVERY_OF_KEY / 2)
  })
})
