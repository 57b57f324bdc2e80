// Which proxies are listed: one answer for whose forwarded headers are believed and for whose connections are not counted.
import { SluiceError } from '../errors.ts'
import { addressList } from '../sources/address-list.ts'

/** Undefined is the address of a connection that is gone. */
export type IsTrusted = (address: string | undefined) => boolean

/** Names that proxies are commonly listed by. */
const NETWORKS: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1']],
  ['linklocal', ['169.254.0.0/16', 'fe80::/10']],
  ['uniquelocal', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
])

export function trustedProxies(listed: readonly string[] = []): IsTrusted {
  if (!Array.isArray(listed)) {
    throw new SluiceError('CONFIG_INVALID', "listen: trustProxy is a list of addresses and networks: ['10.0.0.0/8'].")
  }
  // An empty list lets nobody in here, and is refused there.
  if (listed.length === 0) return () => false
  const isListed = addressList(
    'listen: trustProxy',
    listed.flatMap((entry: string) => NETWORKS.get(entry) ?? entry),
  )
  return (address) => address !== undefined && isListed(withoutPort(address))
}

/** Some proxies forward the port as well: 203.0.113.7:4711, [2001:db8::1]:4711. */
export function withoutPort(address: string): string {
  // Before anything is looked for: an address of IPv4 without a port is the usual one.
  if (!address.includes(':')) return address
  return (
    PORT.exec(address)
      ?.slice(1)
      .find((part) => part !== undefined) ?? address
  )
}

const PORT = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/
