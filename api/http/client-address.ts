/**
 * In: a request. Out: the address of its client.
 * Promises: the result is the right-most hop of `X-Forwarded-For` that is not a trusted proxy. Hops to the left of it
 *   may be invented. Without trusted proxies, the result is the peer of the connection, whatever the header says.
 * Can go wrong: a hop that is not an address ends the search; the result is then the last valid hop.
 */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4 } from 'node:net'

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
