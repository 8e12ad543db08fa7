/** The explorer of the demo: the page, built into the folder of the logs, and served with the API at one origin. */
import { join } from 'node:path'
import { buildPage } from '../../explorer/build-page.ts'
import { serveExplorer } from '../../explorer/serve.ts'
import type { Say } from '../../services/service.ts'

type Parts = {
  /** Of the API, with its path. */
  readonly base: string
  readonly folder: string
  /** The program that runs Node. */
  readonly node: string
  readonly say: Say
}

/** Returns the origin of the page. */
export const startExplorer = async (
  stack: AsyncDisposableStack,
  { base, folder, node, say }: Parts,
): Promise<string> => {
  const building = new AbortController()
  stack.defer(() => building.abort())
  const built = join(folder, 'explorer')
  await buildPage(node, built, building.signal)
  const { origin, close } = await serveExplorer({ folder: built, api: base })
  stack.defer(close)
  say(`explorer runs at ${origin}`)
  return origin
}
