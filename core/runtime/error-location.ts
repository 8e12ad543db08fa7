/**
 * Extracts what may be logged of a foreign error: its class and its stack frames. Never its message, which may quote
 * requests or stored data.
 */

/** Exit code after an error that nothing handled: EX_SOFTWARE of sysexits.h. */
export const UNHANDLED_EXIT_CODE = 70

export type ErrorLocation = { readonly error: string; readonly at: readonly string[] }

const FRAMES_MAX = 8

const FRAME = /^\s+at .*:\d+:\d+\)?$/

export const errorLocation = (error: unknown): ErrorLocation => {
  if (!(error instanceof Error)) return { error: typeof error, at: [] }
  const { stack = '', message } = error
  // The stack begins with the message. Skip the message, because one of several lines could look like a frame.
  const framesFrom = stack.includes(message) ? stack.indexOf(message) + message.length : 0
  const frames = stack
    .slice(framesFrom)
    .split('\n')
    .filter(line => FRAME.test(line))
  return { error: error.name, at: frames.slice(0, FRAMES_MAX).map(withoutFolder) }
}

/** Removes the folder of the installation from a frame. */
const withoutFolder = (frame: string): string =>
  frame.trim().replace(frame.includes('/node_modules/') ? TO_PACKAGE : TO_ROOM, '$1/')

const TO_PACKAGE = /(?:file:\/\/)?\/.*\/(node_modules)\//
const TO_ROOM = /(?:file:\/\/)?\/.*\/(api|bench|client|core|demo|projector|schemas|services|tools)\//
