/** The order in which the files of a project begin: first those that `test/projects.ts` names. */
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { type Project, type ProjectName, projects } from '../projects.ts'

export default class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const { root } = this.ctx.config
    const placeOf = ({ project, moduleId }: TestSpecification): number => {
      const { first = [] }: Project = projects[project.name as ProjectName]
      const place = first.indexOf(relative(root, moduleId))
      return place === -1 ? first.length : place
    }
    // `super` leaves the projects one after the other.
    return [...Map.groupBy(sorted, ({ project }) => project.name).values()].flatMap(ofProject =>
      ofProject.toSorted((one, other) => placeOf(one) - placeOf(other)),
    )
  }
}

for (const [name, { first = [] }] of Object.entries<Project>(projects)) {
  const missing = first.filter(file => !existsSync(join(import.meta.dirname, '..', '..', file)))
  if (missing.length > 0)
    throw new Error(`test/projects.ts, first files of ${name}: ${missing.join(', ')} is not there`)
}
