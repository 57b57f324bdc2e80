// Signs CloudEvents over HTTP in binary mode: attributes in headers, authenticated as the source requires.
import { withProof } from './proof.ts'
import { requestBody, JSON_TYPE, type Signer } from './signed.ts'

export const cloudEvents: Signer = (asked) => {
  const headers = {
    ...JSON_TYPE,
    'ce-specversion': '1.0',
    'ce-id': asked.id,
    'ce-source': '/sluice/send',
    'ce-type': asked.type ?? 'test',
    'ce-time': new Date(asked.now).toISOString(),
  }
  return withProof(asked, { url: asked.url, headers, body: requestBody(asked, { id: asked.id }) })
}
