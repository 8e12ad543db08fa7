/** Options that several commands have, and parsers of arguments. A bad argument is a mistake in the command line. */

import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { parkCodes } from '../../schemas/errors.ts'
import { KEY_NETWORKS_MAX, TEXT_LENGTH_MAX } from '../../schemas/limits.ts'
import { type IdPrefix, instantToNanoseconds, isId, isNetwork } from '../../schemas/values.ts'
import type { UntilOffset } from '../analysis/replay-bounds.ts'
import { WAIT_DEFAULT_S } from '../limits.ts'
import type { Filter, RecordPosition } from '../parked/find.ts'

/** Returns the parser of ids with a prefix. */
export const parseId =
  (prefix: IdPrefix) =>
  (text: string): string => {
    if (isId(prefix, text)) return text
    throw new InvalidArgumentError(`Expected ${prefix}_ and 1 to 64 characters of 0-9 A-Z a-z.`)
  }

/** Returns the parser of ids with one of two prefixes. */
export const parseIdOf =
  (prefix: IdPrefix, other: IdPrefix) =>
  (text: string): string => {
    if (isId(prefix, text) || isId(other, text)) return text
    throw new InvalidArgumentError(`Expected ${prefix}_ or ${other}_, and 1 to 64 characters of 0-9 A-Z a-z.`)
  }

export const parseGeneration = (text: string): string => {
  if (/^[a-z][a-z0-9]{0,31}$/.test(text)) return text
  throw new InvalidArgumentError('Expected the name of a generation, as list shows it.')
}

export const parseGenerationOrSandbox = (text: string): string => {
  if (/^(?:sandbox:)?[a-z][a-z0-9]{0,31}$/.test(text)) return text
  throw new InvalidArgumentError('Expected the name of a generation, or sandbox: and the name of a sandbox.')
}

export const parseSandboxName = (text: string): string => {
  if (/^[a-z][a-z0-9]{0,31}$/.test(text)) return text
  throw new InvalidArgumentError('Expected a lower-case letter and up to 31 characters of a-z 0-9.')
}

export const parseKeyName = (text: string): string => {
  if (text.isWellFormed() && [...text].length <= TEXT_LENGTH_MAX) return text
  throw new InvalidArgumentError(`Expected at most ${TEXT_LENGTH_MAX} characters.`)
}

