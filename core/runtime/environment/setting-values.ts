/** The valid values of settings: how each kind of value is read from its text, and its default. */

export type Reader<Value> = {
  /** The valid values in words, for the message. */
  readonly expected: string
  /** Returns the value, or undefined if the text is invalid. */
  readonly read: (text: string) => Value | undefined
}
export type Setting<Value> = Reader<Value> & {
  readonly absent:
    | { readonly value: Value; readonly from?: never }
    /** The default depends on the setting `from`, which must be listed earlier. */
    | { readonly from: string; readonly value: (other: string) => Value }
    | 'required'
  /** Never shown, not even in the message that refuses the value. */
  readonly secret?: true
}

/** A wrong or missing setting: its name, the expected value and the given one. */
export type Problem = { readonly name: string; readonly expected: string; readonly got: string }

export const text = (expected: string, grammar: RegExp): Reader<string> => ({
  expected,
  read: value => (grammar.test(value) ? value : undefined),
})
export const integer = (min: number, max: number): Reader<number> => ({
  expected: `a whole number from ${min} to ${max}`,
  read: value => (/^\d{1,9}$/.test(value) && Number(value) >= min && Number(value) <= max ? Number(value) : undefined),
})
export const oneOf = <const Values extends readonly string[]>(values: Values): Reader<Values[number]> => ({
  expected: `one of ${values.join(', ')}`,
  read: value => values.find(candidate => candidate === value),
})
export const listOf = (item: Reader<string>): Reader<string[]> => ({
  expected: `${item.expected}, or several separated by commas`,
  read: value => {
    const items = value.split(',').map(part => item.read(part.trim()))
    return items.every(part => part !== undefined) ? items : undefined
  },
})
/** Whether a client can decode a part of a URL. */
const isEncoded = (part: string): boolean => {
  try {
    decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}
export const url = (protocols: readonly string[]): Reader<string> => ({
  expected: `an address that begins with ${protocols.map(protocol => `${protocol}//`).join(' or ')}, with %25 for % in a name or password`,
  read: value => {
    const { protocol = '', username = '', password = '' } = URL.parse(value) ?? {}
    return protocols.includes(protocol) && [username, password].every(isEncoded) ? value : undefined
  },
})

/** Without a path, so that a path can follow it. */
export const origin: Reader<string> = {
  expected: 'an address such as https://example.com, without a path',
  read: value => {
    const { protocol = '', origin = '', host = '' } = URL.parse(value) ?? {}
    const isWhole = value === origin || value === `${protocol}//${host}/`
    return ['http:', 'https:'].includes(protocol) && isWhole ? origin : undefined
  },
}

export const required = <Value>(reader: Reader<Value>): Setting<Value> => ({ ...reader, absent: 'required' })
export const optional = <Value>(reader: Reader<Value>): Setting<Value | undefined> => ({
  ...reader,
  absent: { value: undefined },
})
export const withDefault = <Value>(reader: Reader<Value>, value: Value): Setting<Value> => ({
  ...reader,
  absent: { value },
})
export const withDefaultFrom = <Value>(
  from: string,
  value: (other: string) => Value,
  reader: Reader<Value>,
): Setting<Value> => ({ ...reader, absent: { from, value } })
export const secret = <Value>(setting: Setting<Value>): Setting<Value> => ({ ...setting, secret: true })

export const broker = text('host:port', /^[^\s:,/]+:\d{1,5}$/)
export const topic = text('a topic name: 1 to 249 of a-z A-Z 0-9 . _ -', /^[a-zA-Z0-9._-]{1,249}$/)
export const anything = text('a text that is not empty', /^.+$/)
export const accessKey = text('a text without white space', /^[!-~]+$/)
export const auditLog = text(
  'stdout, a path that begins with /, or kafka: and a topic',
  /^(?:stdout|\/.+|kafka:[\w.-]{1,249})$/,
)
export const port = integer(0, 65_535)

/** An IP address, or a network in CIDR notation. */
export const network: Reader<string> = {
  expected: 'an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32',
  read: value => {
    const [, address = '', bits] = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(value) ?? []
    const isV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(address)
    const isV6 = address.includes(':') && URL.canParse(`http://[${address}]/`)
    return (isV4 || isV6) && Number(bits ?? 0) <= (isV4 ? 32 : 128) ? value : undefined
  },
}
