/** Node keeps what it compiled here: without it each start of a process compiles again, for half of its CPU. */
import { join } from 'node:path'

export const compileCache = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'node'),
}
