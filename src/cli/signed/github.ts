// Signs for GitHub: the event in a header, the action in the body, an HMAC of the body.
import { requestBody, JSON_TYPE, computeMac, type Signer } from './signed.ts'

export const github: Signer = (asked) => {
  const [event = 'push', action] = (asked.type ?? 'push').split('.')
  const body = requestBody(asked, { ...(action !== undefined && { action }), repository: { full_name: 'sluice/test' } })
  const signature = computeMac(asked.secret, [body], { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' })
  const headers = { 'x-github-event': event, 'x-github-delivery': asked.id, 'x-hub-signature-256': signature }
  return { url: asked.url, headers: { ...JSON_TYPE, ...headers }, body }
}
