// `trustedProxies` decides whose forwarded headers are trusted and whose connections are not bounded, with one rule for
// both.
import { createAddressTest } from '../validate/addresses.ts'
import { invalidOption } from '../validate/options.ts'

/** `IsTrusted` gets undefined for a closed connection. */
export type IsTrusted = (address: string | undefined) => boolean

/** The common names of proxy networks. */
const NETWORKS: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1']],
  ['linklocal', ['169.254.0.0/16', 'fe80::/10']],
  ['uniquelocal', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
])

export function trustedProxies(listed: readonly string[] = []): IsTrusted {
  if (!Array.isArray(listed)) {
    throw invalidOption("listen: trustProxy must be a list of addresses and networks, e.g. ['10.0.0.0/8'].")
  }
  // Here an empty list trusts no proxy; `createAddressTest` would reject it.
  if (listed.length === 0) return () => false
  const isListed = createAddressTest(
    'listen: trustProxy',
    listed.flatMap((entry: string) => NETWORKS.get(entry) ?? entry),
  )
  return (address) => address !== undefined && isListed(withoutPort(address))
}

/** `withoutPort` removes a port: some proxies forward 203.0.113.7:4711 or [2001:db8::1]:4711. */
export function withoutPort(address: string): string {
  // The common case first: an IPv4 address without a port.
  if (!address.includes(':')) return address
  return (
    PORT.exec(address)
      ?.slice(1)
      .find((part) => part !== undefined) ?? address
  )
}

const PORT = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/
