/** The command `commission`: reads the command line, loads and runs one command, exits. */
import { readFileSync } from 'node:fs'
import { endAtUnhandledErrors } from '../core/runtime/index.ts'
import { type ExitCode, exitCodes } from './exit-codes.ts'
import { createOutput, writeRest } from './output.ts'
import { type RunCommand, runProgram } from './program.ts'
import type { Stop } from './signals.ts'

writeRest(process.stdout, process.stdout.fd)
const out = createOutput(process.stdout)
/** Overwrites the progress line. */
const say = (line: string): void => void process.stderr.write(`${process.stderr.isTTY ? '\r\u001b[K' : ''}${line}\n`)

const draw = process.stderr.isTTY ? (line: string): void => void process.stderr.write(`\r\u001b[K${line}`) : undefined

let stop: Stop | undefined

/** The clients of a command are loaded and built here, so that help needs neither them nor settings. */
const runCommand: RunCommand = async (_name, _options, run) => {
  const [{ createContexts }, { createStop }] = await Promise.all([import('./contexts.ts'), import('./signals.ts')])
  stop = createStop(say, process)
  await using stack = new AsyncDisposableStack()
  // Awaited here: without `await` the clients would be closed while the command runs.
  return await run(createContexts(stack, { out, say, draw, stoppedBySignal: stop.signal }))
}

const versionOf = (): string => JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version

const main = (args: readonly string[]): Promise<ExitCode> =>
  runProgram(args, runCommand, {
    out: text => void out(text),
    error: text => void process.stderr.write(text),
    version: versionOf(),
    columns: process.stdout.isTTY ? process.stdout.columns : undefined,
  })

// The output is incomplete: the command has failed, whatever its exit code.
const outputIsLost = (error: Error): void => {
  const { code }: NodeJS.ErrnoException = process.stdout.errored ?? error
  say(code === 'EPIPE' ? 'stopped: nobody reads the output any more' : `the output cannot be written: ${code}`)
  process.exit(exitCodes.failed)
}
process.stdout.on('error', outputIsLost)
// Nobody reads the messages: the command continues.
process.stderr.on('error', () => undefined)
endAtUnhandledErrors(process, ({ error, at }) => say([`a defect: ${error}`, ...at].join('\n  ')))
const ended = await main(process.argv.slice(2)).catch(async (error: unknown) => {
  const { messageOf } = await import('./failures.ts')
  say(messageOf(error))
  return exitCodes.failed
})
const code = stop?.codeOf(ended) ?? ended
// Open connections must not keep the process alive. Output that is written goes out first.
process.stdout.write('', error => (error ? outputIsLost(error) : process.exit(code)))
