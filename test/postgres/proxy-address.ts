// `listenInPlaceOf` starts a proxy between a store and its server, and returns the server's address with the proxy's port.
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

/** The address at which to open a store. */
export async function listenInPlaceOf(url: string, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const own = new URL(url)
  own.port = String((server.address() as AddressInfo).port)
  return own.href
}
