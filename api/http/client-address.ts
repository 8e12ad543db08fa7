/**
 * In: a request. Out: the address of its client.
 * Promises: the result is the right-most hop of `X-Forwarded-For` that is not a trusted proxy. Hops to the left of it
 *   may be invented. Without trusted proxies, the result is the peer of the connection, whatever the header says.
 * Can go wrong: a hop that is not an address ends the search; the result is then the last valid hop.
 */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

export type AddressOf = (req: Pick<IncomingMessage, 'socket' | 'headers'>) => string | undefined

/** @param trusted addresses or networks (CIDR) of proxies */
export const createAddressOf = (trusted: readonly string[]): AddressOf => {
  if (trusted.length === 0) return ({ socket }) => socket.remoteAddress
  const proxies = new BlockList()
  for (const network of trusted) {
    const [address = '', bits] = network.split('/')
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    if (bits === undefined) proxies.addAddress(address, family)
    else proxies.addSubnet(address, Number(bits), family)
  }
  const isTrusted = (address: string): boolean => proxies.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')

  return ({ socket, headers }) => {
    let address = socket.remoteAddress
    const hops = String(headers['x-forwarded-for'] ?? '').split(',')
    while (address !== undefined && isTrusted(address)) {
      const hop = withoutPort(hops.pop()?.trim() ?? '')
      if (isIP(hop) === 0) break
      address = hop
    }
    return address
  }
}

/** Some proxies append the port to the address. */
const withoutPort = (hop: string): string => {
  const [, v4, v6] = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([^\]]*)\](?::\d+)?)$/.exec(hop) ?? []
  return v4 ?? v6 ?? hop
}

/** Returns what counts as one address: an IPv4 address, or the 64 bits of an IPv6 address that name its network. */
export const networkOf = (address = ''): string => {
  const [, v4] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? []
  if (v4 !== undefined) return v4
  if (!isIPv6(address)) return address
  const [before = '', after] = address.split('%', 1)[0]?.toLowerCase().split('::') ?? []
  const groups = before === '' ? [] : before.split(':')
  const missing = after === undefined ? 0 : 8 - groups.length - (after === '' ? 0 : after.split(':').length)
  const whole = [...groups, ...Array.from({ length: missing }, () => '0'), ...(after ? after.split(':') : [])]
  return whole
    .slice(0, 4)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')
}
