// What stands between a store and its server listens in the server's place: the same address, but for the port.
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

/** The address to open a store at. */
export async function listenInPlaceOf(url: string, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const own = new URL(url)
  own.port = String((server.address() as AddressInfo).port)
  return own.href
}
