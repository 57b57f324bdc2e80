// The address that Twilio signed is the one it called, but for its port and the spelling of some letters: all that
// Twilio's own package tries are tried.
import { parse, stringify } from 'node:querystring'
import type { ReceivedRequest } from '../receive/source.ts'

/** The public address may be given as text; the query is always that of the request. */
export function calledUrls(
  { url, called }: Pick<ReceivedRequest, 'url' | 'called'>,
  fixed?: string,
): readonly string[] {
  const written = called ?? url.href
  const asCalled = fixed === undefined ? written : fixed + queryOf(written)
  const spelledAnew = URL.parse(asCalled)?.href ?? asCalled
  const spellings = [asCalled, spelledAnew, rewritten(spelledAnew)]
  return [...new Set(spellings.flatMap((one) => [withoutPort(one), withPort(one)]))]
}

function queryOf(url: string): string {
  const start = url.indexOf('?')
  return start === -1 ? '' : url.slice(start)
}

const AUTHORITY = /^(https?:\/\/(?:[^/?#]*@)?(?:\[[^\]]*\]|[^/?#:]*))(:\d+)?/i

function withoutPort(url: string): string {
  return url.replace(AUTHORITY, '$1')
}

function withPort(url: string): string {
  return url.replace(AUTHORITY, (all: string, host: string, port: string | undefined) =>
    port === undefined ? `${host}${/^https/i.test(host) ? ':443' : ':80'}` : all,
  )
}

/** As Node wrote queries before there was URL: some of Twilio's senders sign them so. */
function rewritten(url: string): string {
  const query = queryOf(url)
  return query.length > 1 ? `${url.slice(0, -query.length)}?${stringify(parse(query.slice(1)))}` : url
}
