// Signs for Notion: an integration's event has an HMAC of the body; the "Send webhook" action only a custom header.
import { withProof } from './proof.ts'
import { requestBody, JSON_TYPE, computeMac, type Signer } from './signed.ts'

const PAGE = '00000000-0000-4000-8000-000000000001'

export const notion: Signer = (asked) => {
  const body = requestBody(asked, {
    id: asked.id,
    timestamp: new Date(asked.now).toISOString(),
    workspace_id: '00000000-0000-4000-8000-000000000002',
    type: asked.type ?? 'page.content_updated',
    entity: { id: PAGE, type: 'page' },
    attempt_number: 1,
  })
  const signature = computeMac(asked.secret, [body], { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' })
  return { url: asked.url, headers: { ...JSON_TYPE, 'x-notion-signature': signature }, body }
}

export const notionAction: Signer = (asked) => {
  const [object = 'page'] = (asked.type ?? 'page.updated').split('.')
  const source = { type: 'automation', event_id: asked.id, action_id: 'test', attempt: 1 }
  const body = requestBody(asked, { source, data: { object, id: PAGE } })
  return withProof(asked, { url: asked.url, headers: JSON_TYPE, body })
}
