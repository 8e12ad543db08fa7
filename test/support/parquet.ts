/** Reads a Parquet table exactly. hyparquet itself returns decimals as floats and instants as Dates. */
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'

type Table = {
  /** Logical types of the columns by name, as `DECIMAL(38,2)`, `TIMESTAMP`, `DATE`, `INT32` and `text`. */
  readonly types: Readonly<Record<string, string>>
  /** Decimals as plain text with all places of the scale; instants in microseconds, dates in days since 1970. */
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

export const readTable = async (path: string): Promise<Table> => {
  const file = await asyncBufferFromFile(path)
  const metadata = await parquetMetadataAsync(file)
  const columns = metadata.schema.slice(1)
  const typeOf = ({ type, converted_type, logical_type, precision, scale }: (typeof columns)[number]): string => {
    if (converted_type === 'UTF8') return 'text'
    return logical_type?.type === 'DECIMAL' ? `DECIMAL(${precision},${scale})` : (logical_type?.type ?? String(type))
  }
  // Without their logical types, hyparquet returns the stored bytes and integers.
  const schema = metadata.schema.map(({ converted_type, logical_type: _, ...element }) =>
    converted_type === 'UTF8' ? { ...element, converted_type } : element,
  )
  const scales = new Map(columns.map(({ name, scale }) => [name, scale ?? 0]))
  const rows = await parquetReadObjects({ file, metadata: { ...metadata, schema } })
  return {
    types: Object.fromEntries(columns.map(column => [column.name, typeOf(column)])),
    rows: rows.map(row =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          value instanceof Uint8Array ? decimalIn(value, scales.get(name) ?? 0) : (value ?? null),
        ]),
      ),
    ),
  }
}

/** @param bytes two's complement, most significant byte first */
const decimalIn = (bytes: Uint8Array, scale: number): string => {
  const unscaled = BigInt.asIntN(bytes.length * 8, BigInt(`0x${Buffer.from(bytes).toString('hex')}`))
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
  return unscaled < 0n ? `-${text}` : text
}
