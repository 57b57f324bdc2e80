// Where a name leads, by the name servers of the machine.
import { Resolver } from 'node:dns/promises'
import type { Millis } from '../clock.ts'

/** All addresses of a name. Rejects where there are none. */
export type Lookup = (name: string) => Promise<readonly string[]>

const TIMEOUT: Millis = 2_000
const TRIES = 2

/**
 * Not by `getaddrinfo`, which shares four threads with all files and ciphers: a slow name server would hold them up.
 * `servers` are asked instead of those that the machine names.
 */
export function lookupBy(servers?: readonly string[]): Lookup {
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
