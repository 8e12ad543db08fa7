/** Builds the page into a folder, as `npm run build -w explorer` does into `dist/`. */
import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const vite = join(dirname(fileURLToPath(import.meta.resolve('vite/package.json'))), 'bin', 'vite.js')

/** A process of its own: a build sets variables of its process. */
export const buildPage = async (node: string, folder: string, signal: AbortSignal): Promise<void> => {
  const args = [vite, 'build', '--configLoader', 'native', '--logLevel', 'warn', '--outDir', folder, '--emptyOutDir']
  await promisify(execFile)(node, args, { cwd: import.meta.dirname, env: { NODE_ENV: 'production' }, signal })
}
