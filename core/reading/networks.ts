/**
 * In: the networks of a key. Out: whether an address is in one of them.
 * Promises: an IPv4 address in IPv6 form (`::ffff:192.0.2.1`) counts as IPv4, so that it is in no network of IPv6. An
 *   address that is not known is in no network.
 * Can go wrong: a text is no network → undefined, never a list without it: no key works from everywhere by mistake.
 */
import { BlockList, isIP } from 'node:net'
import { isIPv6Network, isNetwork } from '../../schemas/values.ts'

export type IsInNetworks = (address: string | undefined) => boolean

/** IPv4 addresses in IPv6 form. */
const MAPPED = ['::ffff:0:0', 96, 'ipv6'] as const

/** Returns undefined unless each text is a network. */
export const networksOf = (networks: readonly unknown[]): IsInNetworks | undefined => {
  // One list for both families would not do: in it, `::/0` has all IPv4 addresses too.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  const mapped = new BlockList()
  mapped.addSubnet(...MAPPED)
  for (const network of networks) {
    if (!isNetwork(network)) return undefined
    const [address = '', bits] = network.split('/')
    const family = isIPv6Network(network) ? 'ipv6' : 'ipv4'
    lists[family].addSubnet(address, Number(bits), family)
  }
  return address => {
    const version = isIP(address ?? '')
    if (address === undefined || version === 0) return false
    if (version === 4) return lists.ipv4.check(address, 'ipv4')
    return lists[mapped.check(address, 'ipv6') ? 'ipv4' : 'ipv6'].check(address, 'ipv6')
  }
}
