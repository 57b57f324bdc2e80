// `deniedNetworks` parses the networks that an operator denies, in addition to the built-in list.
import { BlockList, isIP } from 'node:net'
import { SluiceError } from '../../errors.ts'
import { inDresses } from './addresses.ts'

const NETWORK = /^([0-9a-f.:]+)(?:\/(\d{1,3}))?$/i

/** `deniedNetworks` parses IPv4 and IPv6 networks in CIDR notation, and single addresses. */
export function deniedNetworks(networks: readonly string[]): BlockList {
  const list = new BlockList()
  if (!Array.isArray(networks)) throw invalid(networks)
  for (const network of networks as readonly unknown[]) {
    const [, address = '', bits] = NETWORK.exec(typeof network === 'string' ? network : '') ?? []
    const family = isIP(address)
    const most = family === 6 ? 128 : 32
    const prefix = bits === undefined ? most : Number(bits)
    if (family === 0 || prefix > most) throw invalid(network)
    list.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4')
    if (family === 4)
      for (const [dressed, dressedPrefix] of inDresses(address, prefix)) list.addSubnet(dressed, dressedPrefix, 'ipv6')
  }
  return list
}

function invalid(got: unknown): SluiceError {
  const rule = 'delivery.deny must be a list of networks or addresses, e.g. 203.0.114.0/24 or 2001:db9::/32'
  return new SluiceError('CONFIG_INVALID', `new Sluice: ${rule}; got ${JSON.stringify(got) ?? typeof got}.`)
}
