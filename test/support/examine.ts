/** Runs `commission doctor`. */
import { expect } from 'vitest'
import { type Ran, runCommand } from './commands.ts'
import { eventually } from './scope.ts'

/** Without an answer in its time, a check says nothing: on a busy machine it is made again. */
export const examine = (
  args: readonly string[],
  settings: Readonly<Record<string, string | undefined>>,
): Promise<Ran> =>
  eventually(async () => {
    const ran = await runCommand(['doctor', ...args], settings)
    expect(ran.out.length, ran.said).toBeGreaterThan(0)
    expect(ran.out.toString()).not.toContain('no answer within ')
    return ran
  })
