// Notion: an event of an integration, an HMAC of the body; and the "Send webhook" action, which only has a header of one's own.
import { proven } from './proof.ts'
import { bodyOf, JSON_TYPE, macOf, type Signer } from './signed.ts'

const PAGE = '00000000-0000-4000-8000-000000000001'

export const notion: Signer = (asked) => {
  const body = bodyOf(asked, {
    id: asked.id,
    timestamp: new Date(asked.now).toISOString(),
    workspace_id: '00000000-0000-4000-8000-000000000002',
    type: asked.type ?? 'page.content_updated',
    entity: { id: PAGE, type: 'page' },
    attempt_number: 1,
  })
  const signature = macOf(asked.secret, [body], { algorithm: 'sha256', encoding: 'hex', prefix: 'sha256=' })
  return { url: asked.url, headers: { ...JSON_TYPE, 'x-notion-signature': signature }, body }
}

export const notionAction: Signer = (asked) => {
  const [object = 'page'] = (asked.type ?? 'page.updated').split('.')
  const source = { type: 'automation', event_id: asked.id, action_id: 'test', attempt: 1 }
  const body = bodyOf(asked, { source, data: { object, id: PAGE } })
  return proven(asked, { url: asked.url, headers: JSON_TYPE, body })
}
