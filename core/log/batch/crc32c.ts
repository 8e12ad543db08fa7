/** CRC-32C (Castagnoli), the checksum of a batch of records. Eight bytes at a time: each fetched byte is checked. */

const POLYNOMIAL = 0x82f63b78
/** `tables[n][byte]`: the checksum of a byte that `n` zero bytes follow. */
const tables = Array.from({ length: 8 }, () => new Int32Array(256))
const at = (table: number, byte: number): number => tables[table]?.[byte] ?? 0
for (let byte = 0; byte < 256; byte++) {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
  tables[0]?.fill(crc, byte, byte + 1)
}
for (let table = 1; table < 8; table++) {
  for (let byte = 0; byte < 256; byte++) {
    const before = at(table - 1, byte)
    tables[table]?.fill((before >>> 8) ^ at(0, before & 0xff), byte, byte + 1)
  }
}
const [t0, t1, t2, t3, t4, t5, t6, t7] = tables

/** Returns an unsigned number. */
export const crc32c = (bytes: Uint8Array): number => {
  if (!(t0 && t1 && t2 && t3 && t4 && t5 && t6 && t7)) return 0
  let crc = -1
  let next = 0
  // The indices are within the bounds. The casts spare a check of each byte.
  for (const end = bytes.length - 7; next < end; next += 8) {
    const first =
      crc ^
      ((bytes[next] as number) |
        ((bytes[next + 1] as number) << 8) |
        ((bytes[next + 2] as number) << 16) |
        ((bytes[next + 3] as number) << 24))
    crc =
      (t7[first & 0xff] as number) ^
      (t6[(first >>> 8) & 0xff] as number) ^
      (t5[(first >>> 16) & 0xff] as number) ^
      (t4[first >>> 24] as number) ^
      (t3[bytes[next + 4] as number] as number) ^
      (t2[bytes[next + 5] as number] as number) ^
      (t1[bytes[next + 6] as number] as number) ^
      (t0[bytes[next + 7] as number] as number)
  }
  for (; next < bytes.length; next++) crc = (crc >>> 8) ^ (t0[(crc ^ (bytes[next] as number)) & 0xff] as number)
  return ~crc >>> 0
}
