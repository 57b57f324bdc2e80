// CloudEvents over HTTP in the binary mode: attributes in headers, and the proof of whatever source it goes by.
import { proven } from './proof.ts'
import { bodyOf, JSON_TYPE, type Signer } from './signed.ts'

export const cloudEvents: Signer = (asked) => {
  const headers = {
    ...JSON_TYPE,
    'ce-specversion': '1.0',
    'ce-id': asked.id,
    'ce-source': '/sluice/send',
    'ce-type': asked.type ?? 'test',
    'ce-time': new Date(asked.now).toISOString(),
  }
  return proven(asked, { url: asked.url, headers, body: bodyOf(asked, { id: asked.id }) })
}
