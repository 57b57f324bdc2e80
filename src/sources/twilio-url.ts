// The address that Twilio signed is the one it called, but for its port and the spelling of its query: all spellings are tried.
import { parse, stringify } from 'node:querystring'

/** The public address may be given as text; the query is always that of the request. */
export function calledUrls(called: URL, fixed: string | undefined): readonly string[] {
  const base = fixed ?? `${called.protocol}//${called.host}${called.pathname}`
  const queries = new Set([called.search, rewritten(called.search)])
  return [withoutPort(base), withPort(base)].flatMap((url) => [...queries].map((query) => url + query))
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
function rewritten(query: string): string {
  return query.length > 1 ? `?${stringify(parse(query.slice(1)))}` : query
}
