/**
 * What may be logged of an error that is not ours: its class and its place. Its message may quote what was sent or
 * stored.
 */

/** Exit code of a process that ends at an error that nothing listened for: EX_SOFTWARE of sysexits.h. */
export const UNHANDLED_EXIT_CODE = 70

export type ErrorPlace = { readonly error: string; readonly at: readonly string[] }

/** Frames shown of each error. */
const FRAMES_MAX = 8

/** A frame ends with line and column. */
const FRAME = /^\s+at .*:\d+:\d+\)?$/

export const errorPlace = (error: unknown): ErrorPlace => {
  if (!(error instanceof Error)) return { error: typeof error, at: [] }
  const { stack = '', message } = error
  // A message of several lines could look like a frame: the stack repeats it, and the frames come behind it.
  const behind = stack.includes(message) ? stack.indexOf(message) + message.length : 0
  const frames = stack
    .slice(behind)
    .split('\n')
    .filter(line => FRAME.test(line))
  return { error: error.name, at: frames.slice(0, FRAMES_MAX).map(withoutFolder) }
}

/** A frame names a file of ours or of a package, and not the folder that the program is installed in. */
const withoutFolder = (frame: string): string =>
  frame.trim().replace(/\(?file:\/\/.*\/(api|projector|commands|schemas|node_modules)\//, '($1/')
