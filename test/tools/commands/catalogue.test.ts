/** Every command has a file of its own, which says what it takes and loads nothing before it runs. */
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { catalogue, type Listed } from '../../../tools/commands/catalogue.ts'
import { within } from '../../support/sources.ts'

const all = (listed: readonly Listed[]): Listed[] => listed.flatMap(one => [one, ...all(one.commands ?? [])])
const commands = all(catalogue.flatMap(([, listed]) => listed))

test('each command has a file, or commands of its own, and each file of a command is in the catalogue', async () => {
  for (const { name, load, commands: inner } of commands) expect([name, load ?? inner]).not.toEqual([name, undefined])
  const files = within('tools/commands').filter(({ text }) => text.includes('export default defineCommand('))
  expect(new Set(commands.flatMap(({ load }) => (load ? [String(load)] : []))).size).toBe(files.length)
})

test('the file of a command imports what it runs only when it runs', () => {
  const files = within('tools/commands').filter(({ text }) => text.includes('export default defineCommand('))
  const early = files.flatMap(({ path, text }) =>
    [
      ...text.matchAll(
        /^import (?!type ).* from '(\.\.\/\.\.\/(?!command\.ts|limits\.ts|failures\.ts|\.\.\/schemas\/)[^']+)'/gm,
      ),
    ].map(([, target]) => `${path}: ${target}`),
  )
  expect(files.length).toBeGreaterThan(30)
  expect(early).toEqual([])
})

test('each command with a result for scripts has --json', async () => {
  const without: string[] = []
  for (const { name, load } of commands) {
    if (load === undefined) continue
    const command = new Command(name)
    ;(await load()).default(command, async () => undefined)
    if (!command.options.some(({ long }) => long === '--json')) without.push(name)
  }
  // `follow` always prints JSON.
  expect(without).toEqual(['follow'])
})