export const numberOption = (flags: string, description: string, min: number, max: number): Option =>
  new Option(flags, description).argParser(text => {
    if (/^\d{1,16}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text)
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`)
  })

/** Records a second; infinite without the option. */
export const maxRateOption = (): Option =>
  numberOption('--max-rate <records>', 'records a second at most, to spare the live projection', 1, 1_000_000).default(
    Number.POSITIVE_INFINITY,
    'no limit',
  )

/** The file of the key that signs a manifest. */
export const signOption = (): Option =>
  new Option('--sign <keyfile>', 'signs the manifest with this key, as commission evidence key wrote it')

/** Any text is taken: a message about it must not have it, because it can be the secret key. */
const addPublicKey = (text: string, before: readonly string[] = []): string[] => [...before, text]

export const publicKeyOption = (): Option =>
  new Option('--key <public>', 'a public key; repeatable: one of them must have signed').argParser(addPublicKey)

/** Seconds to wait for the projector. */
export const waitOption = (): Option =>
  numberOption('--wait <seconds>', 'longest wait for the projector', 1, 86_400).default(WAIT_DEFAULT_S)

export const orgOption = (description = 'the organization'): Option =>
  new Option('--org <id>', description).argParser(parseId('org')).makeOptionMandatory()

export const orgArgument = (): Argument => new Argument('<org>', 'the organization').argParser(parseId('org'))

export const repArgument = (): Argument => new Argument('<rep>', 'the person').argParser(parseId('rep'))

export const keyIdOption = (): Option =>
  new Option('--id <key>', 'its id, as list shows it').argParser(parseId('key')).makeOptionMandatory()

export const expiryOption = (): Option =>
  new Option('--expires-at <instant>', 'the API refuses it from then on').argParser(parseExpiry)

export const networkOption = (
  description = 'it works only from this network, such as 203.0.113.0/24 (default: from everywhere); repeatable',
): Option => new Option('--network <cidr>', description).argParser(addNetwork)

const addNetwork = (text: string, before: readonly string[] = []): string[] => {
  if (!isNetwork(text)) throw new InvalidArgumentError('Expected a network such as 203.0.113.0/24 or 2001:db8::/32.')
  if (before.length >= KEY_NETWORKS_MAX) throw new InvalidArgumentError(`Expected at most ${KEY_NETWORKS_MAX}.`)
  return [...before, text]
}

export const generationOption = (): Option =>
  new Option('--generation <name>', 'a generation, or sandbox:NAME (default: the live generation)').argParser(
    parseGenerationOrSandbox,
  )

export const A_POSITION = 'topic:partition:offset, as list shows it'

/** Returns the position that one word or three words say; undefined if they say none. */
export const positionIn = (words: readonly string[]): RecordPosition | undefined => {
  const isWhole = words.length === 1 || words.length === 3
  const [, topic, partition, offset] =
    (isWhole && /^([a-zA-Z0-9._-]{1,249}):(\d{1,9}):(\d{1,15})$/.exec(words.join(':'))) || []
  return topic === undefined ? undefined : { topic, partition: Number(partition), offset: Number(offset) }
}

export const parsePosition = (text: string): RecordPosition => {
  const position = positionIn([text])
  if (position === undefined) throw new InvalidArgumentError('Expected topic:partition:offset.')
  return position
}

export const addPosition = (text: string, before: RecordPosition[]): RecordPosition[] => [
  ...before,
  parsePosition(text),
]

/** Positions in different partitions. A plain 0 adds none. */
export const addParkedEnd = (text: string, before: readonly RecordPosition[] = []): readonly RecordPosition[] => {
  if (text === '0') return before
  const position = positionIn([text])
  if (position === undefined) throw new InvalidArgumentError('Expected topic:partition:offset, or 0.')
  if (before.some(({ partition }) => partition === position.partition)) throw new InvalidArgumentError(ONE_OFFSET)
  return [...before, position]
}

const ONE_OFFSET = 'Expected one offset for each partition.'

export const addUntilOffset = (text: string, before: readonly UntilOffset[] = []): UntilOffset[] => {
  const [, partition, offset] = /^(?:(\d{1,9}):)?(\d{1,15})$/.exec(text) ?? []
  if (offset === undefined) throw new InvalidArgumentError('Expected partition:offset, or an offset.')
  const until = { partition: partition === undefined ? undefined : Number(partition), offset: Number(offset) }
  if (before.some(other => other.partition === until.partition)) throw new InvalidArgumentError(ONE_OFFSET)
  return [...before, until]
}

/** Milliseconds since 1970. Cuts finer digits off: the times of records are in milliseconds. */
export const parseInstant = (text: string): number => {
  const nanoseconds = instantToNanoseconds(text)
  if (nanoseconds === undefined) throw new InvalidArgumentError('Expected an RFC 3339 instant: 2026-02-01T00:00:00Z.')
  return Number(nanoseconds / 1_000_000n - (nanoseconds % 1_000_000n < 0n ? 1n : 0n))
}

/** Returns the text of an instant. */
const parseExpiry = (text: string): string => {
  parseInstant(text)
  return text
}

/** Adds the options that select parked records. */
export const withFilter = (command: Command): Command =>
  command
    .addOption(new Option('--code <code...>', 'parked with one of these codes').choices(parkCodes))
    .addOption(new Option('--org <id>', 'only records of this organization').argParser(parseId('org')))
    .option('--type <type>', 'only records of this event type')
    .option('--topic <name>', 'only records of this topic')
    .addOption(numberOption('--partition <number>', 'only records of this partition', 0, 1_000_000))

/** Returns the filter of these options. */
export const filterOf = ({ code, org, type, topic, partition }: Filter): Filter => ({
  ...(code !== undefined && { code }),
  ...(org !== undefined && { org }),
  ...(type !== undefined && { type }),
  ...(topic !== undefined && { topic }),
  ...(partition !== undefined && { partition }),
})
