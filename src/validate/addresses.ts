// `createAddressTest` tests whether an address may send: single addresses and networks, IPv4 and IPv6.
import { BlockList, isIP } from 'node:net'
import { invalidOption } from './options.ts'

type AddressTest = (address: string) => boolean

/** Undefined allows every address. An empty list would allow none, and is rejected. */
export function createAddressTest(scheme: string, entries: readonly string[] | undefined): AddressTest {
  if (entries === undefined) return () => true
  if (!Array.isArray(entries) || entries.length === 0) {
    throw invalidOption(
      `${scheme}: addresses must be a list such as ['203.0.113.0/24']. Omit it to allow every address.`,
    )
  }
  const list = new BlockList()
  for (const entry of entries) addEntry(list, scheme, entry)
  return (address) => {
    const [plain = ''] = address.split('%')
    const family = isIP(plain)
    return family !== 0 && list.check(plain, family === 6 ? 'ipv6' : 'ipv4')
  }
}

function addEntry(list: BlockList, scheme: string, entry: unknown): void {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(String(entry)) ?? []
  const family = isIP(address)
  const most = family === 6 ? 128 : 32
  if (family === 0 || Number(bits ?? most) > most) {
    throw invalidOption(
      `${scheme}: addresses must hold addresses or networks like 203.0.113.0/24; got ${JSON.stringify(entry)}.`,
    )
  }
  list.addSubnet(address, Number(bits ?? most), family === 6 ? 'ipv6' : 'ipv4')
}
