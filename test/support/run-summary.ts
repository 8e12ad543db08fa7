/**
 * A reporter for `npm test` and `npm run test:full`: tells at the end of a run which projects ran, and which did not,
 * with the command that runs them.
 */
import { globSync } from 'node:fs'
import { matchesGlob } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'
import { type Project, projects } from '../projects.ts'
import { dockerAnswers } from './docker.ts'
import { leftOut } from './programs.ts'

const SLOWEST_FILES = 5

const filesOf = ({ include, exclude }: Project): string[] =>
  globSync(include).filter(path => !exclude.some(pattern => matchesGlob(path, pattern)))

const seconds = (milliseconds: number): string => `${Math.round(milliseconds / 1_000)} s`
const durationOf = (module: TestModule): number => module.diagnostic().duration

/** @returns lines for people */
const summarize = (modules: readonly TestModule[]): string[] => {
  const ran = new Map(Object.entries(Object.groupBy(modules, ({ project }) => project.name)))
  const lines = [...ran].map(([name, all = []]) => {
    const tests = all.flatMap(({ children }) => [...children.allTests()])
    const skipped = tests.filter(test => test.result().state === 'skipped').length
    return `ran: ${name}, ${all.length} files, ${tests.length - skipped} tests, ${skipped} skipped`
  })
  const slowest = modules.toSorted((a, b) => durationOf(b) - durationOf(a)).slice(0, SLOWEST_FILES)
  lines.push(
    `slowest files: ${slowest.map(each => `${each.relativeModuleId} ${seconds(durationOf(each))}`).join(', ')}`,
  )
  // A file can belong to two projects.
  const ranFiles = new Set(modules.map(({ relativeModuleId }) => relativeModuleId))
  for (const [name, project] of Object.entries(projects)) {
    const left = filesOf(project).filter(path => !ranFiles.has(path)).length
    if (left > 0) lines.push(`left out: ${name}, ${left} files; \`${project.command}\` runs them`)
  }
  lines.push('left out: planted bugs and more seeds; `npm run mutants` and `npm run simulate` run them')
  if (!dockerAnswers) lines.push('left out: the image (no Docker engine answers)')
  const missing = leftOut()
  return missing === undefined ? lines : [...lines, missing]
}

export default class RunSummary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    console.log(`\n${summarize(modules).join('\n')}\n`)
  }
}
