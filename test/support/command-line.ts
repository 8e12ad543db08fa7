/** Reads a command line without running its command. */
import { exitCodes } from '../../tools/failures.ts'
import { runProgram } from '../../tools/program.ts'

/** Returns the command with its options, the output and the exit code. @param columns of a terminal */
export const saidIn = async (columns: number | undefined, ...args: string[]) => {
  const called: unknown[] = []
  const text = { out: '', error: '' }
  const code = await runProgram(
    args,
    async (name, options) => {
      called.push(name, options)
      return exitCodes.notAll
    },
    { out: more => (text.out += more), error: more => (text.error += more), version: '1.2.3', columns },
  )
  return { called, code, ...text }
}

export const said = (...args: string[]) => saidIn(undefined, ...args)
