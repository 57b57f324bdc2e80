// `listSignedUrls` lists the URLs that Twilio may have signed: the called one, with variants of port and escaping. It
// tries every variant that Twilio's own package tries.
import { parse, stringify } from 'node:querystring'
import type { ReceivedRequest } from '../receive/source.ts'

/** `fixed` is the configured public URL; the query is always that of the request. */
export function listSignedUrls(
  { url, calledUrl: called }: Pick<ReceivedRequest, 'url' | 'calledUrl'>,
  fixed?: string,
): readonly string[] {
  const written = called ?? url.href
  const asCalled = fixed === undefined ? written : fixed + findQuery(written)
  const spelledAnew = URL.parse(asCalled)?.href ?? asCalled
  const spellings = [asCalled, spelledAnew, rewriteQuery(spelledAnew)]
  return [...new Set(spellings.flatMap((one) => [withoutPort(one), withPort(one)]))]
}

function findQuery(url: string): string {
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

/** `rewriteQuery` encodes a query as Node did before it had `URL`: some of Twilio's senders sign that form. */
function rewriteQuery(url: string): string {
  const query = findQuery(url)
  return query.length > 1 ? `${url.slice(0, -query.length)}?${stringify(parse(query.slice(1)))}` : url
}
