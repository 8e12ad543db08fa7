/** The commands that start the two programs have the same flags in scripts, images, chart and pages. */
import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const FLAG = '--max-semi-space-size=16'
const files = [
  'package.json',
  'Dockerfile',
  'docker-compose.yml',
  'deploy/chart/templates/*.yaml',
  'docs/*.md',
].flatMap(pattern => globSync(pattern))

/** The flags of each command that starts this program, however its words are quoted. */
const commandsOf = (program: string): { file: string; flags: readonly string[] }[] =>
  files.flatMap(file => {
    const text = readFileSync(file, 'utf8')
    const command = new RegExp(`node((?:[\\s",]+--[\\w=-]+)*)[\\s",]+${program}/main\\.ts`, 'g')
    return [...text.matchAll(command)].map(([, flags = '']) => ({ file, flags: flags.match(/--[\w=-]+/g) ?? [] }))
  })

test.each([
  ['projector', ['Dockerfile', 'docker-compose.yml', 'package.json', 'deploy/chart/templates/projector.yaml']],
  ['api', ['docker-compose.yml', 'package.json', 'deploy/chart/templates/api.yaml']],
])('%s starts with a small young space everywhere', (program, places) => {
  const commands = commandsOf(program)
  const found = commands.map(({ file }) => file)
  for (const place of [...places, 'docs/operating.md', 'docs/installation.md', 'docs/docker.md'])
    expect(found).toContain(place)
  expect(commands.filter(({ flags }) => !flags.includes(FLAG))).toEqual([])
})
