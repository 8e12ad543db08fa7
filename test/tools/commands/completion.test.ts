/** Completion of commands and options in a shell. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { said } from '../../support/command-line.ts'

const complete = (script: string, ...words: string[]): string[] => {
  const quoted = words.map(word => `'${word}'`).join(' ')
  const asked = `${script}\nCOMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _commission; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', asked], { encoding: 'utf8' }).trim().split('\n')
}

test('bash completes commands, their commands and their options', async () => {
  const { out, code } = await said('completion', 'bash')
  expect(code).toBe(0)
  expect(complete(out, 'commission', 'par')).toEqual(['parked'])
  expect(complete(out, 'commission', 'parked', '')).toEqual(expect.arrayContaining(['list', 'count', 'publish-again']))
  expect(complete(out, 'commission', 'projection', 'parked', 'li')).toEqual(['list'])
  expect(complete(out, 'commission', 'keys', 'create', '--org', 'org_1', '--na')).toEqual(['--name'])
  expect(complete(out, 'commission', 'doctor', 'api', '--js')).toEqual(['--json'])
})

test('zsh and fish have every command, too', async () => {
  const [zsh, fish] = [await said('completion', 'zsh'), await said('completion', 'fish')]
  expect(zsh.out).toContain('bashcompinit')
  expect(zsh.out).toContain("'projection rules check'")
  expect(fish.out).toContain("complete -c commission -n '__fish_use_subcommand' -a parked\n")
  expect(fish.out).toContain(
    "complete -c commission -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from create' -l name\n",
  )
  expect(await said('completion', 'csh')).toMatchObject({ code: 2, out: '' })
})
