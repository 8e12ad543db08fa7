/** The partitions of the topics: that of an organization's events, and the only one of the API keys. */

/**
 * The topic of API keys has one partition. All uses of one secret must be in order, in all organizations, and the
 * record key is the organization: of two partitions, either could have the first key with a secret. The uses of these
 * two constants rely on it, and two offsets: `serve_from` of a position, and `first_rules_until` of the keys. For
 * several partitions the record key would be the hash of the secret: publishers and `org_mismatch` would change, and a
 * revocation, which has no hash, would need a new version. Two events with one key id could then come from two
 * partitions: their offsets must not be versions of one document, and `id_reused` must see both.
 */
export const KEYS_PARTITIONS = 1
export const KEYS_PARTITION = 0

/**
 * Returns the partition of an organization's events: `(murmur2(key) & 0x7fffffff) % partitions`, the default of Java
 * and kafkajs publishers. The projector parks a record in any other partition; the API reads this partition's position.
 */
export const partitionOf = (org: string | Buffer, partitions: number): number =>
  (murmur2(typeof org === 'string' ? Buffer.from(org) : org) & 0x7fffffff) % partitions

const M = 0x5bd1e995
const SEED = 0x9747b28c

/** MurmurHash2, 32 bit, with Kafka's seed. */
export const murmur2 = (bytes: Uint8Array): number => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const whole = bytes.length & ~3
  let hash = SEED ^ bytes.length

  for (let i = 0; i < whole; i += 4) {
    let word = Math.imul(view.getInt32(i, true), M)
    word = Math.imul(word ^ (word >>> 24), M)
    hash = Math.imul(hash, M) ^ word
  }

  for (let i = bytes.length - 1; i >= whole; i--) hash ^= view.getUint8(i) << ((i - whole) * 8)
  if (bytes.length > whole) hash = Math.imul(hash, M)

  hash = Math.imul(hash ^ (hash >>> 13), M)
  return hash ^ (hash >>> 15)
}
