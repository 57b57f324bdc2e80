// Which addresses may send: single ones and networks, of both families.
import { BlockList, isIP } from 'node:net'
import { SluiceError } from '../errors.ts'

type AddressTest = (address: string) => boolean

/** Undefined lets everybody in; an empty list would let nobody in, and is refused. */
export function addressList(scheme: string, entries: readonly string[] | undefined): AddressTest {
  if (entries === undefined) return () => true
  if (!Array.isArray(entries) || entries.length === 0) {
    throw new SluiceError('CONFIG_INVALID', `${scheme}: addresses is a list such as ['203.0.113.0/24'], or left out.`)
  }
  const list = new BlockList()
  for (const entry of entries) add(list, scheme, entry)
  return (address) => {
    const [plain = ''] = address.split('%')
    const family = isIP(plain)
    return family !== 0 && list.check(plain, family === 6 ? 'ipv6' : 'ipv4')
  }
}

function add(list: BlockList, scheme: string, entry: unknown): void {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(String(entry)) ?? []
  const family = isIP(address)
  const most = family === 6 ? 128 : 32
  if (family === 0 || Number(bits ?? most) > most) {
    throw new SluiceError(
      'CONFIG_INVALID',
      `${scheme}: addresses has ${JSON.stringify(entry)}, which is neither an address nor a network like 203.0.113.0/24.`,
    )
  }
  list.addSubnet(address, Number(bits ?? most), family === 6 ? 'ipv6' : 'ipv4')
}
