/**
 * Short digests of the lines of a file, in groups. They say where a file was changed; its SHA-256 says that it was.
 * A file of at most `GROUPS_MAX` lines has one digest a line.
 */
import { createHash } from 'node:crypto'
import { linesOf } from './lines.ts'

/** `each`: lines of one group. `digests`: 8 hexadecimal digits for each group, in order. */
export type LineDigests = { readonly each: number; readonly digests: string }

const GROUPS_MAX = 512
const DIGITS = 8

/** @param lines of the file, so that its digests have a bounded size */
export const digestLines = async (file: string, lines: number): Promise<LineDigests> => {
  let each = 1
  while (lines > each * GROUPS_MAX) each *= 2
  return { each, digests: await digestGroups(file, each) }
}

const digestGroups = async (file: string, each: number): Promise<string> => {
  let digests = ''
  let [group, lines] = [createHash('sha256'), 0]
  for await (const line of linesOf(file)) {
    group.update(line).update('\n')
    if (++lines % each !== 0) continue
    digests += group.digest('hex').slice(0, DIGITS)
    group = createHash('sha256')
  }
  return lines % each === 0 ? digests : digests + group.digest('hex').slice(0, DIGITS)
}

/** The lines of the first group that differs, counted from 1, both included; undefined if no group does. */
export const findChangedLines = async (
  file: string,
  { each, digests }: LineDigests,
): Promise<{ readonly from: number; readonly to: number } | undefined> => {
  const now = await digestGroups(file, each)
  for (let at = 0; at < Math.max(now.length, digests.length); at += DIGITS) {
    if (now.slice(at, at + DIGITS) === digests.slice(at, at + DIGITS)) continue
    const group = at / DIGITS
    return { from: group * each + 1, to: (group + 1) * each }
  }
  return undefined
}
