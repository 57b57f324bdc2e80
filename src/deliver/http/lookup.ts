// `createLookup` resolves names with the name servers of the machine.
import { Resolver } from 'node:dns/promises'
import type { Millis } from '../../clock.ts'

/** Returns all addresses of a name; rejects a name without addresses. */
export type Lookup = (name: string) => Promise<readonly string[]>

const TIMEOUT: Millis = 2_000
const TRIES = 2

/**
 * `createLookup` does not use `getaddrinfo`, which shares four threads with file access and crypto: a slow name
 * server would block them. `servers` replaces the machine's name servers.
 */
export function createLookup(servers?: readonly string[]): Lookup {
  const resolver = new Resolver({ timeout: TIMEOUT, tries: TRIES })
  if (servers !== undefined) resolver.setServers(servers)
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    const fault = answers.find((answer) => answer.status === 'rejected')
    if (addresses.length === 0 && fault !== undefined) throw fault.reason
    return addresses
  }
}
