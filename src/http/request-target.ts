// This file checks the request target as the sender wrote it. A path that servers read differently can pass a proxy's
// path rule as one path and be routed here as another: `new URL` reads `/in/..\v1/keys` as `/v1/keys`, a proxy reads it
// as a path below `/in/`.
import type { Problem } from '../receive/problem.ts'

/** `toRequestPath` returns the path and query. Some proxies write the whole URL where others write its path. */
export function toRequestPath(target: string): string {
  if (target.startsWith('/')) return target
  const path = /^https?:\/\/[^/?#]*(.*)$/i.exec(target)?.[1]
  return path === undefined || !path.startsWith('/') ? `/${path ?? target}` : path
}

/** `targetFault` returns why a target is rejected, or undefined if every server reads its path the same way. */
export function targetFault(target: string): Problem | undefined {
  const query = target.indexOf('?')
  const sent = query === -1 ? target : target.slice(0, query)
  if (!sent.includes('\\') && pathAsUrl(toRequestPath(sent)) === toRequestPath(sent)) return undefined
  return {
    code: 'PATH_AMBIGUOUS',
    what: `Servers read the path ${JSON.stringify(sent.slice(0, 200))} differently.`,
    fix: 'Spell the path as in a URL: without \\, dot segments or fragments, and with special characters escaped.',
  }
}

function pathAsUrl(path: string): string | undefined {
  return URL.parse(`http://localhost${path}`)?.pathname
}
